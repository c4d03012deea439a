package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestOutboxKeyChanged (M59): a row that an UPDATE gives another key is another row: the trigger
// records it, before its first record was moved and after that; other updates make no record.
func TestOutboxKeyChanged(t *testing.T) {
	eachOutboxTrigger(t, func(x *events) {
		made := x.db.Dump(x.T)
		x.exec("INSERT INTO events VALUES (1, 0, 'a'), (2, 0, 'b')", "UPDATE events SET id = 3 WHERE id = 1")
		x.publish(x.feed)
		page := x.page(x.feed, 0, "", 10)
		x.wantIDs(page, false, 2, 3)
		x.exec("UPDATE events SET id = 5, shard = 9 WHERE id = 3", "UPDATE events SET data = 'bb' WHERE id = 2", "UPDATE events SET id = id")
		if n := x.scalar("SELECT count(*) FROM rowfeed_outbox_events"); n != 1 {
			x.Errorf("%d records", n)
		}
		x.wantShard(9, 5)
		x.wantIDs(x.page(x.feed, 0, page.Cursor, 10), false)
		x.wantSound(x.feed)
		// A feed of before has no such trigger: it is found, and made.
		if x.family() == "postgres" {
			x.exec("CREATE OR REPLACE TRIGGER rowfeed_events_capture AFTER INSERT ON events FOR EACH ROW EXECUTE FUNCTION rowfeed_events_capture()",
				"ALTER TABLE events ENABLE ALWAYS TRIGGER rowfeed_events_capture")
		} else {
			x.exec("DROP TRIGGER rowfeed_events_update")
		}
		problems, err := x.feed.Admin().Verify(x.ctx)
		if err != nil || len(problems) != 1 || !strings.Contains(problems[0], "trigger") {
			x.Errorf("problems %q, %v", problems, err)
		}
		if mended, err := x.feed.Admin().Upgrade(x.ctx); err != nil || len(mended) != 1 {
			x.Errorf("mended %q, %v", mended, err)
		}
		x.exec("UPDATE events SET id = 6, shard = 0 WHERE id = 5")
		x.wantShard(0, 2, 6)
		if again := x.db.Dump(x.T); again != made {
			x.Errorf("mended:\n%s\nbefore:\n%s", again, made)
		}
	})
}

// TestOutboxNoShard (M59): on SQLite a column holds anything. A statement that would put a row
// into no shard fails, whatever it says of conflicts, so that no row stays without a record; rows
// of before are named where a feed is made, by back-fill and by repair.
func TestOutboxNoShard(t *testing.T) {
	testdb.Only(t, testdb.SQLite)
	each(t, func(env *env) {
		env.exec("CREATE TABLE events (id BIGINT NOT NULL PRIMARY KEY, shard INT NOT NULL DEFAULT 0, data VARCHAR(100))", "INSERT INTO events VALUES (1, 'x', 'a')")
		refused := func(err error, key string) {
			env.Helper()
			if env.wantCode(err, rowfeed.Refused); !strings.Contains(fmt.Sprint(err), key) {
				env.Error(err)
			}
		}
		before := env.db.Dump(env.T)
		_, err := env.rf.AddFeed(env.ctx, outboxTriggerSpec(), nil)
		refused(err, `{"id":1}`)
		if after := env.db.Dump(env.T); after != before {
			env.Errorf("a refusal left behind\n%s\nbefore:\n%s", after, before)
		}
		env.exec("DELETE FROM events")
		x := &events{env, env.add(outboxTriggerSpec())}
		for _, verb := range []string{"INSERT", "INSERT OR IGNORE", "INSERT OR REPLACE", "INSERT OR FAIL"} {
			x.mustFail(verb + " INTO events VALUES (1, 'x', 'a')")
			x.mustFail(verb + " INTO events VALUES (2, 1.5, 'a')")
		}
		x.exec("INSERT OR IGNORE INTO events VALUES (3, '4', 'a'), (3, 4, 'b')")
		x.mustFail("UPDATE OR IGNORE events SET id = 4, shard = 'x' WHERE id = 3")
		x.wantShard(4, 3)
		x.exec("DROP TRIGGER rowfeed_events_insert", "INSERT INTO events VALUES (5, 'x', 'a'), (6, 4, 'b')")
		_, err = x.feed.Admin().Repair(x.ctx)
		refused(err, `{"id":5}`)
		_, err = x.feed.Admin().BackFill(x.ctx, nil)
		refused(err, `{"id":5}`)
		x.exec("UPDATE events SET shard = 4 WHERE id = 5")
		if n, err := x.feed.Admin().BackFill(x.ctx, nil); n != 2 || err != nil {
			x.Errorf("%d placed, %v", n, err)
		}
		x.wantShard(4, 5, 6, 3)
	})
}

