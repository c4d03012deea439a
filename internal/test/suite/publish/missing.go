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

// TestNotMissingRows (M1, M2, M3) drives the schedule that loses rows for everyone who polls
// ids (M1, M3): a transaction draws the lower id and commits later. The naive
// reader loses the row, on every database that lets two writers in; the feed's
// reader, polling at every step, gets all of them (M1), each above its cursor.
func TestNotMissingRows(t *testing.T) {
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
		if x.Family() == "sqlite" {
			// One writer at a time: the schedule cannot happen; the rows come in order.
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
				x.Error("the naive reader got row 2: the schedule shows nothing")
			}
		}
		want := []string{suite.KV(1, "k", 0), suite.KV(3, "k", 0), suite.KV(2, "k", 0)}
		if x.Family() == "sqlite" {
			want = []string{suite.KV(1, "k", 0), suite.KV(2, "k", 0), suite.KV(3, "k", 0)}
		}
		if !slices.Equal(seen, want) {
			x.Errorf("got %q, want %q", seen, want)
		}
		x.WantSound(f)
	})
}

// TestStuckWriterDelaysOnlyItself (H17, H18): an open transaction holds back its own rows and
// nobody else's, neither at the publisher nor at other writers.
func TestStuckWriterDelaysOnlyItself(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'a', 0), (2, 'b', 0), (3, 'c', 0)")
		cursor := x.WantDrain(f, "", suite.KV(1, "a", 0), suite.KV(2, "b", 0), suite.KV(3, "c", 0))
		if x.Family() == "sqlite" {
			// The one writer keeps every other writer out, the publisher included: it waits
			// and then gives up with a clear error, having changed nothing.
			return
		}
		stuck := x.Begin(sql.LevelDefault)
		x.In(stuck, "UPDATE kv SET v = 1 WHERE id = 2", "INSERT INTO kv VALUES (4, 'd', 1)")
		for v := 1; v <= 3; v++ {
			x.Exec(fmt.Sprintf("UPDATE kv SET v = %d WHERE id = 1", v), fmt.Sprintf("UPDATE kv SET v = %d WHERE id = 3", v))
			cursor = x.WantDrain(f, cursor, suite.KV(1, "a", v), suite.KV(3, "c", v))
		}
		x.Commit(stuck)
		x.WantDrain(f, cursor, suite.KV(2, "b", 1), suite.KV(4, "d", 1))
		x.WantSound(f)
	})
}

// TestRolledBackWriter: neither rows nor positions of a rolled-back transaction
// come out, and its seqs are no gap to wait for.
func TestRolledBackWriter(t *testing.T) {
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

// TestRepublishedHighest (M6, M7): after the highest row is republished its
// position is a new one, and a consumer that stood at the old one receives it.
func TestRepublishedHighest(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'a', 3)")
		cursor := x.WantDrain(f, "", suite.KV(1, "a", 3))
		if cursor != "1" {
			x.Fatalf("cursor %q, want 1", cursor)
		}
		x.Exec("UPDATE kv SET v = 4 WHERE id = 1")
		if cursor = x.WantDrain(f, cursor, suite.KV(1, "a", 4)); cursor != "2" {
			x.Fatalf("cursor %q, want 2", cursor)
		}
		// A new process knows no more than the database does.
		again := suite.OpenEnv(x.T, x.DB, nil)
		f, err := again.RF.Feed(x.Ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		x.Exec("DELETE FROM kv WHERE id = 1")
		if cursor = x.WantDrain(f, cursor, suite.Gone(1)); cursor != "3" {
			x.Fatalf("cursor %q, want 3", cursor)
		}
	})
}

// TestPublishNothing (M11): with nothing waiting, nothing changes, the sequence
// included; rows that have a position keep it.
func TestPublishNothing(t *testing.T) {
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
			x.Errorf("row 1 moved to %d although it was not written", p)
		}
	})
}

// TestCollapse (M2, M13, M14, H7): several changes of a key between two passes become one
// entry, where the last of them stands; the last value is always delivered.
func TestCollapse(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'a', 0)", "INSERT INTO kv VALUES (2, 'b', 0)",
			"UPDATE kv SET v = 1 WHERE id = 1", "UPDATE kv SET v = 2 WHERE id = 1", "INSERT INTO kv VALUES (3, 'c', 0)",
			"INSERT INTO kv VALUES (4, 'd', 0)", "DELETE FROM kv WHERE id = 4")
		// 4 lived and died between two passes: nobody ever saw it.
		x.WantDrain(f, "", suite.KV(2, "b", 0), suite.KV(1, "a", 2), suite.KV(3, "c", 0))
	})
}

// TestTwoFeeds (M5): two feeds of one database, or of one table, advance
// independently; an unknown name is refused.
func TestTwoFeeds(t *testing.T) {
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
		if c := x.WantDrain(one, "", suite.KV(1, "a", 0), suite.KV(2, "a", 0)); c != "2" {
			x.Errorf("kv stands at %q", c)
		}
		if c := x.WantDrain(other, "", `upsert {"id":7}`); c != "1" {
			x.Errorf("other stands at %q", c)
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
