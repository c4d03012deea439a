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

// TestRepublishInTheStatement (M12): the writer sets feed_sync_id to NULL in the
// statement of its change. Rolled back, row and position are what they were; a pass
// meanwhile publishes neither.
func TestRepublishInTheStatement(t *testing.T) {
	testdb.Quick(t)
	suite.EachColumn(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'a', 1), (2, 'b', 2)")
		cursor := x.WantDrain(f, "", suite.KV(1, "a", 1), suite.KV(2, "b", 2))
		tx := x.Begin(sql.LevelReadCommitted)
		x.In(tx, "UPDATE kv SET v = 99 WHERE id = 1")
		if x.Family() != "sqlite" { // where nobody else can publish
			x.WantDrain(f, cursor)
		}
		if err := tx.Rollback(); err != nil {
			x.Fatal(err)
		}
		x.WantDrain(f, cursor)
		x.WantPage(f, "", 5, "1 "+suite.KV(1, "a", 1), "2 "+suite.KV(2, "b", 2), "> 2")
		x.Exec("UPDATE kv SET v = 3 WHERE id = 1")
		x.WantPage(f, "", 5, "2 "+suite.KV(2, "b", 2), "> 2") // out of the feed until it is published
		x.WantDrain(f, cursor, suite.KV(1, "a", 3))
		x.WantSound(f)
	})
}

// TestPublishingChangesNothingElse: of a row that is published only feed_sync_id
// changes, also where the table has columns that follow every UPDATE, added before or
// after the feed.
func TestPublishingChangesNothingElse(t *testing.T) {
	testdb.Quick(t)
	eachRows(t, func(x *suite.Env) {
		follows := ""
		if x.Family() == "mysql" {
			follows = ", at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6), d DATETIME NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP"
		}
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT" + follows + ")")
		f := x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
		x.Exec("INSERT INTO kv (id, k, v) VALUES (1, 'a', 1), (2, 'b', 2)")
		columns := "id, k, v"
		if x.Family() == "mysql" {
			x.Exec("UPDATE kv SET at = '2001-01-01 00:00:00', d = NULL")
			x.Publish(f)
			x.Exec("ALTER TABLE kv ADD COLUMN late TIMESTAMP(6) NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP(6)", "UPDATE kv SET at = '2001-01-01 00:00:00', d = NULL, late = NULL")
			columns += ", at, d, late"
		}
		rows := func() string {
			return fmt.Sprint(x.Rows("SELECT "+columns+" FROM kv ORDER BY id", "k", "at", "d", "late"))
		}
		before := rows()
		if n := x.Publish(f); n != 2 {
			x.Errorf("%d rows were published", n)
		}
		x.Exec("UPDATE kv SET shard = shard") // waits again
		if x.Family() == "mysql" {
			x.Exec("UPDATE kv SET at = '2001-01-01 00:00:00', d = NULL, late = NULL")
		}
		// Repair gives new positions, and changes as little.
		x.DB.Exec(x.T, "UPDATE kv SET feed_sync_id = 7"+x.By(map[string]string{"sqlite": "", "postgres": "", "mysql": ", at = at, d = d, late = late"}))
		if n, err := f.Admin().Repair(x.Ctx); n != 2 || err != nil {
			x.Errorf("repaired %d rows, %v", n, err)
		}
		x.Publish(f)
		if after := rows(); after != before {
			x.Errorf("rows were %s, and are %s", before, after)
		}
		x.WantSound(f)
		columns += ", feed_sync_id" // stays when the feed is divided anew
		before = rows()
		x.Reshard(f, 9)
		if after := rows(); after != before {
			x.Errorf("rows were %s, and are %s", before, after)
		}
	})
}

// TestHeldRowsAreLate (G5, H17, H18): rows that waited when a writer
// took them are passed over, and nobody waits for anybody: the publisher publishes the
// others, in batches smaller than what is held, and other writers write meanwhile. On
// MariaDB every form of the UPDATE but ours waits here.
func TestHeldRowsAreLate(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.Servers...) // SQLite has one writer
	eachRows(t, func(x *suite.Env) {
		x.AddKV()
		x.Fill(40)
		f := x.Tapped(testdb.Hooks{}, &rowfeed.Config{BatchSize: 3})
		for _, isolation := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
			x.Exec("UPDATE kv SET v = 1")
			stuck := x.Begin(isolation)
			x.In(stuck, "UPDATE kv SET v = 2 WHERE id = 1", "UPDATE kv SET v = 2 WHERE id = 2", "UPDATE kv SET v = 2 WHERE id = 3",
				"UPDATE kv SET v = 2 WHERE id = 21", "UPDATE kv SET v = 2 WHERE id = 40", "INSERT INTO kv VALUES (41, 'k', 2)", "DELETE FROM kv WHERE id = 30")
			if n, err := f.Publish(x.Bounded()); n != 34 || err != nil {
				x.Fatalf("beside a writer in %v %d rows were published, want 34: %v", isolation, n, err)
			}
			other := x.Begin(sql.LevelReadCommitted)
			x.In(other, "UPDATE kv SET v = 3 WHERE id = 22", "INSERT INTO kv VALUES (42, 'k', 3)")
			x.Commit(other)
			if n, err := f.Publish(x.Bounded()); n != 2 || err != nil {
				x.Fatalf("beside a writer in %v %d rows were published, want 2: %v", isolation, n, err)
			}
			x.Commit(stuck)
			if n, err := f.Publish(x.Bounded()); n != 7 || err != nil {
				x.Fatalf("after the writer in %v %d keys were published, want 7: %v", isolation, n, err)
			}
			k := x.Keeper(f, 0)
			k.Read()
			k.Judge(x.KVRows(), suite.ByID)
			x.WantSound(f)
			x.Exec("DELETE FROM kv")
			x.Fill(40)
			x.Publish(f)
		}
	})
}

