package capture

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestRolledBackUpdateKeepsPosition (M12): the writer sets feed_sync_id to NULL in the statement of its change.
// Meanwhile a pass publishes nothing of the row. After a rollback row and position are what they were.
func TestRolledBackUpdateKeepsPosition(t *testing.T) {
	testdb.Quick(t)
	suite.EachColumn(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'a', 1), (2, 'b', 2)")
		cursor := x.WantDrain(f, "", suite.KV(1, "a", 1), suite.KV(2, "b", 2))
		tx := x.Begin(sql.LevelReadCommitted)
		x.In(tx, "UPDATE kv SET v = 99 WHERE id = 1")
		if !x.Has.OneWriter { // otherwise nothing can be published now
			x.WantDrain(f, cursor)
		}
		if err := tx.Rollback(); err != nil {
			x.Fatal(err)
		}
		x.WantDrain(f, cursor)
		x.WantPage(f, "", 5, "1 "+suite.KV(1, "a", 1), "2 "+suite.KV(2, "b", 2), "> 2")
		x.Exec("UPDATE kv SET v = 3 WHERE id = 1")
		x.WantPage(f, "", 5, "2 "+suite.KV(2, "b", 2), "> 2") // row 1 has no position until it is published
		x.WantDrain(f, cursor, suite.KV(1, "a", 3))
		x.WantSound(f)
	})
}

// TestPublishingChangesOnlyPositions: publishing changes only feed_sync_id of a row, also if the table has columns that
// follow every UPDATE, added before or after the feed.
func TestPublishingChangesOnlyPositions(t *testing.T) {
	testdb.Quick(t)
	eachRows(t, func(x *suite.Env) {
		following := x.Text("capture.columns_that_follow_updates")
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT" + following + ")")
		f := x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
		x.Exec("INSERT INTO kv (id, k, v) VALUES (1, 'a', 1), (2, 'b', 2)")
		columns, kept := "id, k, v", ""
		if following != "" {
			x.Exec("UPDATE kv SET at = '2001-01-01 00:00:00', d = NULL")
			x.Publish(f)
			x.Exec(x.Text("capture.add_column_that_follows_updates"))
			x.Exec("UPDATE kv SET at = '2001-01-01 00:00:00', d = NULL, late = NULL")
			columns += ", at, d, late"
			kept = ", at = at, d = d, late = late"
		}
		rows := func() string {
			return fmt.Sprint(x.Rows("SELECT "+columns+" FROM kv ORDER BY id", "k", "at", "d", "late"))
		}
		before := rows()
		if n := x.Publish(f); n != 2 {
			x.Errorf("%d rows were published", n)
		}
		x.Exec("UPDATE kv SET shard = shard") // the rows are to be published again
		if following != "" {
			x.Exec("UPDATE kv SET at = '2001-01-01 00:00:00', d = NULL, late = NULL")
		}
		// Repair gives new positions, and changes as little.
		x.DB.Exec(x.T, "UPDATE kv SET feed_sync_id = 7"+kept)
		if n, err := f.Admin().Repair(x.Ctx); n != 2 || err != nil {
			x.Errorf("repair recorded %d rows, %v", n, err)
		}
		x.Publish(f)
		if after := rows(); after != before {
			x.Errorf("rows were %s, and are %s", before, after)
		}
		x.WantSound(f)
		columns += ", feed_sync_id" // resharding keeps the positions
		before = rows()
		x.Reshard(f, 9)
		if after := rows(); after != before {
			x.Errorf("rows were %s, and are %s", before, after)
		}
	})
}

