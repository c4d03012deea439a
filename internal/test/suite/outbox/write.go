package outbox

import (
	"database/sql"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

const eventsWithShard = "CREATE TABLE events (id BIGINT NOT NULL PRIMARY KEY, shard INT NOT NULL DEFAULT 0, " +
	"data VARCHAR(100) UNIQUE)"

// eachOutboxTrigger is suite.EachOutbox with a trigger that records rows, in the shard of column shard.
func eachOutboxTrigger(t *testing.T, f func(x *suite.Events)) {
	t.Helper()
	suite.Each(t, func(x *suite.Env) {
		x.Exec(eventsWithShard)
		f(&suite.Events{Env: x, Feed: x.Add(suite.OutboxTriggerSpec())})
	})
}

// TestOutboxHasTheTypesOfTheKey (M59, M62): both tables of the feed have the key's columns with the types and
// collations of the source. Keys that differ in the source differ there, and equal keys are equal (issue item 7).
// Back-fill walks along such a key, from batch to batch.
func TestOutboxHasTheTypesOfTheKey(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.Exec(x.Text("outbox.table_with_collated_key"))
		f := x.Add(rowfeed.FeedSpec{Name: "events", Table: "events", Mode: rowfeed.ModeOutbox})
		source, err := x.Dialect.Describe(x.Ctx, dialect.On(x.Pool), f.Source())
		if err != nil {
			x.Fatal(err)
		}
		for _, table := range []string{"rowfeed_outbox_events", "rowfeed_feed_events"} {
			own, err := x.Dialect.Describe(x.Ctx, dialect.On(x.Pool),
				feedtype.TableName{Schema: f.Source().Schema, Name: table})
			if err != nil {
				x.Fatal(err)
			}
			for _, name := range []string{"n", "u", "name"} {
				have, want := own.Column(name), source.Column(name)
				if have == nil || have.Decl != want.Decl || have.Nullable {
					x.Errorf("column %s of %s is %+v, want %+v", name, table, have, want)
				}
			}
		}
		const uuid = "0185b302-da88-ffff-bfff-ffffffffffff"
		digits := strings.ReplaceAll(uuid, "-", "")
		var u any = uuid
		if !x.Has.UUIDs {
			if u, err = hex.DecodeString(digits); err != nil {
				x.Fatal(err)
			}
		}
		literal := func(sixteenBytes string) string { return x.Text("outbox.sixteen_bytes", sixteenBytes) }
		names := strings.Split(x.Text("outbox.different_names"), ",")
		tx := x.Begin(sql.LevelReadCommitted)
		record := func(name string) {
			x.Helper()
			err := f.AppendOutbox(x.Ctx, rowfeed.InTx(tx), rowfeed.OutboxRecord{Key: rowfeed.Key{1, u, name}})
			if err != nil {
				x.Fatal(err)
			}
		}
		for _, name := range names {
			x.In(tx, fmt.Sprintf("INSERT INTO events (n, u, name, data) VALUES (1, %s, '%s', 'd')",
				literal(digits), name))
			record(name)
		}
		// The key of E is recorded once more. Its last record places it.
		record(x.Text("outbox.name_equal_to_upper_e"))
		names = append(slices.DeleteFunc(names, func(name string) bool { return name == "E" }), "E")
		x.Commit(tx)
		var got []string
		page := x.Fetch(f, "", 100)
		for _, e := range page.Entries {
			name, _ := e.Key.Get("name")
			if data, _ := e.Row.Get("data"); data != "d" {
				x.Errorf("row %v has data %v", name, data)
			}
			got = append(got, name.(string))
		}
		if !slices.Equal(got, names) || page.More {
			x.Errorf("the entries have the names %q, want %q", got, names)
		}
		left := x.Scalar("SELECT count(*) FROM rowfeed_outbox_events")
		placed := x.Scalar("SELECT count(*) FROM rowfeed_feed_events")
		if left != 0 || placed != int64(len(names)) {
			x.Errorf("%d records wait, and %d keys have %d entries", left, len(names), placed)
		}
		// Back-fill walks along such a key, from batch to batch.
		const old = 2100
		var rows []string
		for i := range old {
			rows = append(rows, fmt.Sprintf("(%d, %s, 'ß%d')", 2+i%3, literal(fmt.Sprintf("%032x", old-i)), i%7))
		}
		x.Exec("INSERT INTO events (n, u, name) VALUES " + strings.Join(rows, ", "))
		var batches int
		if n, err := f.Admin().BackFill(x.Ctx, func(int64) { batches++ }); n != old || batches != 2 || err != nil {
			x.Errorf("back-fill placed %d rows in %d batches, %v", n, batches, err)
		}
		x.WantSound(f)
		seen := map[string]bool{}
		for after, more := rowfeed.Cursor(""), true; more; {
			page := x.Fetch(f, after, 1000)
			for _, e := range page.Entries {
				seen[string(e.Key.AppendJSON(nil))] = true
			}
			after, more = page.Cursor, page.More
		}
		if len(seen) != old+len(names) {
			x.Errorf("the feed has %d keys, want %d", len(seen), old+len(names))
		}
	})
}

