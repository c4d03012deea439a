package publish

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestPassDeletesOnlyWhatItRead (G1, H10): between a pass's reading of changes and its deleting them, a writer commits
// whose seqs are among those read, and another writer commits with higher seqs. The pass deletes neither change; the
// next one publishes both. A third writer stays open, and the publisher does not wait for it.
func TestPassDeletesOnlyWhatItRead(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		x.AddKV()
		if x.Has.OneWriter {
			passLocksOutWriters(x)
			return
		}
		makePiecemeal(x)
		var cursor rowfeed.Cursor
		id := 0
		next := func() string { id++; return fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", id) }
		for _, holes := range []int{1, 3, 30} { // few runs of seqs, and many
			slow, stuck := x.Begin(0), x.Begin(0)
			var read, late, open []string
			for i := range holes {
				for range 1 + i%2 { // runs of one seq and of two
					x.Exec(next())
					read = append(read, suite.KV(id, "k", 0))
				}
				for j := range 2 { // each of the two writers comes right behind a record to delete
					if (i+j)%2 == 0 {
						x.In(slow, next())
						late = append(late, suite.KV(id, "k", 0))
					} else {
						x.In(stuck, next())
						open = append(open, suite.KV(id, "k", 0))
					}
				}
			}
			x.Exec(next())
			read = append(read, suite.KV(id, "k", 0))

			held := testdb.Hold(deletes)
			f := x.Tapped(testdb.Hooks{Before: held.Before}, nil)
			result := make(chan error, 1)
			ctx := x.Bounded()
			go func() { _, err := f.Publish(ctx); result <- err }()
			<-held.Reached
			x.Commit(slow)
			x.Exec(next())
			late = append(late, suite.KV(id, "k", 0))
			held.Release()
			// Publish runs passes until no change is left: the second one publishes the late changes.
			if err := <-result; err != nil {
				x.Fatalf("%d holes: %v", holes, err)
			}
			cursor = x.WantDrain(f, cursor, slices.Concat(read, late)...)
			x.Commit(stuck)
			cursor = x.WantDrain(f, cursor, open...)
			x.WantSound(f)
		}
	})
}

// passLocksOutWriters asserts that no writer can write between the two statements, if the database has one writer at a
// time.
func passLocksOutWriters(x *suite.Env) {
	x.Exec("INSERT INTO kv VALUES (1, 'k', 0)", "INSERT INTO kv VALUES (3, 'k', 0)")
	held := testdb.Hold(deletes)
	f := x.Tapped(testdb.Hooks{Before: held.Before}, nil)
	result := make(chan error, 1)
	go func() { _, err := f.Publish(x.Ctx); result <- err }()
	<-held.Reached
	_, err := impatient(x).Exec("INSERT INTO kv VALUES (2, 'k', 0)")
	if x.Dialect.Classify(err) != dialect.ClassRetry {
		x.Errorf("a writer between reading and deleting: %v, want an error that is tried again", err)
	}
	held.Release()
	if err := <-result; err != nil {
		x.Fatal(err)
	}
	x.WantDrain(f, "", suite.KV(1, "k", 0), suite.KV(3, "k", 0))
}

