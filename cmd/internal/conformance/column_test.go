package conformance

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// eachColumn runs f on every engine with capture "column".
func eachColumn(t *testing.T, f func(x *env)) {
	t.Helper()
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		x := newEnv(t, e, nil)
		x.capture = feedtype.CaptureColumn
		x.migrate()
		f(x)
	})
}

// bounded is a context for what must not wait for anybody.
func (x *env) bounded() context.Context {
	ctx, cancel := context.WithTimeout(x.ctx, 40*time.Second) // before a server gives up waiting
	x.Cleanup(cancel)
	return ctx
}

// TestRepublishInTheStatement (M12): the writer sets feed_sync_id to NULL in the
// statement of its change. Rolled back, row and position are what they were; a pass
// meanwhile publishes neither.
func TestRepublishInTheStatement(t *testing.T) {
	testdb.Quick(t)
	eachColumn(t, func(x *env) {
		f := x.addKV()
		x.exec("INSERT INTO kv VALUES (1, 'a', 1), (2, 'b', 2)")
		cursor := x.wantDrain(f, "", kv(1, "a", 1), kv(2, "b", 2))
		tx := x.begin(sql.LevelReadCommitted)
		x.in(tx, "UPDATE kv SET v = 99 WHERE id = 1")
		if x.family() != "sqlite" { // where nobody else can publish
			x.wantDrain(f, cursor)
		}
		if err := tx.Rollback(); err != nil {
			x.Fatal(err)
		}
		x.wantDrain(f, cursor)
		x.wantPage(f, "", 5, "1 "+kv(1, "a", 1), "2 "+kv(2, "b", 2), "> 2")
		x.exec("UPDATE kv SET v = 3 WHERE id = 1")
		x.wantPage(f, "", 5, "2 "+kv(2, "b", 2), "> 2") // out of the feed until it is published
		x.wantDrain(f, cursor, kv(1, "a", 3))
		x.wantSound(f)
	})
}

// TestPublishingChangesNothingElse: of a row that is published only feed_sync_id
// changes, also where the table has columns that follow every UPDATE, added before or
// after the feed.
func TestPublishingChangesNothingElse(t *testing.T) {
	testdb.Quick(t)
	eachRows(t, func(x *env) {
		follows := ""
		if x.family() == "mysql" {
			follows = ", at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6), d DATETIME NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP"
		}
		x.exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT" + follows + ")")
		f := x.add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
		x.exec("INSERT INTO kv (id, k, v) VALUES (1, 'a', 1), (2, 'b', 2)")
		columns := "id, k, v"
		if x.family() == "mysql" {
			x.exec("UPDATE kv SET at = '2001-01-01 00:00:00', d = NULL")
			x.publish(f)
			x.exec("ALTER TABLE kv ADD COLUMN late TIMESTAMP(6) NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP(6)", "UPDATE kv SET at = '2001-01-01 00:00:00', d = NULL, late = NULL")
			columns += ", at, d, late"
		}
		rows := func() string {
			return fmt.Sprint(x.rows("SELECT "+columns+" FROM kv ORDER BY id", "k", "at", "d", "late"))
		}
		before := rows()
		if n := x.publish(f); n != 2 {
			x.Errorf("%d rows were published", n)
		}
		x.exec("UPDATE kv SET shard = shard") // waits again
		if x.family() == "mysql" {
			x.exec("UPDATE kv SET at = '2001-01-01 00:00:00', d = NULL, late = NULL")
		}
		// Repair gives new positions, and changes as little.
		x.db.Exec(x.T, "UPDATE kv SET feed_sync_id = 7"+x.by(map[string]string{"sqlite": "", "postgres": "", "mysql": ", at = at, d = d, late = late"}))
		if n, err := f.Admin().Repair(x.ctx); n != 2 || err != nil {
			x.Errorf("repaired %d rows, %v", n, err)
		}
		x.publish(f)
		if after := rows(); after != before {
			x.Errorf("rows were %s, and are %s", before, after)
		}
		x.wantSound(f)
		columns += ", feed_sync_id" // stays when the feed is divided anew
		before = rows()
		x.reshard(f, 9)
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
	eachRows(t, func(x *env) {
		x.addKV()
		x.fill(40)
		f := x.tapped(testdb.Hooks{}, &rowfeed.Config{BatchSize: 3})
		for _, isolation := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
			x.exec("UPDATE kv SET v = 1")
			stuck := x.begin(isolation)
			x.in(stuck, "UPDATE kv SET v = 2 WHERE id = 1", "UPDATE kv SET v = 2 WHERE id = 2", "UPDATE kv SET v = 2 WHERE id = 3",
				"UPDATE kv SET v = 2 WHERE id = 21", "UPDATE kv SET v = 2 WHERE id = 40", "INSERT INTO kv VALUES (41, 'k', 2)", "DELETE FROM kv WHERE id = 30")
			if n, err := f.Publish(x.bounded()); n != 34 || err != nil {
				x.Fatalf("beside a writer in %v %d rows were published, want 34: %v", isolation, n, err)
			}
			other := x.begin(sql.LevelReadCommitted)
			x.in(other, "UPDATE kv SET v = 3 WHERE id = 22", "INSERT INTO kv VALUES (42, 'k', 3)")
			x.commit(other)
			if n, err := f.Publish(x.bounded()); n != 2 || err != nil {
				x.Fatalf("beside a writer in %v %d rows were published, want 2: %v", isolation, n, err)
			}
			x.commit(stuck)
			if n, err := f.Publish(x.bounded()); n != 7 || err != nil {
				x.Fatalf("after the writer in %v %d keys were published, want 7: %v", isolation, n, err)
			}
			k := x.keeper(f, 0)
			k.read()
			k.judge(x.kvRows(), byID)
			x.wantSound(f)
			x.exec("DELETE FROM kv")
			x.fill(40)
			x.publish(f)
		}
	})
}

