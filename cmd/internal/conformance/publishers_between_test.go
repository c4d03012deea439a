package conformance

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
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestExactlyTheChangesRead (G1, H10): between reading the changes and deleting
// them, a writer that had drawn its seqs among those read commits, and another one
// draws higher ones. Both belong to the next pass. A third, whose seqs lie there too,
// stays open throughout: the publisher does not wait for it.
func TestExactlyTheChangesRead(t *testing.T) {
	testdb.Quick(t)
	each(t, func(x *env) {
		x.addKV()
		if x.family() == "sqlite" {
			x.keepsWritersOut()
			return
		}
		x.piecemeal()
		var cursor rowfeed.Cursor
		id := 0
		next := func() string { id++; return fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", id) }
		for _, holes := range []int{1, 3, 30} { // few runs of seqs, and many
			slow, stuck := x.begin(0), x.begin(0)
			var read, late, open []string
			for i := range holes {
				for range 1 + i%2 { // runs of one seq and of two
					x.exec(next())
					read = append(read, kv(id, "k", 0))
				}
				for j := range 2 { // either kind comes right behind a record to delete
					if (i+j)%2 == 0 {
						x.in(slow, next())
						late = append(late, kv(id, "k", 0))
					} else {
						x.in(stuck, next())
						open = append(open, kv(id, "k", 0))
					}
				}
			}
			x.exec(next())
			read = append(read, kv(id, "k", 0))

			held := testdb.Hold(deletes)
			f := x.tapped(testdb.Hooks{Before: held.Before}, nil)
			result := make(chan error, 1)
			ctx, cancel := context.WithTimeout(x.ctx, 40*time.Second) // before a server gives up waiting
			defer cancel()
			go func() { _, err := f.Publish(ctx); result <- err }()
			<-held.Reached
			x.commit(slow)
			x.exec(next())
			late = append(late, kv(id, "k", 0))
			held.Release()
			// Publish runs passes until nothing is left: what came late is in its second.
			if err := <-result; err != nil {
				x.Fatalf("%d holes: %v", holes, err)
			}
			cursor = x.wantDrain(f, cursor, slices.Concat(read, late)...)
			x.commit(stuck)
			cursor = x.wantDrain(f, cursor, open...)
			x.wantSound(f)
		}
	})
}

// keepsWritersOut: on SQLite nobody can write between the two statements.
func (x *env) keepsWritersOut() {
	x.exec("INSERT INTO kv VALUES (1, 'k', 0)", "INSERT INTO kv VALUES (3, 'k', 0)")
	held := testdb.Hold(deletes)
	f := x.tapped(testdb.Hooks{Before: held.Before}, nil)
	result := make(chan error, 1)
	go func() { _, err := f.Publish(x.ctx); result <- err }()
	<-held.Reached
	if _, err := x.impatient().Exec("INSERT INTO kv VALUES (2, 'k', 0)"); x.dialect.Classify(err) != dialect.ClassRetry {
		x.Errorf("a writer between reading and deleting: %v, want SQLITE_BUSY", err)
	}
	held.Release()
	if err := <-result; err != nil {
		x.Fatal(err)
	}
	x.wantDrain(f, "", kv(1, "k", 0), kv(3, "k", 0))
}

// TestNobodyWaits (G5, M57, H9, H10, H18): a committed change is published
// whoever holds its row now, with the committed content; and while a publisher is
// stopped before its COMMIT, writers change the very rows that it publishes.
func TestNobodyWaits(t *testing.T) {
	each(t, func(x *env) {
		x.addKV()
		if x.family() == "sqlite" {
			return // one writer at a time: TestExactlyTheChangesRead
		}
		x.fill(3)
		for _, isolation := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
			x.exec("UPDATE kv SET v = 1")
			ctx, cancel := context.WithTimeout(x.ctx, 40*time.Second) // before a server gives up waiting
			defer cancel()
			writer := x.begin(isolation)
			x.in(writer, "UPDATE kv SET v = 2 WHERE id = 1", "DELETE FROM kv WHERE id = 2", "UPDATE kv SET id = 4 WHERE id = 3", "INSERT INTO kv VALUES (5, 'k', 2)")
			held := testdb.Hold(func(ev testdb.TapEvent) bool { return ev.Kind == testdb.Commit })
			f := x.tapped(testdb.Hooks{Before: held.Before}, nil)
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
			page := x.fetch(f, "", 0)
			if got, want := line(page.Entries[0]), kv(1, "k", 1); got != want || len(page.Entries) != 3 {
				x.Errorf("published %s and %d entries, want %s and 3", got, len(page.Entries), want)
			}
			x.commit(writer)
			k := x.keeper(f, 0)
			x.publish(f)
			k.read()
			k.judge(x.kvRows(), byID)
			x.exec("DELETE FROM kv")
			x.fill(3)
			x.publish(f)
		}
	})
}

