package publish

import (
	"database/sql"
	"fmt"
	"slices"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestReaderMissesNoLateCommit (M1, M2, M3): of two concurrent writers, the one with the lower id commits last. A naive
// reader that polls for ids above its last one loses that row. A reader of the feed that polls at every step gets all
// rows, each above its cursor. With one writer at a time this schedule cannot happen, and the rows come in order.
func TestReaderMissesNoLateCommit(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		var cursor rowfeed.Cursor
		var seen []string
		naive, naiveCursor := []int64{}, int64(0)
		poll := func() {
			x.Helper()
			lines, next := x.Drain(f, cursor)
			seen, cursor = append(seen, lines...), next
			rows, err := x.DB.Admin().Query(fmt.Sprintf("SELECT id FROM kv WHERE id > %d ORDER BY id", naiveCursor))
			if err != nil {
				x.Fatal(err)
			}
			defer rows.Close()
			for rows.Next() {
				if err := rows.Scan(&naiveCursor); err != nil {
					x.Fatal(err)
				}
				naive = append(naive, naiveCursor)
			}
		}
		if x.Has.OneWriter {
			for i := 1; i <= 3; i++ {
				x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", i))
				poll()
			}
		} else {
			x.Exec("INSERT INTO kv VALUES (1, 'k', 0)")
			poll()
			tx1 := x.Begin(sql.LevelDefault)
			x.In(tx1, "INSERT INTO kv VALUES (2, 'k', 0)")
			poll()
			tx2 := x.Begin(sql.LevelDefault)
			x.In(tx2, "INSERT INTO kv VALUES (3, 'k', 0)")
			poll()
			x.Commit(tx2)
			poll()
			x.Commit(tx1)
			poll()
			if slices.Contains(naive, 2) {
				x.Error("the naive reader got row 2: this schedule does not lose rows")
			}
		}
		want := []string{suite.KV(1, "k", 0), suite.KV(3, "k", 0), suite.KV(2, "k", 0)}
		if x.Has.OneWriter {
			want = []string{suite.KV(1, "k", 0), suite.KV(2, "k", 0), suite.KV(3, "k", 0)}
		}
		if !slices.Equal(seen, want) {
			x.Errorf("got %q, want %q", seen, want)
		}
		x.WantSound(f)
	})
}

// TestStuckWriterDelaysOnlyItself (H17, H18): an open transaction delays its own rows, but neither those of other
// writers nor the publisher. With one writer at a time the open transaction locks out all others, so there is nothing
// to test.
func TestStuckWriterDelaysOnlyItself(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'a', 0), (2, 'b', 0), (3, 'c', 0)")
		cursor := x.WantDrain(f, "", suite.KV(1, "a", 0), suite.KV(2, "b", 0), suite.KV(3, "c", 0))
		if x.Has.OneWriter {
			return
		}
		stuck := x.Begin(sql.LevelDefault)
		x.In(stuck, "UPDATE kv SET v = 1 WHERE id = 2", "INSERT INTO kv VALUES (4, 'd', 1)")
		for v := 1; v <= 3; v++ {
			for _, id := range []int{1, 3} {
				x.Exec(fmt.Sprintf("UPDATE kv SET v = %d WHERE id = %d", v, id))
			}
			cursor = x.WantDrain(f, cursor, suite.KV(1, "a", v), suite.KV(3, "c", v))
		}
		x.Commit(stuck)
		x.WantDrain(f, cursor, suite.KV(2, "b", 1), suite.KV(4, "d", 1))
		x.WantSound(f)
	})
}

// TestRollbackPublishesNothing: a transaction that is rolled back gets no positions, and its seqs do not delay others.
func TestRollbackPublishesNothing(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'a', 0)")
		cursor := x.WantDrain(f, "", suite.KV(1, "a", 0))
		tx := x.Begin(sql.LevelDefault)
		x.In(tx, "UPDATE kv SET v = 9 WHERE id = 1", "INSERT INTO kv VALUES (2, 'b', 0)")
		if err := tx.Rollback(); err != nil {
			x.Fatal(err)
		}
		x.Exec("INSERT INTO kv VALUES (3, 'c', 0)")
		x.WantDrain(f, cursor, suite.KV(3, "c", 0))
	})
}