// TestOutboxRefusesBadInput (M59): a record without a usable key or shard is refused. A record without a row, of a key
// that has a record, or with an impossible hint does no harm.
func TestOutboxRefusesBadInput(t *testing.T) {
	suite.EachOutbox(t, func(x *suite.Events) {
		x.Appended(1, 0, time.Time{})
		for _, key := range []rowfeed.Key{nil, {}, {nil}, {int64(1), int64(2)}} {
			tx := x.Begin(sql.LevelReadCommitted)
			err := x.Feed.AppendOutbox(x.Ctx, rowfeed.InTx(tx), rowfeed.OutboxRecord{Key: key})
			x.WantCode(err, rowfeed.InvalidRequest)
			if err := tx.Rollback(); err != nil {
				x.Error(err)
			}
		}
		err := x.Feed.AppendOutbox(x.Ctx, rowfeed.InTx(nil), rowfeed.OutboxRecord{Key: rowfeed.Key{int64(1)}})
		x.WantCode(err, rowfeed.InvalidRequest)
		x.MustFail("INSERT INTO rowfeed_outbox_events (shard, id) VALUES (0, NULL)")
		x.MustFail("INSERT INTO rowfeed_outbox_events (shard, key_id) VALUES (0, 1)")
		x.MustFail("INSERT INTO rowfeed_outbox_events (shard, id) VALUES (NULL, 1)")
		x.MustFail("INSERT INTO rowfeed_outbox_events (shard, id) VALUES ('a', 1)")
		if !x.Has.TypedColumns { // other databases round the number
			x.MustFail("INSERT INTO rowfeed_outbox_events (time_hint, id) VALUES (1.5, 1)")
		}
		// A key without a row has no entry. A key with two records has its entry in the shard of the record that was
		// moved last. No position is later than now, whatever the hint says.
		year := x.Now().AddDate(1, 0, 0)
		x.Exec("INSERT INTO rowfeed_outbox_events (shard, id) VALUES (0, 99)",
			"INSERT INTO rowfeed_outbox_events (shard, id) VALUES (0, 1)",
			"INSERT INTO rowfeed_outbox_events (shard, id) VALUES (8, 1)",
			fmt.Sprintf("INSERT INTO rowfeed_outbox_events (shard, time_hint, id) VALUES (0, %d, 98)",
				int64(math.MaxInt64)),
			fmt.Sprintf("INSERT INTO rowfeed_outbox_events (shard, time_hint, id) VALUES (0, %d, 97)",
				int64(math.MinInt64)))
		x.Appended(2, 0, year)
		x.WantShard(0, 1, 2)
		x.WantShard(8, 1)
		x.WantShard(0, 2)
		page := x.Page(x.Feed, 0, "", 100)
		for _, e := range page.Entries {
			if ahead := suite.Millis(ulid.MustParse(e.Position)).Sub(x.Now()); ahead > time.Second {
				x.Errorf("position %s is %s ahead of the clock", e.Position, ahead)
			}
		}
		if left := x.Scalar("SELECT count(*) FROM rowfeed_outbox_events"); left != 0 {
			x.Errorf("%d records wait", left)
		}
		x.WantSound(x.Feed)
		// The feed can be added again. With other settings that is a conflict.
		same := rowfeed.FeedSpec{Name: "events", Table: "events", Mode: rowfeed.ModeOutbox}
		if _, err := x.RF.AddFeed(x.Ctx, same, nil); err != nil {
			x.Error(err)
		}
		same.Capture = feedtype.CaptureTrigger
		_, err = x.RF.AddFeed(x.Ctx, same, nil)
		x.WantCode(err, rowfeed.Conflict)
		for _, spec := range []rowfeed.FeedSpec{
			{Capture: feedtype.CaptureColumn}, {PositionColumn: "data"}, {DataShards: 2},
			{AcceptTriggers: true}, {Adopt: true},
		} {
			spec.Name, spec.Table, spec.Mode = "other", "events", rowfeed.ModeOutbox
			_, err := x.RF.AddFeed(x.Ctx, spec, nil)
			x.WantCode(err, rowfeed.InvalidRequest)
		}
	})
}

