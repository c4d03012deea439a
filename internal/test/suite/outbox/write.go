package outbox

import (
	"database/sql"
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

// eachOutboxTrigger is eachOutbox with records by a trigger, in the shard of column shard.
func eachOutboxTrigger(t *testing.T, f func(x *suite.Events)) {
	t.Helper()
	suite.Each(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE events (id BIGINT NOT NULL PRIMARY KEY, shard INT NOT NULL DEFAULT 0, data VARCHAR(100) UNIQUE)")
		f(&suite.Events{Env: x, Feed: x.Add(suite.OutboxTriggerSpec())})
	})
}

// TestOutboxKeys (M59, M62): both tables hold the key in the source's types and collations, so that keys
// that differ there differ here, and those that are equal are (issue item 7).
func TestOutboxKeys(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.Exec(x.By(map[string]string{
			"sqlite":   "CREATE TABLE events (n INT NOT NULL, u BLOB NOT NULL, name TEXT COLLATE NOCASE NOT NULL, data TEXT, PRIMARY KEY (n, u, name))",
			"postgres": `CREATE TABLE events (n int NOT NULL, u uuid NOT NULL, name text COLLATE "C" NOT NULL, data text, PRIMARY KEY (n, u, name))`,
			"mysql":    "CREATE TABLE events (n INT NOT NULL, u BINARY(16) NOT NULL, name VARCHAR(50) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, data TEXT, PRIMARY KEY (n, u, name))",
		}))
		f := x.Add(rowfeed.FeedSpec{Name: "events", Table: "events", Mode: rowfeed.ModeOutbox})
		source, err := x.Dialect.Describe(x.Ctx, dialect.On(x.Pool), f.Source())
		if err != nil {
			x.Fatal(err)
		}
		for _, table := range []string{"rowfeed_outbox_events", "rowfeed_feed_events"} {
			own, err := x.Dialect.Describe(x.Ctx, dialect.On(x.Pool), feedtype.TableName{Schema: f.Source().Schema, Name: table})
			if err != nil {
				x.Fatal(err)
			}
			for _, name := range []string{"n", "u", "name"} {
				if have, want := own.Column(name), source.Column(name); have == nil || have.Decl != want.Decl || have.Nullable {
					x.Errorf("column %s of %s is %+v, want %+v", name, table, have, want)
				}
			}
		}
		id := ulid.MustParse("01GNSG5PM8ZZZVZZZZZZZZZZZZ")
		var u any = id.Bytes()
		if x.Family() == "postgres" {
			u = "0185b302-da88-ffff-bfff-ffffffffffff"
		}
		names := []string{"é", "E", "ß", "z "}
		switch x.Family() { // the others' collations do not tell them all apart
		case "postgres":
			names = append(names, "e", "z")
		case "mysql":
			names = append(names, "e")
		}
		tx := x.Begin(sql.LevelReadCommitted)
		for _, name := range names {
			insert := "INSERT INTO events (n, u, name, data) VALUES (?, ?, ?, 'd')"
			if x.Family() == "postgres" {
				insert = "INSERT INTO events (n, u, name, data) VALUES ($1, $2, $3, 'd')"
			}
			if _, err := tx.ExecContext(x.Ctx, insert, 1, u, name); err != nil {
				x.Fatal(err)
			}
			if err := f.AppendOutbox(x.Ctx, rowfeed.InTx(tx), rowfeed.OutboxRecord{Key: rowfeed.Key{1, u, name}}); err != nil {
				x.Fatal(err)
			}
		}
		if x.Family() == "sqlite" { // the same key: the last record places it
			if err := f.AppendOutbox(x.Ctx, rowfeed.InTx(tx), rowfeed.OutboxRecord{Key: rowfeed.Key{1, u, "e"}}); err != nil {
				x.Fatal(err)
			}
			names = []string{"é", "ß", "z ", "E"}
		}
		x.Commit(tx)
		var got []string
		page := x.Fetch(f, "", 100)
		for _, e := range page.Entries {
			name, _ := e.Key.Get("name")
			if data, _ := e.Row.Get("data"); data != "d" {
				x.Errorf("%v has data %v", name, data)
			}
			got = append(got, name.(string))
		}
		if !slices.Equal(got, names) || page.More {
			x.Errorf("entries %q, want %q", got, names)
		}
		if left, places := x.Scalar("SELECT count(*) FROM rowfeed_outbox_events"), x.Scalar("SELECT count(*) FROM rowfeed_feed_events"); left != 0 || places != int64(len(names)) {
			x.Errorf("%d records are left, %d places of %d keys", left, places, len(names))
		}
		// Back-fill walks along such a key, from batch to batch.
		const old = 2100
		var rows []string
		for i := range old {
			u := fmt.Sprintf("x'%032x'", old-i)
			if x.Family() == "postgres" {
				u = fmt.Sprintf("CAST('%032x' AS uuid)", old-i)
			}
			rows = append(rows, fmt.Sprintf("(%d, %s, 'ß%d')", 2+i%3, u, i%7))
		}
		x.Exec("INSERT INTO events (n, u, name) VALUES " + strings.Join(rows, ", "))
		var batches int
		if n, err := f.Admin().BackFill(x.Ctx, func(int64) { batches++ }); n != old || batches != 2 || err != nil {
			x.Errorf("%d placed in %d batches, %v", n, batches, err)
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
			x.Errorf("%d keys were seen, want %d", len(seen), old+len(names))
		}
	})
}

