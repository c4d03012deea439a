package capture

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// eachPostgres runs f on PostgreSQL, the only database that can rename a schema.
func eachPostgres(t *testing.T, f func(x *suite.Env)) {
	t.Helper()
	testdb.Only(t, testdb.PostgreSQL...)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) { f(suite.NewEnv(t, e, nil)) })
}

// inSchema opens rowfeed with its tables in a schema.
func inSchema(x *suite.Env, schema string) *suite.Env {
	x.Helper()
	return suite.OpenEnv(x.T, x.DB, &rowfeed.Config{Schema: schema})
}

// makeIn makes a feed of every kind: their tables in one schema, rowfeed's in schema own, which can be the same.
func makeIn(x *suite.Env, schema, own string) *suite.Env {
	x.Helper()
	x.Exec("CREATE SCHEMA IF NOT EXISTS "+own, "CREATE SCHEMA IF NOT EXISTS "+schema,
		"CREATE TABLE "+schema+".plain (id BIGINT NOT NULL PRIMARY KEY)",
		"CREATE TABLE "+schema+".box (id BIGINT NOT NULL PRIMARY KEY, shard INT NOT NULL)",
		"CREATE TABLE "+schema+".col (id BIGINT NOT NULL PRIMARY KEY)",
		x.EventsTable(schema+".events"), "CREATE UNIQUE INDEX events_feed ON "+schema+".events (shard, ulid)")
	rf := inSchema(x, strings.Trim(own, `"`))
	rf.Migrate()
	for _, spec := range specsIn(schema) {
		rf.Add(spec)
	}
	return rf
}

func specsIn(schema string) []rowfeed.FeedSpec {
	events := suite.EventsSpec()
	events.Table = schema + ".events"
	return []rowfeed.FeedSpec{
		{Name: "plain", Table: schema + ".plain"},
		{Name: "col", Table: schema + ".col", Capture: "column"},
		{Name: "box", Table: schema + ".box", Mode: rowfeed.ModeOutbox, Capture: "trigger", ShardColumn: "shard"},
		events,
	}
}