// TestHighestRowGetsNewPosition (M6, M7): if the row with the highest position changes, it gets a new position, and a
// consumer at the old position receives it. So does a process that has just started.
func TestHighestRowGetsNewPosition(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'a', 3)")
		cursor := x.WantDrain(f, "", suite.KV(1, "a", 3))
		if suite.Place(cursor) != "1" {
			x.Fatalf("cursor %q, want 1", cursor)
		}
		x.Exec("UPDATE kv SET v = 4 WHERE id = 1")
		if cursor = x.WantDrain(f, cursor, suite.KV(1, "a", 4)); suite.Place(cursor) != "2" {
			x.Fatalf("cursor %q, want 2", cursor)
		}
		again := suite.OpenEnv(x.T, x.DB, nil)
		f, err := again.RF.Feed(x.Ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		x.Exec("DELETE FROM kv WHERE id = 1")
		if cursor = x.WantDrain(f, cursor, suite.Gone(1)); suite.Place(cursor) != "3" {
			x.Fatalf("cursor %q, want 3", cursor)
		}
	})
}

// TestPublishNothingChangesNothing (M11): without changes, a publisher changes neither the sequence nor positions. Rows
// that do not change keep their positions.
func TestPublishNothingChangesNothing(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'a', 0), (2, 'b', 0)")
		x.Publish(f)
		state := func() [3]int64 {
			return [3]int64{
				x.Scalar("SELECT version FROM rowfeed_sequences WHERE name = 'kv'"),
				x.Scalar("SELECT value FROM rowfeed_sequences WHERE name = 'kv'"),
				x.Scalar("SELECT sum(feed_sync_id * id) FROM " + x.Placed()),
			}
		}
		before := state()
		if n := x.Publish(f); n != 0 {
			x.Errorf("published %d keys of none", n)
		}
		if after := state(); after != before {
			x.Errorf("publishing nothing changed (version, value, positions) from %v to %v", before, after)
		}
		x.Exec("UPDATE kv SET v = 1 WHERE id = 2")
		x.Publish(f)
		if p := x.Scalar("SELECT feed_sync_id FROM " + x.Placed() + " WHERE id = 1"); p != 1 {
			x.Errorf("row 1 moved to position %d, though it did not change", p)
		}
	})
}

// TestChangesOfOneKeyBecomeOneEntry (M2, M13, M14, H7): several changes of a key between two passes become one entry,
// at the position of the last change and with the last value. A row that is inserted and deleted between two passes has
// no entry.
func TestChangesOfOneKeyBecomeOneEntry(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'a', 0)", "INSERT INTO kv VALUES (2, 'b', 0)",
			"UPDATE kv SET v = 1 WHERE id = 1", "UPDATE kv SET v = 2 WHERE id = 1", "INSERT INTO kv VALUES (3, 'c', 0)",
			"INSERT INTO kv VALUES (4, 'd', 0)", "DELETE FROM kv WHERE id = 4")
		x.WantDrain(f, "", suite.KV(2, "b", 0), suite.KV(1, "a", 2), suite.KV(3, "c", 0))
	})
}

// TestFeedsAreIndependent (M5): feeds of one database, or of one table, have positions of their own. An unknown name is
// refused.
func TestFeedsAreIndependent(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		one := x.AddKV()
		x.Exec("CREATE TABLE other (id BIGINT NOT NULL PRIMARY KEY)")
		other := x.Add(rowfeed.FeedSpec{Name: "other", Table: "other"})
		again := one
		if x.Capture == feedtype.CaptureColumn { // a row has one position
			_, err := x.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: "again", Table: "kv", Capture: x.Capture}, nil)
			x.WantCode(err, rowfeed.Conflict)
		} else {
			again = x.Add(rowfeed.FeedSpec{Name: "again", Table: "kv", Columns: []string{"id"}})
		}
		x.Exec("INSERT INTO kv VALUES (1, 'a', 0)", "INSERT INTO kv VALUES (2, 'a', 0)", "INSERT INTO other VALUES (7)")
		if c := x.WantDrain(one, "", suite.KV(1, "a", 0), suite.KV(2, "a", 0)); suite.Place(c) != "2" {
			x.Errorf("the head of kv is %q", c)
		}
		if c := x.WantDrain(other, "", `upsert {"id":7}`); suite.Place(c) != "1" {
			x.Errorf("the head of other is %q", c)
		}
		if again != one {
			x.WantDrain(again, "", `upsert {"id":1}`, `upsert {"id":2}`)
		}
		_, err := x.RF.Feed(x.Ctx, "nobody")
		x.WantCode(err, rowfeed.UnknownFeed)
		_, err = x.RF.Feed(x.Ctx, "No Name")
		x.WantCode(err, rowfeed.InvalidRequest)
	})
}