// TestTriggerRecordsEveryInsertedRow (M59, M63, H20): the trigger appends a record for every row that a statement
// inserts, in the writer's transaction and in the row's shard. A statement that fails or is rolled back leaves none
// (hazard 22). Verify finds a missing trigger, and upgrade makes it.
func TestTriggerRecordsEveryInsertedRow(t *testing.T) {
	testdb.Quick(t)
	eachOutboxTrigger(t, func(x *suite.Events) {
		fresh := x.DB.Dump(x.T)
		x.Exec("INSERT INTO events VALUES (1, 7, 'a'), (2, 7, 'b'), (3, -5, 'c')",
			"INSERT INTO events (id, data) SELECT id + 100, replace('copy of #', '#', data) FROM events")
		x.WantShard(7, 1, 2)
		x.WantShard(-5, 3)
		if got := x.IDs(0); len(got) != 3 {
			x.Errorf("shard 0 has rows %v", got)
		}
		// An UPDATE makes no record, nor does a statement that the database refuses.
		x.Exec("UPDATE events SET data = 'bb', shard = 7 WHERE id = 2")
		x.MustFail("INSERT INTO events VALUES (4, 7, 'd'), (1, 7, 'e')")
		if n := x.Scalar("SELECT count(*) FROM rowfeed_outbox_events"); n != 0 {
			x.Errorf("%d records wait", n)
		}
		tx := x.Begin(sql.LevelReadCommitted)
		x.In(tx, "INSERT INTO events VALUES (5, 7, 'f')", "SAVEPOINT s", "INSERT INTO events VALUES (6, 7, 'g')",
			"ROLLBACK TO SAVEPOINT s", "INSERT INTO events VALUES (7, 7, 'h')")
		x.Commit(tx)
		tx = x.Begin(sql.LevelReadCommitted)
		x.In(tx, "INSERT INTO events VALUES (8, 7, 'i')")
		if err := tx.Rollback(); err != nil {
			x.Error(err)
		}
		x.WantShard(7, 1, 2, 5, 7)
		// Each database has further statements that insert rows, or ignore them.
		x.Exec(x.Statements("outbox.insert_in_many_ways")...)
		if x.Has.Replace { // row 10 replaced row 1, and later itself
			x.WantShard(7, 2, 5, 7, 11, 10)
		} else {
			x.WantShard(7, 1, 2, 5, 7, 10, 11)
		}
		x.WantSound(x.Feed)
		// Dropped and added again, the feed has the same objects.
		if err := x.RF.DropFeed(x.Ctx, "events"); err != nil {
			x.Fatal(err)
		}
		x.Exec("INSERT INTO events (id) VALUES (20)")
		x.Feed = x.Add(suite.OutboxTriggerSpec())
		if again := x.DB.Dump(x.T); again != fresh {
			x.Errorf("added again, the schema is\n%s\nwant\n%s", again, fresh)
		}
		x.Exec(x.Text("outbox.drop_insert_trigger"))
		problems, err := x.Feed.Admin().Verify(x.Ctx)
		if err != nil || len(problems) != 1 || !strings.Contains(problems[0], "trigger") {
			x.Errorf("verify found %q, %v", problems, err)
		}
		mended, err := x.Feed.Admin().Upgrade(x.Ctx)
		if err != nil || len(mended) != 1 {
			x.Errorf("upgrade mended %q, %v", mended, err)
		}
		if again := x.DB.Dump(x.T); again != fresh {
			x.Errorf("after upgrade the schema is\n%s\nwant\n%s", again, fresh)
		}
	})
}