// writeIn writes a row with this id to the table of each feed.
func writeIn(x *suite.Env, schema, id string) error {
	tx, err := x.DB.Admin().BeginTx(x.Ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	inserts := []string{".plain (id) VALUES (" + id, ".box (id, shard) VALUES (" + id + ", 0", ".col (id) VALUES (" +
		id}
	for _, table := range inserts {
		if _, err := tx.ExecContext(x.Ctx, "INSERT INTO "+schema+table+")"); err != nil {
			return err
		}
	}
	u, err := feedNamed(x, "events").Lock(x.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{})
	if err != nil {
		return err
	}
	first, err := u.At(0, 0)
	if err != nil {
		return err
	}
	insert := "INSERT INTO " + schema + ".events VALUES (" + id + ", 0, " + x.Dialect.Placeholder(1) + ", '')"
	if _, err := tx.ExecContext(x.Ctx, insert, first); err != nil {
		return err
	}
	return tx.Commit()
}

// wantRead asserts what readers of every feed get, and that check finds nothing.
func wantRead(x *suite.Env, want string) {
	x.Helper()
	for _, name := range []string{"plain", "col", "box", "events"} {
		f, req := feedNamed(x, name), rowfeed.Request{Limit: 100}
		if name != "events" {
			x.Publish(f)
		}
		if name == "box" || name == "events" {
			req.Shards = rowfeed.One(0)
		}
		page, err := f.Fetch(x.Ctx, req)
		if err != nil {
			x.Fatal(err)
		}
		var got strings.Builder
		for _, e := range page.Entries {
			got.Write(e.Key.AppendJSON(nil))
		}
		if got.String() != want {
			x.Errorf("feed %s has %s, want %s", name, got.String(), want)
		}
		x.WantSound(f)
	}
}

// TestUpgradeFollowsRenamedSchema (V10): the schema with rowfeed's tables is renamed, with or without the feeds'
// tables. Errors under the former name and verify say so. Upgrade under the new name mends every kind of feed, also if
// its record names the schema of a table that is in the same schema as rowfeed's.
func TestUpgradeFollowsRenamedSchema(t *testing.T) {
	testdb.Quick(t)
	for _, test := range []struct {
		name, tables, now string
		former            bool
	}{
		{"together", `"old app"`, `"new ""app"`, false},
		{"together, from an older rowfeed", `"old app"`, `"new ""app"`, true},
		{"rowfeed's alone", "shop", "shop", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachPostgres(t, func(x *suite.Env) {
				rf := makeIn(x, test.tables, `"old app"`)
				if test.former {
					x.Exec(`UPDATE "old app".rowfeed_feeds SET source_schema = 'old app'`)
				}
				if err := writeIn(rf, test.tables, "1"); err != nil {
					x.Fatal(err)
				}
				x.Exec(x.Text("capture.rename_schema", `"old app"`, `"new ""app"`))
				_, err := inSchema(x, "old app").RF.Feed(x.Ctx, "plain")
				var e *rowfeed.Error
				x.WantCode(err, rowfeed.NotInitialized)
				if !errors.As(err, &e) || !strings.Contains(e.Cause, `new "app`) ||
					!strings.Contains(e.Next, "feed upgrade") {
					x.Error(err)
				}
				rf = inSchema(x, `new "app`)
				if err := writeIn(rf, test.now, "2"); err == nil {
					x.Fatal("a write has not failed")
				}
				for name, n := range map[string]int{"plain": 2, "box": 1, "events": 1, "col": 0} {
					problems, err := feedNamed(rf, name).Admin().Verify(x.Ctx)
					if test.former {
						problems, n = []string{err.Error()}, 1 // without the feed's table, verify fails
						wantAll(rf, name, problems, n, "is table", "rowfeed feed upgrade "+name)
						continue
					}
					if err != nil || name == "events" && len(problems) != 2 {
						x.Fatalf("verify of %s found %q, %v", name, problems, err)
					}
					wantAll(rf, name, problems[:n], n, "names schema old app", "new \"app", "renamed",
						"rowfeed feed upgrade "+name+" --schema")
				}
				for _, name := range []string{"plain", "col", "box", "events"} {
					mended, err := feedNamed(rf, name).Admin().Upgrade(x.Ctx)
					if err != nil || (len(mended) == 0) != (name == "col" && !test.former) {
						x.Fatalf("upgrade of %s mended %q, %v", name, mended, err)
					}
				}
				if err := writeIn(rf, test.now, "3"); err != nil {
					x.Fatal(err)
				}
				wantRead(rf, `{"id":1}{"id":3}`)
				for _, name := range []string{"plain", "col", "box", "events"} {
					if mended, err := feedNamed(rf, name).Admin().Upgrade(x.Ctx); err != nil || len(mended) > 0 {
						x.Errorf("the second upgrade of %s mended %q, %v", name, mended, err)
					}
				}
			})
		})
	}
}

// TestUpgradeFollowsRenamedSourceSchema (V10): the schema of the feeds' tables is renamed, and that of rowfeed's tables
// is not. Writes are captured. Verify says where the table is, and upgrade follows a table that has the feed's trigger.
// Errors of other feeds name what to do.
func TestUpgradeFollowsRenamedSourceSchema(t *testing.T) {
	testdb.Quick(t)
	eachPostgres(t, func(x *suite.Env) {
		rf := makeIn(x, "shop", "own")
		if err := writeIn(rf, "shop", "1"); err != nil {
			x.Fatal(err)
		}
		x.Exec(x.Text("capture.rename_schema", "shop", "store"))
		x.Exec("INSERT INTO store.plain VALUES (2)", "INSERT INTO store.box VALUES (2, 0)")
		// Another feed's table has the same name.
		x.Exec("CREATE SCHEMA other", "CREATE TABLE other.plain (id BIGINT NOT NULL PRIMARY KEY)")
		rf.Add(rowfeed.FeedSpec{Name: "other", Table: "other.plain"})
		rf = inSchema(x, "own")
		for _, name := range []string{"plain", "box"} {
			_, err := feedNamed(rf, name).Admin().Verify(x.Ctx)
			rf.WantCode(err, rowfeed.Refused)
			wantAll(rf, name, []string{err.Error()}, 1, "store."+name, "rowfeed feed upgrade "+name)
			mended, err := feedNamed(rf, name).Admin().Upgrade(x.Ctx)
			if err != nil {
				x.Fatal(err)
			}
			wantAll(rf, name, mended, 1, "shop."+name, "store."+name)
		}
		for _, name := range []string{"col", "events"} {
			_, err := feedNamed(rf, name).Admin().Upgrade(x.Ctx)
			rf.WantCode(err, rowfeed.Refused)
			wantAll(rf, name, []string{err.Error()}, 1, "shop."+name, "is gone", "name back", "feed drop "+name)
		}
		x.Exec(x.Text("capture.rename_schema", "store", "shop"))
		for _, name := range []string{"plain", "box"} {
			if _, err := feedNamed(rf, name).Admin().Upgrade(x.Ctx); err != nil {
				x.Fatal(err)
			}
		}
		x.Exec("INSERT INTO shop.col (id) VALUES (2)")
		if err := writeIn(rf, "shop", "3"); err != nil {
			x.Fatal(err)
		}
		x.Exec("DELETE FROM shop.events", "DELETE FROM shop.col WHERE id = 2") // rows that only one of the writes made
		for _, name := range []string{"plain", "box"} {
			x.WantSound(feedNamed(rf, name))
		}
		rf.WantDrain(feedNamed(rf, "plain"), "", `upsert {"id":1}`, `upsert {"id":2}`, `upsert {"id":3}`)
	})
}

