package outbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestOutboxKeyChanged (M59): a row that an UPDATE gives another key is another row: the trigger
// records it, before its first record was moved and after that; other updates make no record.
func TestOutboxKeyChanged(t *testing.T) {
	eachOutboxTrigger(t, func(x *suite.Events) {
		made := x.DB.Dump(x.T)
		x.Exec("INSERT INTO events VALUES (1, 0, 'a'), (2, 0, 'b')", "UPDATE events SET id = 3 WHERE id = 1")
		x.Publish(x.Feed)
		page := x.Page(x.Feed, 0, "", 10)
		x.WantIDs(page, false, 2, 3)
		x.Exec("UPDATE events SET id = 5, shard = 9 WHERE id = 3", "UPDATE events SET data = 'bb' WHERE id = 2", "UPDATE events SET id = id")
		if n := x.Scalar("SELECT count(*) FROM rowfeed_outbox_events"); n != 1 {
			x.Errorf("%d records", n)
		}
		x.WantShard(9, 5)
		x.WantIDs(x.Page(x.Feed, 0, page.Cursor, 10), false)
		x.WantSound(x.Feed)
		// A feed of before has no such trigger: it is found, and made.
		if x.Family() == "postgres" {
			x.Exec("CREATE OR REPLACE TRIGGER rowfeed_events_capture AFTER INSERT ON events FOR EACH ROW EXECUTE FUNCTION rowfeed_events_capture()",
				"ALTER TABLE events ENABLE ALWAYS TRIGGER rowfeed_events_capture")
		} else {
			x.Exec("DROP TRIGGER rowfeed_events_update")
		}
		problems, err := x.Feed.Admin().Verify(x.Ctx)
		if err != nil || len(problems) != 1 || !strings.Contains(problems[0], "trigger") {
			x.Errorf("problems %q, %v", problems, err)
		}
		if mended, err := x.Feed.Admin().Upgrade(x.Ctx); err != nil || len(mended) != 1 {
			x.Errorf("mended %q, %v", mended, err)
		}
		x.Exec("UPDATE events SET id = 6, shard = 0 WHERE id = 5")
		x.WantShard(0, 2, 6)
		if again := x.DB.Dump(x.T); again != made {
			x.Errorf("mended:\n%s\nbefore:\n%s", again, made)
		}
	})
}

// TestOutboxNoShard (M59): on SQLite a column holds anything. A statement that would put a row
// into no shard fails, whatever it says of conflicts, so that no row stays without a record; rows
// of before are named where a feed is made, by back-fill and by repair.
func TestOutboxNoShard(t *testing.T) {
	testdb.Only(t, testdb.SQLite)
	suite.Each(t, func(env *suite.Env) {
		env.Exec("CREATE TABLE events (id BIGINT NOT NULL PRIMARY KEY, shard INT NOT NULL DEFAULT 0, data VARCHAR(100))", "INSERT INTO events VALUES (1, 'x', 'a')")
		refused := func(err error, key string) {
			env.Helper()
			if env.WantCode(err, rowfeed.Refused); !strings.Contains(fmt.Sprint(err), key) {
				env.Error(err)
			}
		}
		before := env.DB.Dump(env.T)
		_, err := env.RF.AddFeed(env.Ctx, suite.OutboxTriggerSpec(), nil)
		refused(err, `{"id":1}`)
		if after := env.DB.Dump(env.T); after != before {
			env.Errorf("a refusal left behind\n%s\nbefore:\n%s", after, before)
		}
		env.Exec("DELETE FROM events")
		x := &suite.Events{Env: env, Feed: env.Add(suite.OutboxTriggerSpec())}
		for _, verb := range []string{"INSERT", "INSERT OR IGNORE", "INSERT OR REPLACE", "INSERT OR FAIL"} {
			x.MustFail(verb + " INTO events VALUES (1, 'x', 'a')")
			x.MustFail(verb + " INTO events VALUES (2, 1.5, 'a')")
		}
		x.Exec("INSERT OR IGNORE INTO events VALUES (3, '4', 'a'), (3, 4, 'b')")
		x.MustFail("UPDATE OR IGNORE events SET id = 4, shard = 'x' WHERE id = 3")
		x.WantShard(4, 3)
		x.Exec("DROP TRIGGER rowfeed_events_insert", "INSERT INTO events VALUES (5, 'x', 'a'), (6, 4, 'b')")
		_, err = x.Feed.Admin().Repair(x.Ctx)
		refused(err, `{"id":5}`)
		_, err = x.Feed.Admin().BackFill(x.Ctx, nil)
		refused(err, `{"id":5}`)
		x.Exec("UPDATE events SET shard = 4 WHERE id = 5")
		if n, err := x.Feed.Admin().BackFill(x.Ctx, nil); n != 2 || err != nil {
			x.Errorf("%d placed, %v", n, err)
		}
		x.WantShard(4, 5, 6, 3)
	})
}