// TestForeignDelete: when somebody else deletes changes that a publisher has read, it
// says so and rolls back: what it published would be more than it deleted.
func TestForeignDelete(t *testing.T) {
	each(t, func(x *env) {
		x.addKV()
		if x.family() == "sqlite" {
			return // nobody can: TestExactlyTheChangesRead
		}
		x.fill(2)
		whole := x.dialect
		x.piecemeal()
		held := testdb.Hold(deletes)
		f := x.tapped(testdb.Hooks{Before: held.Before}, nil)
		result := make(chan error, 1)
		go func() { _, err := f.Publish(x.ctx); result <- err }()
		<-held.Reached
		x.exec("DELETE FROM rowfeed_changes_kv WHERE id = 1")
		held.Release()
		x.wantCode(<-result, rowfeed.Failed)
		nothing := func() {
			if n := x.scalar("SELECT count(*) FROM rowfeed_positions_kv"); n != 0 {
				x.Errorf("%d positions were given", n)
			}
		}
		nothing()
		if x.family() == "postgres" { // the same in the middle of the statement that does all
			x.exec("INSERT INTO kv VALUES (3, 'k', 0)")
			x.dialect = whole
			other := x.begin(0)
			x.in(other, "DELETE FROM rowfeed_changes_kv WHERE id = 3")
			f := x.tapped(testdb.Hooks{}, nil)
			go func() { _, err := f.Publish(x.ctx); result <- err }()
			x.eventually("the publisher waits for who deletes", func() bool {
				return x.scalar("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") > 0
			})
			x.commit(other)
			x.wantCode(<-result, rowfeed.Failed)
			nothing()
			x.wantDrain(f, "", kv(2, "k", 0))
			return
		}
		x.wantDrain(f, "", kv(2, "k", 0))
	})
}

// piecemeal is a dialect that publishes every batch as those are that one statement cannot: the
// tests that go between two statements need it.
type piecemeal struct{ dialect.Dialect }

func (piecemeal) PublishAlike(context.Context, dialect.Querier, *dialect.Feed, dialect.Sequence, int64, dialect.Seqs, int) (dialect.Alike, error) {
	return dialect.Alike{}, nil
}

// piecemeal is for the feeds that are opened from here on.
func (x *env) piecemeal() { x.dialect = piecemeal{x.dialect} }

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
	eachCapture(t, func(x *env) {
		x.addKV()
		x.fill(2)
		const advance = "UPDATE rowfeed_sequences SET value = value + 10, version = version + 1"
		i := &intruder{Dialect: x.dialect, advance: func(context.Context, dialect.Querier) { x.exec(advance) }}
		if x.family() == "sqlite" {
			// Nobody else can write meanwhile; the transaction itself plays the intruder.
			i.advance = func(ctx context.Context, tx dialect.Querier) {
				if _, err := tx.Exec(ctx, advance); err != nil {
					x.Error(err)
				}
			}
		}
		rf, err := rowfeed.Open(x.ctx, x.pool, i, nil)
		if err != nil {
			x.Fatal(err)
		}
		f, err := rf.Feed(x.ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		i.times.Store(2)
		x.publish(f)
		want := int64(22) // two keys above what the intruder has taken
		if x.family() == "sqlite" {
			want = 2 // its advances were rolled back with the passes
		}
		head := x.scalar("SELECT value FROM rowfeed_sequences")
		highest := x.scalar("SELECT max(feed_sync_id) FROM " + x.placed())
		lowest := x.scalar("SELECT min(feed_sync_id) FROM " + x.placed())
		if head != want || highest != want || lowest != want-1 {
			x.Errorf("positions %d to %d, head %d, want head %d", lowest, highest, head, want)
		}
		if left := x.unpublished(); left != 0 {
			x.Errorf("%d changes are left", left)
		}
		x.exec("UPDATE kv SET v = 1 WHERE id = 1")
		if x.family() == "sqlite" { // it takes a while
			i.times.Store(1000)
			if _, err := f.Publish(x.ctx); err == nil {
				x.Error("no error although every pass was overtaken")
			}
			i.times.Store(0)
		}
		x.publish(f)
		x.wantSound(f)
	})
}