// TestOutboxBadInput (M59): what a writer can get wrong is refused, or harms nobody.
func TestOutboxBadInput(t *testing.T) {
	suite.EachOutbox(t, func(x *suite.Events) {
		x.Appended(1, 0, time.Time{})
		for _, key := range []rowfeed.Key{nil, {}, {nil}, {int64(1), int64(2)}} {
			tx := x.Begin(sql.LevelReadCommitted)
			x.WantCode(x.Feed.AppendOutbox(x.Ctx, rowfeed.InTx(tx), rowfeed.OutboxRecord{Key: key}), rowfeed.InvalidRequest)
			if err := tx.Rollback(); err != nil {
				x.Error(err)
			}
		}
		x.WantCode(x.Feed.AppendOutbox(x.Ctx, rowfeed.InTx(nil), rowfeed.OutboxRecord{Key: rowfeed.Key{int64(1)}}), rowfeed.InvalidRequest)
		x.MustFail("INSERT INTO rowfeed_outbox_events (shard, id) VALUES (0, NULL)")
		x.MustFail("INSERT INTO rowfeed_outbox_events (shard, key_id) VALUES (0, 1)")
		x.MustFail("INSERT INTO rowfeed_outbox_events (shard, id) VALUES (NULL, 1)")
		if x.Family() == "sqlite" {
			x.MustFail("INSERT INTO rowfeed_outbox_events (shard, id) VALUES ('a', 1)")
			x.MustFail("INSERT INTO rowfeed_outbox_events (time_hint, id) VALUES (1.5, 1)")
		}
		// A key without a row is left out, like one whose row has gone; one that was recorded
		// twice stands in the shard of the record that was moved last; whatever the hint says, it
		// is no later than now.
		year := x.Now().AddDate(1, 0, 0)
		x.Exec("INSERT INTO rowfeed_outbox_events (shard, id) VALUES (0, 99)",
			"INSERT INTO rowfeed_outbox_events (shard, id) VALUES (0, 1)", "INSERT INTO rowfeed_outbox_events (shard, id) VALUES (8, 1)",
			fmt.Sprintf("INSERT INTO rowfeed_outbox_events (shard, time_hint, id) VALUES (0, %d, 98)", int64(math.MaxInt64)),
			fmt.Sprintf("INSERT INTO rowfeed_outbox_events (shard, time_hint, id) VALUES (0, %d, 97)", int64(math.MinInt64)))
		x.Appended(2, 0, year)
		x.WantShard(0, 1, 2)
		x.WantShard(8, 1)
		x.WantShard(0, 2)
		page := x.Page(x.Feed, 0, "", 100)
		for _, e := range page.Entries {
			if ahead := suite.Millis(ulid.MustParse(e.Position)).Sub(x.Now()); ahead > time.Second {
				x.Errorf("%s is %s ahead", e.Position, ahead)
			}
		}
		if left := x.Scalar("SELECT count(*) FROM rowfeed_outbox_events"); left != 0 {
			x.Errorf("%d records are left", left)
		}
		x.WantSound(x.Feed)
		// Added again it says so; with other settings it is another feed.
		if _, err := x.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: "events", Table: "events", Mode: rowfeed.ModeOutbox}, nil); err != nil {
			x.Error(err)
		}
		_, err := x.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: "events", Table: "events", Mode: rowfeed.ModeOutbox, Capture: feedtype.CaptureTrigger}, nil)
		x.WantCode(err, rowfeed.Conflict)
		for _, spec := range []rowfeed.FeedSpec{
			{Capture: feedtype.CaptureColumn}, {PositionColumn: "data"}, {DataShards: 2}, {AcceptTriggers: true}, {Adopt: true},
		} {
			spec.Name, spec.Table, spec.Mode = "other", "events", rowfeed.ModeOutbox
			_, err := x.RF.AddFeed(x.Ctx, spec, nil)
			x.WantCode(err, rowfeed.InvalidRequest)
		}
	})
}