// TestWritersAndPublisherDoNotBlock (G5, M57, H9, H10, H18): a publisher publishes a committed change, with the
// committed content, while another writer has the row locked. While the publisher is held before its COMMIT, writers
// change the same rows.
func TestWritersAndPublisherDoNotBlock(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.AddKV()
		if x.Has.OneWriter {
			return // TestPassDeletesOnlyWhatItRead shows what holds there
		}
		x.Fill(3)
		for _, isolation := range []sql.IsolationLevel{
			sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable,
		} {
			x.Exec("UPDATE kv SET v = 1")
			ctx := x.Bounded()
			writer := x.Begin(isolation)
			x.In(writer, "UPDATE kv SET v = 2 WHERE id = 1", "DELETE FROM kv WHERE id = 2",
				"UPDATE kv SET id = 4 WHERE id = 3", "INSERT INTO kv VALUES (5, 'k', 2)")
			held := testdb.Hold(func(ev testdb.TapEvent) bool { return ev.Kind == testdb.Commit })
			f := x.Tapped(testdb.Hooks{Before: held.Before}, nil)
			result := make(chan error, 1)
			go func() { _, err := f.Publish(ctx); result <- err }()
			select {
			case <-held.Reached:
			case err := <-result:
				x.Fatalf("the publisher waits for a writer in %v: %v", isolation, err)
			}
			for _, statement := range []string{
				"UPDATE kv SET v = 3 WHERE id = 1", "INSERT INTO kv VALUES (6, 'k', 3)",
			} {
				if _, err := writer.ExecContext(ctx, statement); err != nil {
					x.Fatalf("a writer in %v waits for the publisher: %s: %v", isolation, statement, err)
				}
			}
			held.Release()
			if err := <-result; err != nil {
				x.Fatal(err)
			}
			page := x.Fetch(f, "", 0)
			if got, want := suite.Line(page.Entries[0]), suite.KV(1, "k", 1); got != want || len(page.Entries) != 3 {
				x.Errorf("published %s and %d entries, want %s and 3", got, len(page.Entries), want)
			}
			x.Commit(writer)
			k := x.Recorder(f, 0)
			x.Publish(f)
			k.Read()
			k.Check(x.KVRows(), suite.ByID)
			x.Exec("DELETE FROM kv")
			x.Fill(3)
			x.Publish(f)
		}
	})
}

// TestPublisherTakesNoPartInPredicateLocking (H12): a SERIALIZABLE writer has read what a second one then changed. The
// two can be put in an order, and both commit. A publisher whose sessions have SERIALIZABLE as their default looks for
// changes in between. If PostgreSQL counted it as a third transaction, the three could not be put in an order.
func TestPublisherTakesNoPartInPredicateLocking(t *testing.T) {
	t.Run(rowfeed.ModeSequence, func(t *testing.T) {
		suite.Each(t, func(x *suite.Env) {
			x.AddKV()
			insert := func(tx *sql.Tx, id int) { x.In(tx, fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", id)) }
			strictWriters(x, "kv", insert)
		})
	})
	t.Run(rowfeed.ModeOutbox, func(t *testing.T) {
		suite.EachOutbox(t, func(x *suite.Events) {
			strictWriters(x.Env, "events", func(tx *sql.Tx, id int) {
				if err := x.Append(tx, id, 0, time.Time{}); err != nil {
					x.Fatal(err)
				}
			})
		})
	})
}

func strictWriters(x *suite.Env, feed string, insert func(tx *sql.Tx, id int)) {
	if !x.Has.PredicateLocks {
		return // a SERIALIZABLE reader locks rows, and the second writer would wait for the first
	}
	x.Exec(x.Statements("publish.serializable_database", x.DB.Name)...)
	f, err := x.TappedDB(testdb.Hooks{}, nil).Feed(x.Ctx, feed) // its sessions begin with the new default
	if err != nil {
		x.Fatal(err)
	}
	for id := 10; id < 30; id += 10 {
		first, second := x.Begin(sql.LevelSerializable), x.Begin(sql.LevelSerializable)
		x.In(first, fmt.Sprintf("SELECT id FROM %s WHERE id = %d", feed, id+1))
		insert(second, id+1)
		x.Commit(second)
		if n := x.Publish(f); n != 1 {
			x.Errorf("%d keys were published, want 1", n)
		}
		insert(first, id)
		x.Commit(first)
		if n := x.Publish(f); n != 1 {
			x.Errorf("after the first writer's commit, %d keys were published, want 1", n)
		}
	}
}

// TestPassFailsIfItsChangesAreDeleted: if another session deletes changes that a publisher has read, the publisher's
// pass fails and is rolled back, because it deletes fewer changes than it has published.
func TestPassFailsIfItsChangesAreDeleted(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.AddKV()
		if x.Has.OneWriter {
			return // no session can: TestPassDeletesOnlyWhatItRead
		}
		x.Fill(2)
		whole := x.Dialect
		makePiecemeal(x)
		held := testdb.Hold(deletes)
		f := x.Tapped(testdb.Hooks{Before: held.Before}, nil)
		result := make(chan error, 1)
		go func() { _, err := f.Publish(x.Ctx); result <- err }()
		<-held.Reached
		x.Exec("DELETE FROM rowfeed_changes_kv WHERE id = 1")
		held.Release()
		x.WantCode(<-result, rowfeed.Failed)
		nothing := func() {
			if n := x.Scalar("SELECT count(*) FROM rowfeed_positions_kv"); n != 0 {
				x.Errorf("%d positions were assigned", n)
			}
		}
		nothing()
		if x.Has.BatchStatement { // the same during that statement
			x.Exec("INSERT INTO kv VALUES (3, 'k', 0)")
			x.Dialect = whole
			other := x.Begin(0)
			x.In(other, "DELETE FROM rowfeed_changes_kv WHERE id = 3")
			f := x.Tapped(testdb.Hooks{}, nil)
			go func() { _, err := f.Publish(x.Ctx); result <- err }()
			x.Eventually("the publisher waits for the session that deletes", x.Waits)
			x.Commit(other)
			x.WantCode(<-result, rowfeed.Failed)
			nothing()
			x.WantDrain(f, "", suite.KV(2, "k", 0))
			return
		}
		x.WantDrain(f, "", suite.KV(2, "k", 0))
	})
}