// TestNullableAndTextShardColumnsAreRefused (M59): a shard column whose values could make writers fail is refused, and
// nothing is left behind.
func TestNullableAndTextShardColumnsAreRefused(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE events (id BIGINT NOT NULL PRIMARY KEY, maybe INT, data VARCHAR(100) NOT NULL)")
		before := x.DB.Dump(x.T)
		for _, column := range []string{"maybe", "data", "nothing"} {
			spec := suite.OutboxTriggerSpec()
			spec.ShardColumn = column
			_, err := x.RF.AddFeed(x.Ctx, spec, nil)
			x.WantCode(err, rowfeed.Refused)
		}
		if after := x.DB.Dump(x.T); after != before {
			x.Errorf("after a refusal the schema is\n%s\nwant\n%s", after, before)
		}
	})
}

// TestTriggerNeedsNoRightsOfTheWriter (M59, H22): a login that may only insert into its own table writes as it did
// before there was the trigger. It cannot make the trigger use objects of its own.
func TestTriggerNeedsNoRightsOfTheWriter(t *testing.T) {
	eachOutboxTrigger(t, func(x *suite.Events) {
		if !x.Has.Logins {
			return
		}
		writer := x.NewLogin("writer", nil)
		x.RightsOn("events", "INSERT", writer)
		tx := writer.BeginAs()
		x.In(tx, x.Statements("outbox.shadow_outbox")...)
		x.In(tx, "INSERT INTO events VALUES (1, 3, 'a')")
		x.Commit(tx)
		x.WantShard(3, 1)
	})
}

// TestTakenULIDKeepsTheRecord (M59): the state of a shard was set back, so that a record would get the ULID of another
// entry. Publish fails, and the record stays.
func TestTakenULIDKeepsTheRecord(t *testing.T) {
	suite.EachOutbox(t, func(x *suite.Events) {
		hint := x.Now().Add(-time.Hour)
		x.Appended(1, 0, hint)
		x.WantShard(0, 1)
		x.Appended(2, 0, hint)
		state := "UPDATE rowfeed_shards SET ulid_low = ulid_low - 1"
		x.WantShard(0, 1, 2)
		x.Exec(state)
		x.Appended(3, 0, hint)
		// Another process does not remember the shard's last ULID.
		if _, err := x.Other(testdb.Hooks{}, nil).Publish(x.Ctx); err == nil {
			x.Error("publish gave a ULID to two entries")
		}
		if n := x.Scalar("SELECT count(*) FROM rowfeed_outbox_events WHERE id = 3"); n != 1 {
			x.Errorf("%d records of row 3 wait", n)
		}
		// The same holds for the record of a key that has an entry.
		x.Exec(fmt.Sprintf("INSERT INTO rowfeed_outbox_events (shard, time_hint, id) VALUES (0, %d, 1)",
			hint.UnixMilli()))
		x.Exec("DELETE FROM rowfeed_outbox_events WHERE id = 3")
		if _, err := x.Other(testdb.Hooks{}, nil).Publish(x.Ctx); err == nil {
			x.Error("publish gave a ULID to two entries")
		}
		if n := x.Scalar("SELECT count(*) FROM rowfeed_outbox_events WHERE id = 1"); n != 1 {
			x.Errorf("%d records of row 1 wait", n)
		}
		x.Exec("UPDATE rowfeed_shards SET ulid_low = ulid_low + 1", "INSERT INTO rowfeed_outbox_events (id) VALUES (3)")
		x.Publish(x.Feed)
		x.WantShard(0, 2, 1, 3)
	})
}