// TestOutboxTrigger (M59, M63, H20): the trigger appends a record for every row that a statement inserts, in
// the writer's transaction, in the shard that the row says; what fails or is rolled back
// leaves none (M59, hazard 22).
func TestOutboxTrigger(t *testing.T) {
	testdb.Quick(t)
	eachOutboxTrigger(t, func(x *suite.Events) {
		fresh := x.DB.Dump(x.T)
		x.Exec("INSERT INTO events VALUES (1, 7, 'a'), (2, 7, 'b'), (3, -5, 'c')", "INSERT INTO events (id) SELECT id + 100 FROM events")
		x.WantShard(7, 1, 2)
		x.WantShard(-5, 3)
		if got := x.IDs(0); len(got) != 3 {
			x.Errorf("shard 0 has rows %v", got)
		}
		// Nothing comes of an UPDATE, nor of a statement that the database refuses.
		x.Exec("UPDATE events SET data = 'bb', shard = 7 WHERE id = 2")
		x.MustFail("INSERT INTO events VALUES (4, 7, 'd'), (1, 7, 'e')")
		if n := x.Scalar("SELECT count(*) FROM rowfeed_outbox_events"); n != 0 {
			x.Errorf("%d records", n)
		}
		tx := x.Begin(sql.LevelReadCommitted)
		x.In(tx, "INSERT INTO events VALUES (5, 7, 'f')", "SAVEPOINT s", "INSERT INTO events VALUES (6, 7, 'g')", "ROLLBACK TO SAVEPOINT s", "INSERT INTO events VALUES (7, 7, 'h')")
		x.Commit(tx)
		tx = x.Begin(sql.LevelReadCommitted)
		x.In(tx, "INSERT INTO events VALUES (8, 7, 'i')")
		if err := tx.Rollback(); err != nil {
			x.Error(err)
		}
		x.WantShard(7, 1, 2, 5, 7)
		// The ways of each database to insert, and not to.
		want := []int{1, 2, 5, 7, 10, 11}
		switch x.Family() {
		case "sqlite":
			x.Exec("INSERT OR REPLACE INTO events VALUES (10, 7, 'a')", "INSERT OR IGNORE INTO events VALUES (10, 7, 'j'), (11, 7, 'k')",
				"INSERT INTO events VALUES (11, 7, 'l') ON CONFLICT (id) DO UPDATE SET data = 'l'", "REPLACE INTO events VALUES (10, 7, 'm')")
			want = []int{2, 5, 7, 11, 10} // row 1 had 'a', and was replaced; row 10 came twice
		case "postgres":
			x.Exec("COPY events FROM PROGRAM 'printf \"10\\t7\\tj\\n\"'", "INSERT INTO events VALUES (10, 7, 'x'), (11, 7, 'k') ON CONFLICT DO NOTHING",
				"INSERT INTO events VALUES (11, 7, 'l') ON CONFLICT (id) DO UPDATE SET data = 'l'")
		case "mysql":
			x.Exec("REPLACE INTO events VALUES (10, 7, 'a')", "INSERT IGNORE INTO events VALUES (10, 7, 'j'), (11, 7, 'k')",
				"INSERT INTO events VALUES (11, 7, 'l') ON DUPLICATE KEY UPDATE data = 'l'", "REPLACE INTO events VALUES (10, 7, 'm')")
			want = []int{2, 5, 7, 11, 10}
		}
		x.WantShard(7, want...)
		x.WantSound(x.Feed)
		// Dropped and added it is the same again; a trigger that is gone or another is found, and made anew.
		if err := x.RF.DropFeed(x.Ctx, "events"); err != nil {
			x.Fatal(err)
		}
		x.Exec("INSERT INTO events (id) VALUES (20)")
		x.Feed = x.Add(suite.OutboxTriggerSpec())
		if again := x.DB.Dump(x.T); again != fresh {
			x.Errorf("added again:\n%s\nbefore:\n%s", again, fresh)
		}
		x.Exec(x.By(map[string]string{
			"sqlite": "DROP TRIGGER rowfeed_events_insert", "mysql": "DROP TRIGGER rowfeed_events_insert", "postgres": "DROP TRIGGER rowfeed_events_capture ON events",
		}))
		problems, err := x.Feed.Admin().Verify(x.Ctx)
		if err != nil || len(problems) != 1 || !strings.Contains(problems[0], "trigger") {
			x.Errorf("problems %q, %v", problems, err)
		}
		mended, err := x.Feed.Admin().Upgrade(x.Ctx)
		if err != nil || len(mended) != 1 {
			x.Errorf("mended %q, %v", mended, err)
		}
		if again := x.DB.Dump(x.T); again != fresh {
			x.Errorf("mended:\n%s\nbefore:\n%s", again, fresh)
		}
	})
}