// TestShardColumns (M59): a column whose numbers no shard has, or that triggers cannot read, is
// no shard column, in either mode of ULIDs.
func TestShardColumns(t *testing.T) {
	each(t, func(x *env) {
		before := ""
		refused := func(spec rowfeed.FeedSpec, why string) {
			x.Helper()
			_, err := x.rf.AddFeed(x.ctx, spec, nil)
			if x.wantCode(err, rowfeed.Refused); !strings.Contains(fmt.Sprint(err), why) {
				x.Error(err)
			}
			if after := x.db.Dump(x.T); after != before {
				x.Errorf("a refusal left behind\n%s\nbefore:\n%s", after, before)
			}
		}
		spec := outboxTriggerSpec()
		switch {
		case x.family() == "mysql":
			x.exec("CREATE TABLE events (id BIGINT NOT NULL PRIMARY KEY, ulid BINARY(16) NOT NULL, shard BIGINT UNSIGNED NOT NULL, small INT UNSIGNED NOT NULL, UNIQUE KEY events_feed (shard, ulid))")
			before = x.db.Dump(x.T)
			refused(spec, "unsigned")
			refused(eventsSpec(), "unsigned")
			spec.ShardColumn = "small"
			y := &events{x, x.add(spec)}
			x.exec("INSERT INTO events VALUES (1, '1234567890123456', 5, 4294967295)")
			y.wantShard(4294967295, 1)
		case x.engine == testdb.Postgres18:
			x.exec("CREATE TABLE events (id BIGINT NOT NULL PRIMARY KEY, shard INT GENERATED ALWAYS AS (id % 4) VIRTUAL NOT NULL, kept INT GENERATED ALWAYS AS (id % 4) STORED NOT NULL)")
			before = x.db.Dump(x.T)
			refused(spec, "triggers")
			spec.Capture = "app"
			x.add(spec)
			if err := x.rf.DropFeed(x.ctx, "events"); err != nil {
				x.Fatal(err)
			}
			spec.Capture, spec.ShardColumn = "trigger", "kept"
			y := &events{x, x.add(spec)}
			x.exec("INSERT INTO events (id) VALUES (7)")
			y.wantShard(3, 7)
		}
	})
}

// TestOutboxRepairInBatches (M59): repair appends records in batches along the key, each a
// transaction of its own, however many rows lack one.
func TestOutboxRepairInBatches(t *testing.T) {
	each(t, func(x *env) {
		x.oldRows(0)
		y := &events{x, x.add(backfillSpec())}
		x.unrecorded(1, 2100)
		x.exec("INSERT INTO kv VALUES (3000, 0, NULL)")
		var batches []string
		f, err := x.tappedDB(testdb.Hooks{After: func(_ context.Context, ev testdb.TapEvent, err error) error {
			if strings.HasPrefix(ev.SQL, "INSERT INTO ") && strings.Contains(ev.SQL, ") SELECT x.shard") {
				batches = append(batches, "insert")
			}
			if ev.Kind == testdb.Commit && len(batches) > 0 && batches[len(batches)-1] == "insert" {
				batches = append(batches, "commit")
			}
			return err
		}}, nil).Feed(x.ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		if n, err := f.Admin().Repair(x.ctx); n != 2100 || err != nil {
			x.Errorf("%d repaired, %v", n, err)
		}
		if want := []string{"insert", "commit", "insert", "commit"}; !slices.Equal(batches, want) {
			x.Errorf("statements %q", batches)
		}
		y.wantSound(y.feed)
		if n, err := f.Admin().Repair(x.ctx); n != 0 || err != nil {
			x.Errorf("%d repaired, %v", n, err)
		}
	})
}

// TestOutboxBulkWriter (M59): INSERT … SELECT into the outbox as docs/ULIDS.md writes it keeps no other
// writer waiting, also on MariaDB, however long its SELECT takes.
func TestOutboxBulkWriter(t *testing.T) {
	testdb.Only(t, testdb.InnoDB...)
	eachOutbox(t, func(x *events) {
		held, err := x.db.Admin().Conn(x.ctx)
		if err != nil {
			x.Fatal(err)
		}
		defer held.Close()
		lock := func(statement string) {
			x.Helper()
			var got int
			if err := held.QueryRowContext(x.ctx, statement).Scan(&got); err != nil || got != 1 {
				x.Fatal(got, err)
			}
		}
		lock("SELECT GET_LOCK('" + x.db.Name + "', 60)")
		bulk := make(chan error, 1)
		pool := x.writer(testdb.Hooks{})
		go func() {
			_, err := pool.ExecContext(x.ctx, bulkInsert("SELECT 0 AS shard, s.id FROM (SELECT 1 AS id UNION ALL SELECT 2) s WHERE s.id = 1 OR GET_LOCK('"+x.db.Name+"', 60)"))
			bulk <- err
		}()
		x.eventually("the bulk writer is in the middle", func() bool {
			return x.scalar("SELECT count(*) FROM information_schema.PROCESSLIST WHERE STATE = 'User lock' AND DB = '"+x.db.Name+"'") == 1
		})
		x.exec("INSERT INTO rowfeed_outbox_events (shard, id) VALUES (1, 3)")
		select {
		case err := <-bulk:
			x.Errorf("the bulk writer is done: %v", err)
		default:
		}
		lock("SELECT RELEASE_LOCK('" + x.db.Name + "')")
		if err := <-bulk; err != nil {
			x.Error(err)
		}
		if n := x.scalar("SELECT count(*) FROM rowfeed_outbox_events"); n != 3 {
			x.Errorf("%d records", n)
		}
	})
}

// bulkInsert is the form that docs/ULIDS.md gives such statements.
func bulkInsert(query string) string {
	return "INSERT INTO rowfeed_outbox_events (shard, id) SELECT x.shard, x.id FROM (" + query + " LIMIT 9223372036854775807) x"
}