// TestKeyThatIsNotPrimary: the feed's key is another unique index than the primary key;
// rows are placed through it, also beside a writer that holds some.
func TestKeyThatIsNotPrimary(t *testing.T) {
	eachColumn(t, func(x *env) {
		x.exec(x.exact("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(20) NOT NULL, v BIGINT)"), "CREATE UNIQUE INDEX kv_k ON kv (k)")
		x.add(rowfeed.FeedSpec{Name: "kv", Table: "kv", Key: []string{"k"}})
		for id := range 20 {
			x.exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k%02d', 0)", 100-id, id))
		}
		f := x.tapped(testdb.Hooks{}, &rowfeed.Config{BatchSize: 3})
		row := func(id, v int) string { return fmt.Sprintf(`upsert {"id":%d,"k":"k%02d","v":%d}`, 100-id, id, v) }
		var want []string
		for id := range 20 {
			want = append(want, row(id, 0))
		}
		lines, cursor := x.drain(f, "")
		if !slices.Equal(lines, want) { // in the order of k, which is not that of id
			x.Fatalf("entries %q", lines)
		}
		if x.family() == "sqlite" {
			return // has one writer
		}
		x.exec("UPDATE kv SET v = 1 WHERE id > 90")
		stuck := x.begin(sql.LevelRepeatableRead)
		x.in(stuck, "UPDATE kv SET v = 2 WHERE id = 95", "UPDATE kv SET v = 2 WHERE id = 85")
		if n, err := f.Publish(x.bounded()); n != 9 || err != nil {
			x.Fatalf("%d rows were published beside a writer, want 9: %v", n, err)
		}
		_, cursor = x.drain(f, cursor)
		x.commit(stuck)
		lines, _ = x.drain(f, cursor)
		if want := []string{row(5, 2), row(15, 2)}; !slices.Equal(lines, want) {
			x.Errorf("entries %q, want %q", lines, want)
		}
		x.wantSound(f)
	})
}