// TestOutboxTriggerColumns (M59): a shard column that would fail writers is refused.
func TestOutboxTriggerColumns(t *testing.T) {
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
			x.Errorf("a refusal left behind\n%s\nbefore:\n%s", after, before)
		}
	})
}

// TestOutboxWriterWithoutRights (M59, H22): with a trigger a session with rights on its own table only
// writes it as before, and cannot make the function use objects of its own.
func TestOutboxWriterWithoutRights(t *testing.T) {
	eachOutboxTrigger(t, func(x *suite.Events) {
		switch role := "writer_" + x.DB.Name; x.Family() {
		case "sqlite":
			return // has no users
		case "postgres":
			x.Exec("CREATE ROLE "+role, "GRANT INSERT ON events TO "+role)
			x.Cleanup(func() { x.Exec("DROP OWNED BY "+role, "DROP ROLE "+role) })
			x.Exec("SET ROLE " + role + "; SET search_path = pg_temp, public; CREATE TEMP TABLE rowfeed_outbox_events (shard bigint, id bigint); " +
				"INSERT INTO public.events VALUES (1, 3, 'a'); RESET search_path; RESET ROLE")
		case "mysql":
			x.Exec("CREATE USER "+role+"@'%' IDENTIFIED BY 'pw'", "GRANT INSERT ON "+x.DB.Name+".events TO "+role+"@'%'")
			x.Cleanup(func() { x.Exec("DROP USER " + role + "@'%'") })
			other, err := sql.Open("mysql", role+":pw@"+suite.HostOf(x.DB.URL))
			if err != nil {
				x.Fatal(err)
			}
			defer other.Close()
			if _, err := other.ExecContext(x.Ctx, "INSERT INTO events VALUES (1, 3, 'a')"); err != nil {
				x.Fatal(err)
			}
		}
		x.WantShard(3, 1)
	})
}

// TestOutboxTakenULID (M59): where the state of a shard was set back, and a record would get a ULID that
// another row has, that is an error and the record stays: it is not deleted without a place.
func TestOutboxTakenULID(t *testing.T) {
	suite.EachOutbox(t, func(x *suite.Events) {
		hint := x.Now().Add(-time.Hour)
		x.Appended(1, 0, hint)
		x.WantShard(0, 1)
		x.Appended(2, 0, hint)
		state := "UPDATE rowfeed_shards SET ulid_low = ulid_low - 1"
		x.WantShard(0, 1, 2)
		x.Exec(state)
		x.Appended(3, 0, hint)
		// Another process, which remembers nothing of the shard.
		if _, err := x.Other(testdb.Hooks{}, nil).Publish(x.Ctx); err == nil {
			x.Error("a ULID was given twice")
		}
		if n := x.Scalar("SELECT count(*) FROM rowfeed_outbox_events WHERE id = 3"); n != 1 {
			x.Errorf("%d records of row 3", n)
		}
		// Nor is one of a key that has a place: it would not move.
		x.Exec(fmt.Sprintf("INSERT INTO rowfeed_outbox_events (shard, time_hint, id) VALUES (0, %d, 1)", hint.UnixMilli()), "DELETE FROM rowfeed_outbox_events WHERE id = 3")
		if _, err := x.Other(testdb.Hooks{}, nil).Publish(x.Ctx); err == nil {
			x.Error("a ULID was given twice")
		}
		if n := x.Scalar("SELECT count(*) FROM rowfeed_outbox_events WHERE id = 1"); n != 1 {
			x.Errorf("%d records of row 1", n)
		}
		x.Exec("UPDATE rowfeed_shards SET ulid_low = ulid_low + 1", "INSERT INTO rowfeed_outbox_events (id) VALUES (3)")
		x.Publish(x.Feed)
		x.WantShard(0, 2, 1, 3)
	})
}