// TestShardColumns (M59): a column whose numbers no shard has, or that triggers cannot read, is
// no shard column, in either mode of ULIDs.
func TestShardColumns(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		before := ""
		refused := func(spec rowfeed.FeedSpec, why string) {
			x.Helper()
			_, err := x.RF.AddFeed(x.Ctx, spec, nil)
			if x.WantCode(err, rowfeed.Refused); !strings.Contains(fmt.Sprint(err), why) {
				x.Error(err)
			}
			if after := x.DB.Dump(x.T); after != before {
				x.Errorf("a refusal left behind\n%s\nbefore:\n%s", after, before)
			}
		}
		spec := suite.OutboxTriggerSpec()
		switch {
		case x.Family() == "mysql":
			x.Exec("CREATE TABLE events (id BIGINT NOT NULL PRIMARY KEY, ulid BINARY(16) NOT NULL, shard BIGINT UNSIGNED NOT NULL, small INT UNSIGNED NOT NULL, UNIQUE KEY events_feed (shard, ulid))")
			before = x.DB.Dump(x.T)
			refused(spec, "unsigned")
			refused(suite.EventsSpec(), "unsigned")
			spec.ShardColumn = "small"
			y := &suite.Events{Env: x, Feed: x.Add(spec)}
			x.Exec("INSERT INTO events VALUES (1, '1234567890123456', 5, 4294967295)")
			y.WantShard(4294967295, 1)
		case x.Engine == testdb.Postgres18:
			x.Exec("CREATE TABLE events (id BIGINT NOT NULL PRIMARY KEY, shard INT GENERATED ALWAYS AS (id % 4) VIRTUAL NOT NULL, kept INT GENERATED ALWAYS AS (id % 4) STORED NOT NULL)")
			before = x.DB.Dump(x.T)
			refused(spec, "triggers")
			spec.Capture = "app"
			x.Add(spec)
			if err := x.RF.DropFeed(x.Ctx, "events"); err != nil {
				x.Fatal(err)
			}
			spec.Capture, spec.ShardColumn = "trigger", "kept"
			y := &suite.Events{Env: x, Feed: x.Add(spec)}
			x.Exec("INSERT INTO events (id) VALUES (7)")
			y.WantShard(3, 7)
		}
	})
}

// TestOutboxRepairInBatches (M59): repair appends records in batches along the key, each a
// transaction of its own, however many rows lack one.
func TestOutboxRepairInBatches(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.OldRows(0)
		y := &suite.Events{Env: x, Feed: x.Add(suite.BackfillSpec())}
		unrecorded(x, 1, 2100)
		x.Exec("INSERT INTO kv VALUES (3000, 0, NULL)")
		var batches []string
		f, err := x.TappedDB(testdb.Hooks{After: func(_ context.Context, ev testdb.TapEvent, err error) error {
			if strings.HasPrefix(ev.SQL, "INSERT INTO ") && strings.Contains(ev.SQL, ") SELECT x.shard") {
				batches = append(batches, "insert")
			}
			if ev.Kind == testdb.Commit && len(batches) > 0 && batches[len(batches)-1] == "insert" {
				batches = append(batches, "commit")
			}
			return err
		}}, nil).Feed(x.Ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		if n, err := f.Admin().Repair(x.Ctx); n != 2100 || err != nil {
			x.Errorf("%d repaired, %v", n, err)
		}
		if want := []string{"insert", "commit", "insert", "commit"}; !slices.Equal(batches, want) {
			x.Errorf("statements %q", batches)
		}
		y.WantSound(y.Feed)
		if n, err := f.Admin().Repair(x.Ctx); n != 0 || err != nil {
			x.Errorf("%d repaired, %v", n, err)
		}
	})
}

// TestOutboxBulkWriter (M59): INSERT … SELECT into the outbox as docs/ULIDS.md writes it keeps no other
// writer waiting, also on MariaDB, however long its SELECT takes.
func TestOutboxBulkWriter(t *testing.T) {
	testdb.Only(t, testdb.InnoDB...)
	suite.EachOutbox(t, func(x *suite.Events) {
		held, err := x.DB.Admin().Conn(x.Ctx)
		if err != nil {
			x.Fatal(err)
		}
		defer held.Close()
		lock := func(statement string) {
			x.Helper()
			var got int
			if err := held.QueryRowContext(x.Ctx, statement).Scan(&got); err != nil || got != 1 {
				x.Fatal(got, err)
			}
		}
		lock("SELECT GET_LOCK('" + x.DB.Name + "', 60)")
		bulk := make(chan error, 1)
		pool := x.Writer(testdb.Hooks{})
		go func() {
			_, err := pool.ExecContext(x.Ctx, bulkInsert("SELECT 0 AS shard, s.id FROM (SELECT 1 AS id UNION ALL SELECT 2) s WHERE s.id = 1 OR GET_LOCK('"+x.DB.Name+"', 60)"))
			bulk <- err
		}()
		x.Eventually("the bulk writer is in the middle", func() bool {
			return x.Scalar("SELECT count(*) FROM information_schema.PROCESSLIST WHERE STATE = 'User lock' AND DB = '"+x.DB.Name+"'") == 1
		})
		x.Exec("INSERT INTO rowfeed_outbox_events (shard, id) VALUES (1, 3)")
		select {
		case err := <-bulk:
			x.Errorf("the bulk writer is done: %v", err)
		default:
		}
		lock("SELECT RELEASE_LOCK('" + x.DB.Name + "')")
		if err := <-bulk; err != nil {
			x.Error(err)
		}
		if n := x.Scalar("SELECT count(*) FROM rowfeed_outbox_events"); n != 3 {
			x.Errorf("%d records", n)
		}
	})
}

// bulkInsert is the form that docs/ULIDS.md gives such statements.
func bulkInsert(query string) string {
	return "INSERT INTO rowfeed_outbox_events (shard, id) SELECT x.shard, x.id FROM (" + query + " LIMIT 9223372036854775807) x"
}