// TestHeldRowsDelayNoOthers (G5, H17, H18): a writer holds rows that are to be published. The publisher passes over
// them and publishes all others, in batches smaller than the number of held rows. Other writers write meanwhile. On
// MariaDB every other form of the UPDATE waits here.
func TestHeldRowsDelayNoOthers(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.Servers...) // SQLite has one writer
	eachRows(t, func(x *suite.Env) {
		x.AddKV()
		x.Fill(40)
		f := x.Tapped(testdb.Hooks{}, &rowfeed.Config{BatchSize: 3})
		for _, isolation := range []sql.IsolationLevel{
			sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable,
		} {
			x.Exec("UPDATE kv SET v = 1")
			stuck := x.Begin(isolation)
			for _, id := range []int{1, 2, 3, 21, 40} {
				x.In(stuck, fmt.Sprintf("UPDATE kv SET v = 2 WHERE id = %d", id))
			}
			x.In(stuck, "INSERT INTO kv VALUES (41, 'k', 2)", "DELETE FROM kv WHERE id = 30")
			if n, err := f.Publish(x.Bounded()); n != 34 || err != nil {
				x.Fatalf("while a writer in %v held rows, %d rows were published, want 34: %v", isolation, n, err)
			}
			other := x.Begin(sql.LevelReadCommitted)
			x.In(other, "UPDATE kv SET v = 3 WHERE id = 22", "INSERT INTO kv VALUES (42, 'k', 3)")
			x.Commit(other)
			if n, err := f.Publish(x.Bounded()); n != 2 || err != nil {
				x.Fatalf("while a writer in %v held rows, %d rows were published, want 2: %v", isolation, n, err)
			}
			x.Commit(stuck)
			if n, err := f.Publish(x.Bounded()); n != 7 || err != nil {
				x.Fatalf("after the writer in %v %d keys were published, want 7: %v", isolation, n, err)
			}
			k := x.Recorder(f, 0)
			k.Read()
			k.Check(x.KVRows(), suite.ByID)
			x.WantSound(f)
			x.Exec("DELETE FROM kv")
			x.Fill(40)
			x.Publish(f)
		}
	})
}

// TestKeyNeedNotBePrimary: the feed's key is a unique index that is not the primary key. Rows are published by that
// key, also while a writer holds some.
func TestKeyNeedNotBePrimary(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		x.Exec(x.Exact("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(20) NOT NULL, v BIGINT)"),
			"CREATE UNIQUE INDEX kv_k ON kv (k)")
		x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv", Key: []string{"k"}})
		for id := range 20 {
			x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k%02d', 0)", 100-id, id))
		}
		f := x.Tapped(testdb.Hooks{}, &rowfeed.Config{BatchSize: 3})
		row := func(id, v int) string { return fmt.Sprintf(`upsert {"id":%d,"k":"k%02d","v":%d}`, 100-id, id, v) }
		var want []string
		for id := range 20 {
			want = append(want, row(id, 0))
		}
		lines, cursor := x.Drain(f, "")
		if !slices.Equal(lines, want) { // in the order of k, which is not that of id
			x.Fatalf("the entries are %q, want %q", lines, want)
		}
		if x.Has.OneWriter {
			return
		}
		x.Exec("UPDATE kv SET v = 1 WHERE id > 90")
		stuck := x.Begin(sql.LevelRepeatableRead)
		x.In(stuck, "UPDATE kv SET v = 2 WHERE id = 95", "UPDATE kv SET v = 2 WHERE id = 85")
		if n, err := f.Publish(x.Bounded()); n != 9 || err != nil {
			x.Fatalf("while a writer held rows, %d rows were published, want 9: %v", n, err)
		}
		_, cursor = x.Drain(f, cursor)
		x.Commit(stuck)
		lines, _ = x.Drain(f, cursor)
		if want := []string{row(5, 2), row(15, 2)}; !slices.Equal(lines, want) {
			x.Errorf("the entries are %q, want %q", lines, want)
		}
		x.WantSound(f)
	})
}