// TestPausedPublisher (H18): while a publisher is stopped before its COMMIT only
// the rows that it took are held; every other row can be written.
func TestPausedPublisher(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has one writer
	eachRows(t, func(x *env) {
		plain := x.addKV()
		x.fill(10)
		x.publish(plain)
		x.exec("UPDATE kv SET v = 1 WHERE id = 5")
		held := testdb.Hold(func(ev testdb.TapEvent) bool { return ev.Kind == testdb.Commit })
		f := x.tapped(testdb.Hooks{Before: held.Before}, nil)
		result := make(chan error, 1)
		go func() { _, err := f.Publish(x.ctx); result <- err }()
		<-held.Reached
		writer := x.begin(sql.LevelReadCommitted)
		for _, statement := range []string{"UPDATE kv SET v = 2 WHERE id = 4", "UPDATE kv SET v = 2 WHERE id = 6", "INSERT INTO kv VALUES (11, 'k', 2)", "DELETE FROM kv WHERE id = 1"} {
			for _, part := range x.sql(statement) {
				if _, err := writer.ExecContext(x.bounded(), part); err != nil {
					x.Fatalf("%s waits for the publisher: %v", part, err)
				}
			}
		}
		x.commit(writer)
		held.Release()
		if err := <-result; err != nil {
			x.Fatal(err)
		}
		k := x.keeper(plain, 0)
		x.publish(plain)
		k.read()
		k.judge(x.kvRows(), byID)
	})
}

// TestParentIsNotHeld (H22): a row to which an open transaction only refers, by
// a foreign key, is published, and referring to a row that is being published does not
// wait. MySQL and MariaDB have no such lock: there the row is late.
func TestParentIsNotHeld(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has one writer
	eachColumn(t, func(x *env) {
		f := x.addKV()
		x.exec("CREATE TABLE child (id BIGINT NOT NULL PRIMARY KEY, parent BIGINT, FOREIGN KEY (parent) REFERENCES kv (id))", "INSERT INTO kv VALUES (1, 'a', 0), (2, 'b', 0)")
		tx := x.begin(sql.LevelReadCommitted)
		x.in(tx, "INSERT INTO child VALUES (1, 1)")
		want := 2
		if x.family() == "mysql" {
			want = 1
		}
		if n, err := f.Publish(x.bounded()); n != want || err != nil {
			x.Errorf("%d rows were published, want %d: %v", n, want, err)
		}
		x.commit(tx)
		x.publish(f)
		if x.family() == "mysql" {
			return
		}
		x.exec("UPDATE kv SET v = 1")
		held := testdb.Hold(func(ev testdb.TapEvent) bool { return ev.Kind == testdb.Commit })
		paused := x.tapped(testdb.Hooks{Before: held.Before}, nil)
		result := make(chan error, 1)
		go func() { _, err := paused.Publish(x.ctx); result <- err }()
		<-held.Reached
		if _, err := x.db.Admin().ExecContext(x.bounded(), "INSERT INTO child VALUES (2, 2)"); err != nil {
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
	eachRows(t, func(x *env) {
		x.addKV()
		x.fill(9)
		// Each call of Publish is stopped after its first pass; more rows are hot than one
		// takes.
		var stop context.CancelFunc
		f := x.tapped(testdb.Hooks{After: func(_ context.Context, ev testdb.TapEvent, err error) error {
			if ev.Kind == testdb.Commit && ev.InTx {
				stop()
			}
			return err
		}}, &rowfeed.Config{BatchSize: 2})
		for range 5 {
			x.exec("UPDATE kv SET v = v + 1 WHERE id <= 3")
			var ctx context.Context
			ctx, stop = context.WithCancel(x.ctx)
			if n, err := f.Publish(ctx); n != 2 || err == nil {
				x.Fatalf("a pass published %d rows, %v", n, err)
			}
		}
		if n := x.scalar("SELECT count(*) FROM kv WHERE feed_sync_id IS NULL AND id > 3"); n != 0 {
			x.Errorf("%d rows behind the hot ones still wait", n)
		}
		stop = func() {}
		if _, err := f.Publish(x.ctx); err != nil {
			x.Fatal(err)
		}
		k := x.keeper(f, 0)
		k.read()
		k.judge(x.kvRows(), byID)
	})
}