// makePiecemeal lets feeds that are opened after the call publish every batch with several statements, for tests that
// act between two of them.
func makePiecemeal(x *suite.Env) {
	d := *x.Dialect
	d.Batches = nil
	x.Dialect = &d
}

// intruder is publishing by a LockSequence that takes no lock, and lets another session advance the sequence, for as
// many calls as times says.
type intruder struct {
	dialect.Publishing
	now     string
	times   atomic.Int32
	advance func(ctx context.Context, tx dialect.Querier)
}

func (i *intruder) LockSequence(ctx context.Context, tx dialect.Querier, f *dialect.Feed) (dialect.Sequence, error) {
	if i.times.Add(-1) < 0 {
		return i.Publishing.LockSequence(ctx, tx, f)
	}
	var s dialect.Sequence
	read := "SELECT value, version, updated_at, " + i.now + " FROM rowfeed_sequences"
	err := dialect.QueryRow(ctx, tx, read, nil, &s.Value, &s.Version, &s.UpdatedAt, &s.Now)
	i.advance(ctx, tx)
	return s, err
}

// TestStaleSequenceIsRetried (M10): a publisher without locks advances the sequence while a pass works. The pass then
// fails to advance it, because the version differs. It is rolled back and runs again from the new value, so no position
// is assigned twice. The number of retries is limited.
func TestStaleSequenceIsRetried(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		x.AddKV()
		x.Fill(2)
		const advance = "UPDATE rowfeed_sequences SET value = value + 10, version = version + 1"
		i := &intruder{Publishing: x.Dialect.Publishing, now: x.Dialect.Now,
			advance: func(context.Context, dialect.Querier) { x.Exec(advance) }}
		if x.Has.OneWriter {
			// No other session can write meanwhile, so the pass's own transaction advances the sequence.
			i.advance = func(ctx context.Context, tx dialect.Querier) {
				if _, err := tx.Exec(ctx, advance); err != nil {
					x.Error(err)
				}
			}
		}
		d := *x.Dialect
		d.Publishing = i
		rf, err := rowfeed.Open(x.Ctx, x.Pool, &d, nil)
		if err != nil {
			x.Fatal(err)
		}
		f, err := rf.Feed(x.Ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		i.times.Store(2)
		x.Publish(f)
		want := int64(22) // two keys above what was advanced
		if x.Has.OneWriter {
			want = 2 // the advances were rolled back with the passes
		}
		head := x.Scalar("SELECT value FROM rowfeed_sequences")
		highest := x.Scalar("SELECT max(feed_sync_id) FROM " + x.Placed())
		lowest := x.Scalar("SELECT min(feed_sync_id) FROM " + x.Placed())
		if head != want || highest != want || lowest != want-1 {
			x.Errorf("positions %d to %d, head %d, want head %d", lowest, highest, head, want)
		}
		if left := x.Unpublished(); left != 0 {
			x.Errorf("%d changes are left", left)
		}
		x.Exec("UPDATE kv SET v = 1 WHERE id = 1")
		if x.Has.OneWriter { // elsewhere this takes long
			i.times.Store(1000)
			if _, err := f.Publish(x.Ctx); err == nil {
				x.Error("no error, though the version differed in every pass")
			}
			i.times.Store(0)
		}
		x.Publish(f)
		x.WantSound(f)
	})
}