// TestVerifyFindsRightsThatOwnerLacks (V3): a role that owns the functions of feeds loses rights on tables and schemas.
// Verify says so, for each kind of feed.
func TestVerifyFindsRightsThatOwnerLacks(t *testing.T) {
	testdb.Quick(t)
	eachPostgres(t, func(x *suite.Env) {
		owner := x.NewLogin("owner", nil)
		rf := makeIn(x, "shop", "own")
		for _, name := range x.List(x.Text("capture.functions_of_schema", "own")) {
			x.Exec("GRANT CREATE, USAGE ON SCHEMA own TO "+owner.SQL, x.Text("capture.give_function", name, owner.SQL))
		}
		defer x.Exec(x.Text("capture.take_over_objects", owner.SQL))
		all := []string{"USAGE ON SCHEMA own", "USAGE ON SCHEMA shop",
			"INSERT ON own.rowfeed_changes_plain", "SELECT ON shop.plain",
			"INSERT ON own.rowfeed_outbox_box", "SELECT ON shop.box",
			"SELECT ON own.rowfeed_shards", "INSERT ON own.rowfeed_shards", "UPDATE ON own.rowfeed_shards",
			"SELECT ON own.rowfeed_feeds", "UPDATE ON own.rowfeed_feeds", "SELECT ON shop.events"}
		for _, right := range all {
			x.Exec("GRANT " + right + " TO " + owner.SQL)
		}
		verify := func(what string, want ...string) {
			x.Helper()
			var found []string
			for _, name := range []string{"plain", "box", "events"} {
				problems, err := feedNamed(rf, name).Admin().Verify(x.Ctx)
				if err != nil {
					x.Fatal(err)
				}
				if len(problems) > 0 && strings.HasPrefix(problems[0], "the owner of function ") {
					found = append(found, name)
				}
			}
			if strings.Join(found, " ") != strings.Join(want, " ") {
				x.Errorf("without %s, verify found problems of %v, want %v", what, found, want)
			}
		}
		verify("no right")
		if err := writeIn(rf, "shop", "1"); err != nil {
			x.Fatal(err)
		}
		for i, right := range all {
			x.Exec("REVOKE " + right + " FROM " + owner.SQL)
			switch {
			case i < 2:
				verify(right, "plain", "box", "events")
			case i < 4:
				verify(right, "plain")
			case i < 6:
				verify(right, "box")
			default:
				verify(right, "events")
			}
			// The other rights are for TRUNCATE and for the first lock of a shard.
			failed := writeIn(rf, "shop", "2") != nil
			if want := i < 2 || slices.Contains([]int{2, 4, 6, 8, 11}, i); failed != want {
				x.Errorf("without %s a write has failed: %v", right, failed)
			}
			for _, table := range []string{"plain", "col", "box", "events"} {
				x.Exec("DELETE FROM shop." + table + " WHERE id = 2")
			}
			x.Exec("GRANT " + right + " TO " + owner.SQL)
		}
	})
}
