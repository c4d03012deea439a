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

// TestExactlyTheChangesRead (G1, H10): between reading the changes and deleting
// them, a writer that had drawn its seqs among those read commits, and another one
// draws higher ones. Both belong to the next pass. A third, whose seqs lie there too,
// stays open throughout: the publisher does not wait for it.
func TestExactlyTheChangesRead(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		x.AddKV()
		if x.Family() == "sqlite" {
			keepsWritersOut(x)
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
				for j := range 2 { // either kind comes right behind a record to delete
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
			ctx, cancel := context.WithTimeout(x.Ctx, 40*time.Second) // before a server gives up waiting
			defer cancel()
			go func() { _, err := f.Publish(ctx); result <- err }()
			<-held.Reached
			x.Commit(slow)
			x.Exec(next())
			late = append(late, suite.KV(id, "k", 0))
			held.Release()
			// Publish runs passes until nothing is left: what came late is in its second.
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

// keepsWritersOut: on SQLite nobody can write between the two statements.
func keepsWritersOut(x *suite.Env) {
	x.Exec("INSERT INTO kv VALUES (1, 'k', 0)", "INSERT INTO kv VALUES (3, 'k', 0)")
	held := testdb.Hold(deletes)
	f := x.Tapped(testdb.Hooks{Before: held.Before}, nil)
	result := make(chan error, 1)
	go func() { _, err := f.Publish(x.Ctx); result <- err }()
	<-held.Reached
	if _, err := impatient(x).Exec("INSERT INTO kv VALUES (2, 'k', 0)"); x.Dialect.Classify(err) != dialect.ClassRetry {
		x.Errorf("a writer between reading and deleting: %v, want SQLITE_BUSY", err)
	}
	held.Release()
	if err := <-result; err != nil {
		x.Fatal(err)
	}
	x.WantDrain(f, "", suite.KV(1, "k", 0), suite.KV(3, "k", 0))
}

// TestNobodyWaits (G5, M57, H9, H10, H18): a committed change is published
// whoever holds its row now, with the committed content; and while a publisher is
// stopped before its COMMIT, writers change the very rows that it publishes.
func TestNobodyWaits(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.AddKV()
		if x.Family() == "sqlite" {
			return // one writer at a time: TestExactlyTheChangesRead
		}
		x.Fill(3)
		for _, isolation := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
			x.Exec("UPDATE kv SET v = 1")
			ctx, cancel := context.WithTimeout(x.Ctx, 40*time.Second) // before a server gives up waiting
			defer cancel()
			writer := x.Begin(isolation)
			x.In(writer, "UPDATE kv SET v = 2 WHERE id = 1", "DELETE FROM kv WHERE id = 2", "UPDATE kv SET id = 4 WHERE id = 3", "INSERT INTO kv VALUES (5, 'k', 2)")
			held := testdb.Hold(func(ev testdb.TapEvent) bool { return ev.Kind == testdb.Commit })
			f := x.Tapped(testdb.Hooks{Before: held.Before}, nil)
			result := make(chan error, 1)
			go func() { _, err := f.Publish(ctx); result <- err }()
			select {
			case <-held.Reached:
			case err := <-result:
				x.Fatalf("the publisher waits for a writer in %v: %v", isolation, err)
			}
			for _, statement := range []string{"UPDATE kv SET v = 3 WHERE id = 1", "INSERT INTO kv VALUES (6, 'k', 3)"} {
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
			k := x.Keeper(f, 0)
			x.Publish(f)
			k.Read()
			k.Judge(x.KVRows(), suite.ByID)
			x.Exec("DELETE FROM kv")
			x.Fill(3)
			x.Publish(f)
		}
	})
}

// TestForeignDelete: when somebody else deletes changes that a publisher has read, it
// says so and rolls back: what it published would be more than it deleted.
func TestForeignDelete(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.AddKV()
		if x.Family() == "sqlite" {
			return // nobody can: TestExactlyTheChangesRead
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
				x.Errorf("%d positions were given", n)
			}
		}
		nothing()
		if x.Family() == "postgres" { // the same in the middle of the statement that does all
			x.Exec("INSERT INTO kv VALUES (3, 'k', 0)")
			x.Dialect = whole
			other := x.Begin(0)
			x.In(other, "DELETE FROM rowfeed_changes_kv WHERE id = 3")
			f := x.Tapped(testdb.Hooks{}, nil)
			go func() { _, err := f.Publish(x.Ctx); result <- err }()
			x.Eventually("the publisher waits for who deletes", func() bool {
				return x.Scalar("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") > 0
			})
			x.Commit(other)
			x.WantCode(<-result, rowfeed.Failed)
			nothing()
			x.WantDrain(f, "", suite.KV(2, "k", 0))
			return
		}
		x.WantDrain(f, "", suite.KV(2, "k", 0))
	})
}

// piecemeal is a dialect that publishes every batch as those are that one statement cannot: the
// tests that go between two statements need it.
type piecemeal struct{ dialect.Dialect }

func (piecemeal) PublishAlike(context.Context, dialect.Querier, *dialect.Feed, dialect.Sequence, int64, dialect.Seqs, int) (dialect.Alike, error) {
	return dialect.Alike{}, nil
}

// makePiecemeal is for the feeds that are opened from here on.
func makePiecemeal(x *suite.Env) { x.Dialect = piecemeal{x.Dialect} }

// intruder is a dialect under which somebody who does not lock the sequence advances
// it while this publisher works.
type intruder struct {
	dialect.Dialect
	times   atomic.Int32
	advance func(ctx context.Context, tx dialect.Querier)
}

func (i *intruder) LockSequence(ctx context.Context, tx dialect.Querier, f *dialect.Feed) (dialect.Sequence, error) {
	if i.times.Add(-1) < 0 {
		return i.Dialect.LockSequence(ctx, tx, f)
	}
	var s dialect.Sequence
	err := dialect.QueryRow(ctx, tx, "SELECT value, version, updated_at, "+i.Now()+" FROM rowfeed_sequences", nil, &s.Value, &s.Version, &s.UpdatedAt, &s.Now)
	i.advance(ctx, tx)
	return s, err
}

// TestStaleSequence (M10): when the sequence is advanced behind a publisher's back
// (an in-house publisher that counts versions but takes no lock), its own advance is
// rejected by the version, the pass is rolled back and run again from the new value:
// nobody's position is given a second time; and not for ever.
func TestStaleSequence(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		x.AddKV()
		x.Fill(2)
		const advance = "UPDATE rowfeed_sequences SET value = value + 10, version = version + 1"
		i := &intruder{Dialect: x.Dialect, advance: func(context.Context, dialect.Querier) { x.Exec(advance) }}
		if x.Family() == "sqlite" {
			// Nobody else can write meanwhile; the transaction itself plays the intruder.
			i.advance = func(ctx context.Context, tx dialect.Querier) {
				if _, err := tx.Exec(ctx, advance); err != nil {
					x.Error(err)
				}
			}
		}
		rf, err := rowfeed.Open(x.Ctx, x.Pool, i, nil)
		if err != nil {
			x.Fatal(err)
		}
		f, err := rf.Feed(x.Ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		i.times.Store(2)
		x.Publish(f)
		want := int64(22) // two keys above what the intruder has taken
		if x.Family() == "sqlite" {
			want = 2 // its advances were rolled back with the passes
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
		if x.Family() == "sqlite" { // it takes a while
			i.times.Store(1000)
			if _, err := f.Publish(x.Ctx); err == nil {
				x.Error("no error although every pass was overtaken")
			}
			i.times.Store(0)
		}
		x.Publish(f)
		x.WantSound(f)
	})
}
