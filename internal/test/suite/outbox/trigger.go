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

// TestChangedKeyIsAnotherRow (M59): an UPDATE of the key makes another row. The trigger records it, before and after
// its first record was moved. Other updates are not recorded. Upgrade makes the trigger of updates if it is missing.
func TestChangedKeyIsAnotherRow(t *testing.T) {
	eachOutboxTrigger(t, func(x *suite.Events) {
		made := x.DB.Dump(x.T)
		x.Exec("INSERT INTO events VALUES (1, 0, 'a'), (2, 0, 'b')", "UPDATE events SET id = 3 WHERE id = 1")
		x.Publish(x.Feed)
		page := x.Page(x.Feed, 0, "", 10)
		x.WantIDs(page, false, 2, 3)
		x.Exec("UPDATE events SET id = 5, shard = 9 WHERE id = 3", "UPDATE events SET data = 'bb' WHERE id = 2",
			"UPDATE events SET id = id")
		if n := x.Scalar("SELECT count(*) FROM rowfeed_outbox_events"); n != 1 {
			x.Errorf("%d records wait", n)
		}
		x.WantShard(9, 5)
		x.WantIDs(x.Page(x.Feed, 0, page.Cursor, 10), false)
		x.WantSound(x.Feed)
		// Verify finds that the trigger of updates is missing, and upgrade makes it.
		x.Exec(x.Statements("outbox.drop_update_trigger")...)
		problems, err := x.Feed.Admin().Verify(x.Ctx)
		if err != nil || len(problems) != 1 || !strings.Contains(problems[0], "trigger") {
			x.Errorf("verify found %q, %v", problems, err)
		}
		if mended, err := x.Feed.Admin().Upgrade(x.Ctx); err != nil || len(mended) != 1 {
			x.Errorf("upgrade mended %q, %v", mended, err)
		}
		x.Exec("UPDATE events SET id = 6, shard = 0 WHERE id = 5")
		x.WantShard(0, 2, 6)
		if again := x.DB.Dump(x.T); again != made {
			x.Errorf("after upgrade the schema is\n%s\nwant\n%s", again, made)
		}
	})
}

// TestRowWithoutShardIsRefused (M59): on SQLite the shard column can hold any value. A statement that would give a row
// no shard fails, whatever its conflict clause, so that no row is without a record. Errors of feed add, back-fill and
// repair name such rows.
func TestRowWithoutShardIsRefused(t *testing.T) {
	testdb.Only(t, testdb.SQLite)
	suite.Each(t, func(env *suite.Env) {
		env.Exec("CREATE TABLE events (id BIGINT NOT NULL PRIMARY KEY, shard INT NOT NULL DEFAULT 0, data VARCHAR(99))",
			"INSERT INTO events VALUES (1, 'x', 'a')")
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
			env.Errorf("after a refusal the schema is\n%s\nwant\n%s", after, before)
		}
		env.Exec("DELETE FROM events")
		x := &suite.Events{Env: env, Feed: env.Add(suite.OutboxTriggerSpec())}
		for _, statement := range x.Statements("outbox.insert_rows_without_shard") {
			x.MustFail(statement)
		}
		x.Exec(x.Text("outbox.insert_row_of_shard_4"))
		x.MustFail(x.Text("outbox.move_row_to_no_shard"))
		x.WantShard(4, 3)
		x.Exec("DROP TRIGGER rowfeed_events_insert", "INSERT INTO events VALUES (5, 'x', 'a'), (6, 4, 'b')")
		_, err = x.Feed.Admin().Repair(x.Ctx)
		refused(err, `{"id":5}`)
		_, err = x.Feed.Admin().BackFill(x.Ctx, nil)
		refused(err, `{"id":5}`)
		x.Exec("UPDATE events SET shard = 4 WHERE id = 5")
		if n, err := x.Feed.Admin().BackFill(x.Ctx, nil); n != 2 || err != nil {
			x.Errorf("back-fill placed %d rows, %v", n, err)
		}
		x.WantShard(4, 5, 6, 3)
	})
}

// TestUnreadableShardColumnsAreRefused (M59): a column is refused as shard column if its numbers can be too great for a
// shard, or if triggers cannot read it.
func TestUnreadableShardColumnsAreRefused(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.Postgres18, testdb.MariaDB, testdb.MySQL) // the others have no such columns
	suite.Each(t, func(x *suite.Env) {
		before := ""
		refused := func(spec rowfeed.FeedSpec, why string) {
			x.Helper()
			_, err := x.RF.AddFeed(x.Ctx, spec, nil)
			if x.WantCode(err, rowfeed.Refused); !strings.Contains(fmt.Sprint(err), why) {
				x.Error(err)
			}
			if after := x.DB.Dump(x.T); after != before {
				x.Errorf("after a refusal the schema is\n%s\nwant\n%s", after, before)
			}
		}
		spec := suite.OutboxTriggerSpec()
		if x.Has.Unsigned {
			x.Exec(x.Text("outbox.table_with_unsigned_shards"))
			before = x.DB.Dump(x.T)
			refused(spec, "unsigned")
			refused(suite.EventsSpec(), "unsigned")
			spec.ShardColumn = "small"
			y := &suite.Events{Env: x, Feed: x.Add(spec)}
			x.Exec("INSERT INTO events VALUES (1, '1234567890123456', 5, 4294967295)")
			y.WantShard(4294967295, 1)
		}
		if x.Has.UnreadableColumns {
			x.Exec(x.Text("outbox.table_with_virtual_shard"))
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

// TestRepairAppendsRecordsInBatches (M59): repair appends records in batches along the key, each in a transaction of
// its own.
func TestRepairAppendsRecordsInBatches(t *testing.T) {
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
			x.Errorf("repair recorded %d rows, %v", n, err)
		}
		if want := []string{"insert", "commit", "insert", "commit"}; !slices.Equal(batches, want) {
			x.Errorf("repair ran %q, want %q", batches, want)
		}
		y.WantSound(y.Feed)
		if n, err := f.Admin().Repair(x.Ctx); n != 0 || err != nil {
			x.Errorf("repair recorded %d rows, %v", n, err)
		}
	})
}

// TestBulkInsertDelaysNoOtherWriter (M59): INSERT … SELECT into the outbox, as docs/ULIDS.md writes it, delays no other
// writer, however long its SELECT takes. That holds on MariaDB, too.
func TestBulkInsertDelaysNoOtherWriter(t *testing.T) {
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
		lock(x.Text("outbox.lock_name", x.DB.Name))
		bulk := make(chan error, 1)
		pool := x.Writer(testdb.Hooks{})
		go func() {
			_, err := pool.ExecContext(x.Ctx, x.Text("outbox.bulk_insert_that_waits_for_name", x.DB.Name))
			bulk <- err
		}()
		x.Eventually("the bulk insert waits for the name in its SELECT", func() bool {
			return x.Scalar(x.Text("outbox.count_waits_for_names", x.DB.Name)) == 1
		})
		x.Exec("INSERT INTO rowfeed_outbox_events (shard, id) VALUES (1, 3)")
		select {
		case err := <-bulk:
			x.Errorf("the bulk insert has ended: %v", err)
		default:
		}
		lock(x.Text("outbox.unlock_name", x.DB.Name))
		if err := <-bulk; err != nil {
			x.Error(err)
		}
		if n := x.Scalar("SELECT count(*) FROM rowfeed_outbox_events"); n != 3 {
			x.Errorf("%d records wait", n)
		}
	})
}