// TestPausedPublisherHoldsOnlyItsRows (H18): a publisher stops before COMMIT. Only the rows of its batch are locked,
// and all others can be written.
func TestPausedPublisherHoldsOnlyItsRows(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has one writer
	eachRows(t, func(x *suite.Env) {
		plain := x.AddKV()
		x.Fill(10)
		x.Publish(plain)
		x.Exec("UPDATE kv SET v = 1 WHERE id = 5")
		held := testdb.Hold(func(ev testdb.TapEvent) bool { return ev.Kind == testdb.Commit })
		f := x.Tapped(testdb.Hooks{Before: held.Before}, nil)
		result := make(chan error, 1)
		go func() { _, err := f.Publish(x.Ctx); result <- err }()
		<-held.Reached
		writer := x.Begin(sql.LevelReadCommitted)
		for _, statement := range []string{
			"UPDATE kv SET v = 2 WHERE id = 4", "UPDATE kv SET v = 2 WHERE id = 6",
			"INSERT INTO kv VALUES (11, 'k', 2)", "DELETE FROM kv WHERE id = 1",
		} {
			for _, part := range x.SQL(statement) {
				if _, err := writer.ExecContext(x.Bounded(), part); err != nil {
					x.Fatalf("%s waits for the publisher: %v", part, err)
				}
			}
		}
		x.Commit(writer)
		held.Release()
		if err := <-result; err != nil {
			x.Fatal(err)
		}
		k := x.Recorder(plain, 0)
		x.Publish(plain)
		k.Read()
		k.Check(x.KVRows(), suite.ByID)
	})
}

// TestReferencedRowIsPublished (H22): a row is published although an open transaction refers to it by a foreign key,
// and a reference to a row does not wait for its publisher. InnoDB locks the referenced row, so it is published later.
func TestReferencedRowIsPublished(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has one writer
	suite.EachColumn(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("CREATE TABLE child (id BIGINT NOT NULL PRIMARY KEY, parent BIGINT, "+
			"FOREIGN KEY (parent) REFERENCES kv (id))",
			"INSERT INTO kv VALUES (1, 'a', 0), (2, 'b', 0)")
		tx := x.Begin(sql.LevelReadCommitted)
		x.In(tx, "INSERT INTO child VALUES (1, 1)")
		want := 2
		if x.Has.ReferencesLock {
			want = 1
		}
		if n, err := f.Publish(x.Bounded()); n != want || err != nil {
			x.Errorf("%d rows were published, want %d: %v", n, want, err)
		}
		x.Commit(tx)
		x.Publish(f)
		if x.Has.ReferencesLock {
			return
		}
		x.Exec("UPDATE kv SET v = 1")
		held := testdb.Hold(func(ev testdb.TapEvent) bool { return ev.Kind == testdb.Commit })
		paused := x.Tapped(testdb.Hooks{Before: held.Before}, nil)
		result := make(chan error, 1)
		go func() { _, err := paused.Publish(x.Ctx); result <- err }()
		<-held.Reached
		if _, err := x.DB.Admin().ExecContext(x.Bounded(), "INSERT INTO child VALUES (2, 2)"); err != nil {
			x.Errorf("a reference to a row waits for the row's publisher: %v", err)
		}
		held.Release()
		if err := <-result; err != nil {
			x.Error(err)
		}
	})
}

// TestHotRowsDelayNoOthers (H13): more rows than a batch holds are written again before every pass. The other rows are
// published all the same.
func TestHotRowsDelayNoOthers(t *testing.T) {
	eachRows(t, func(x *suite.Env) {
		x.AddKV()
		x.Fill(9)
		// Each call of Publish is stopped after its first pass. A pass publishes fewer rows than are hot.
		var stop context.CancelFunc
		f := x.Tapped(testdb.Hooks{After: func(_ context.Context, ev testdb.TapEvent, err error) error {
			if ev.Kind == testdb.Commit && ev.InTx {
				stop()
			}
			return err
		}}, &rowfeed.Config{BatchSize: 2})
		for range 5 {
			x.Exec("UPDATE kv SET v = v + 1 WHERE id <= 3")
			var ctx context.Context
			ctx, stop = context.WithCancel(x.Ctx)
			if n, err := f.Publish(ctx); n != 2 || err == nil {
				x.Fatalf("a pass published %d rows, %v", n, err)
			}
		}
		if n := x.Scalar("SELECT count(*) FROM kv WHERE feed_sync_id IS NULL AND id > 3"); n != 0 {
			x.Errorf("%d rows that are not hot are not published", n)
		}
		stop = func() {}
		if _, err := f.Publish(x.Ctx); err != nil {
			x.Fatal(err)
		}
		k := x.Recorder(f, 0)
		k.Read()
		k.Check(x.KVRows(), suite.ByID)
	})
}