// TestKeyThatIsNotPrimary: the feed's key is another unique index than the primary key;
// rows are placed through it, also beside a writer that holds some.
func TestKeyThatIsNotPrimary(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		x.Exec(x.Exact("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(20) NOT NULL, v BIGINT)"), "CREATE UNIQUE INDEX kv_k ON kv (k)")
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
			x.Fatalf("entries %q", lines)
		}
		if x.Family() == "sqlite" {
			return // has one writer
		}
		x.Exec("UPDATE kv SET v = 1 WHERE id > 90")
		stuck := x.Begin(sql.LevelRepeatableRead)
		x.In(stuck, "UPDATE kv SET v = 2 WHERE id = 95", "UPDATE kv SET v = 2 WHERE id = 85")
		if n, err := f.Publish(x.Bounded()); n != 9 || err != nil {
			x.Fatalf("%d rows were published beside a writer, want 9: %v", n, err)
		}
		_, cursor = x.Drain(f, cursor)
		x.Commit(stuck)
		lines, _ = x.Drain(f, cursor)
		if want := []string{row(5, 2), row(15, 2)}; !slices.Equal(lines, want) {
			x.Errorf("entries %q, want %q", lines, want)
		}
		x.WantSound(f)
	})
}

// TestPausedPublisher (H18): while a publisher is stopped before its COMMIT only
// the rows that it took are held; every other row can be written.
func TestPausedPublisher(t *testing.T) {
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
		for _, statement := range []string{"UPDATE kv SET v = 2 WHERE id = 4", "UPDATE kv SET v = 2 WHERE id = 6", "INSERT INTO kv VALUES (11, 'k', 2)", "DELETE FROM kv WHERE id = 1"} {
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
		k := x.Keeper(plain, 0)
		x.Publish(plain)
		k.Read()
		k.Judge(x.KVRows(), suite.ByID)
	})
}

// TestParentIsNotHeld (H22): a row to which an open transaction only refers, by
// a foreign key, is published, and referring to a row that is being published does not
// wait. MySQL and MariaDB have no such lock: there the row is late.
func TestParentIsNotHeld(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has one writer
	suite.EachColumn(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("CREATE TABLE child (id BIGINT NOT NULL PRIMARY KEY, parent BIGINT, FOREIGN KEY (parent) REFERENCES kv (id))", "INSERT INTO kv VALUES (1, 'a', 0), (2, 'b', 0)")
		tx := x.Begin(sql.LevelReadCommitted)
		x.In(tx, "INSERT INTO child VALUES (1, 1)")
		want := 2
		if x.Family() == "mysql" {
			want = 1
		}
		if n, err := f.Publish(x.Bounded()); n != want || err != nil {
			x.Errorf("%d rows were published, want %d: %v", n, want, err)
		}
		x.Commit(tx)
		x.Publish(f)
		if x.Family() == "mysql" {
			return
		}
		x.Exec("UPDATE kv SET v = 1")
		held := testdb.Hold(func(ev testdb.TapEvent) bool { return ev.Kind == testdb.Commit })
		paused := x.Tapped(testdb.Hooks{Before: held.Before}, nil)
		result := make(chan error, 1)
		go func() { _, err := paused.Publish(x.Ctx); result <- err }()
		<-held.Reached
		if _, err := x.DB.Admin().ExecContext(x.Bounded(), "INSERT INTO child VALUES (2, 2)"); err != nil {
			x.Errorf("referring to a row waits for its publisher: %v", err)
		}
		held.Release()
		if err := <-result; err != nil {
			x.Error(err)
		}
	})
}

// TestGoingRound (H13): rows that are written again before every pass do not
// keep those behind them waiting, though they fill every batch.
func TestGoingRound(t *testing.T) {
	eachRows(t, func(x *suite.Env) {
		x.AddKV()
		x.Fill(9)
		// Each call of Publish is stopped after its first pass; more rows are hot than one
		// takes.
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
			x.Errorf("%d rows behind the hot ones still wait", n)
		}
		stop = func() {}
		if _, err := f.Publish(x.Ctx); err != nil {
			x.Fatal(err)
		}
		k := x.Keeper(f, 0)
		k.Read()
		k.Judge(x.KVRows(), suite.ByID)
	})
}
