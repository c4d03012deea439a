package conformance

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// eachPostgres runs f on every PostgreSQL: no other database can rename a schema.
func eachPostgres(t *testing.T, f func(x *env)) {
	t.Helper()
	testdb.Only(t, testdb.PostgreSQL...)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) { f(newEnv(t, e, nil)) })
}

// inSchema opens rowfeed with its tables in a schema.
func (x *env) inSchema(schema string) *env {
	x.Helper()
	return openEnv(x.T, x.db, &rowfeed.Config{Schema: schema})
}

// makeIn makes a feed of every kind: tables in one schema, rowfeed's in another one or the same.
func (x *env) makeIn(schema, own string) *env {
	x.Helper()
	x.exec("CREATE SCHEMA IF NOT EXISTS "+own, "CREATE SCHEMA IF NOT EXISTS "+schema,
		"CREATE TABLE "+schema+".plain (id BIGINT NOT NULL PRIMARY KEY)",
		"CREATE TABLE "+schema+".box (id BIGINT NOT NULL PRIMARY KEY, shard INT NOT NULL)",
		"CREATE TABLE "+schema+".col (id BIGINT NOT NULL PRIMARY KEY)",
		x.eventsTable(schema+".events"), "CREATE UNIQUE INDEX events_feed ON "+schema+".events (shard, ulid)")
	rf := x.inSchema(strings.Trim(own, `"`))
	rf.migrate()
	for _, spec := range specsIn(schema) {
		rf.add(spec)
	}
	return rf
}

func specsIn(schema string) []rowfeed.FeedSpec {
	events := eventsSpec()
	events.Table = schema + ".events"
	return []rowfeed.FeedSpec{
		{Name: "plain", Table: schema + ".plain"},
		{Name: "col", Table: schema + ".col", Capture: "column"},
		{Name: "box", Table: schema + ".box", Mode: rowfeed.ModeOutbox, Capture: "trigger", ShardColumn: "shard"},
		events,
	}
}

// writeIn writes a row of this id to each table but that of events, and takes ULIDs for one of that.
func (x *env) writeIn(schema, id string) error {
	tx, err := x.db.Admin().BeginTx(x.ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	inserts := []string{".plain (id) VALUES (" + id, ".box (id, shard) VALUES (" + id + ", 0", ".col (id) VALUES (" + id}
	for _, table := range inserts {
		if _, err := tx.ExecContext(x.ctx, "INSERT INTO "+schema+table+")"); err != nil {
			return err
		}
	}
	u, err := x.feedNamed("events").Lock(x.ctx, rowfeed.InTx(tx), rowfeed.LockRequest{})
	if err != nil {
		return err
	}
	first, err := u.At(0, 0)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(x.ctx, "INSERT INTO "+schema+".events VALUES ("+id+", 0, $1, '')", first); err != nil {
		return err
	}
	return tx.Commit()
}

// wantRead asserts what readers of every feed are shown, and that check finds nothing.
func (x *env) wantRead(want string) {
	x.Helper()
	for _, name := range []string{"plain", "col", "box", "events"} {
		f, req := x.feedNamed(name), rowfeed.Request{Limit: 100}
		if name != "events" {
			x.publish(f)
		}
		if name == "box" || name == "events" {
			req.Shards = rowfeed.One(0)
		}
		page, err := f.Fetch(x.ctx, req)
		if err != nil {
			x.Fatal(err)
		}
		var got strings.Builder
		for _, e := range page.Entries {
			got.Write(e.Key.AppendJSON(nil))
		}
		if got.String() != want {
			x.Errorf("%s: %s, want %s", name, got.String(), want)
		}
		x.wantSound(f)
	}
}

// TestSchemaRenamed (V10): the schema with rowfeed's tables is renamed, together with the feeds' tables or not.
// What is answered under the former name, and what Verify finds, say so. feed upgrade with the new name mends
// every kind of feed. Records of an older rowfeed name the schema of a table that is beside rowfeed's, too.
func TestSchemaRenamed(t *testing.T) {
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
			eachPostgres(t, func(x *env) {
				rf := x.makeIn(test.tables, `"old app"`)
				if test.former {
					x.exec(`UPDATE "old app".rowfeed_feeds SET source_schema = 'old app'`)
				}
				if err := rf.writeIn(test.tables, "1"); err != nil {
					x.Fatal(err)
				}
				x.exec(`ALTER SCHEMA "old app" RENAME TO "new ""app"`)
				_, err := x.inSchema("old app").rf.Feed(x.ctx, "plain")
				var e *rowfeed.Error
				x.wantCode(err, rowfeed.NotInitialized)
				if !errors.As(err, &e) || !strings.Contains(e.Cause, `new "app`) || !strings.Contains(e.Next, "feed upgrade") {
					x.Error(err)
				}
				rf = x.inSchema(`new "app`)
				if err := rf.writeIn(test.now, "2"); err == nil {
					x.Fatal("a write did not fail")
				}
				for name, n := range map[string]int{"plain": 2, "box": 1, "events": 1, "col": 0} {
					problems, err := rf.feedNamed(name).Admin().Verify(x.ctx)
					if test.former {
						problems, n = []string{err.Error()}, 1 // it has no other table to look at
						rf.wantAll(name, problems, n, "is table", "rowfeed feed upgrade "+name)
						continue
					}
					if err != nil || name == "events" && len(problems) != 2 {
						x.Fatalf("%s: %q, %v", name, problems, err)
					}
					rf.wantAll(name, problems[:n], n, "names schema old app", "new \"app", "renamed",
						"rowfeed feed upgrade "+name+" --schema")
				}
				for _, name := range []string{"plain", "col", "box", "events"} {
					mended, err := rf.feedNamed(name).Admin().Upgrade(x.ctx)
					if err != nil || (len(mended) == 0) != (name == "col" && !test.former) {
						x.Fatalf("%s: %q, %v", name, mended, err)
					}
				}
				if err := rf.writeIn(test.now, "3"); err != nil {
					x.Fatal(err)
				}
				rf.wantRead(`{"id":1}{"id":3}`)
				for _, name := range []string{"plain", "col", "box", "events"} {
					if mended, err := rf.feedNamed(name).Admin().Upgrade(x.ctx); err != nil || len(mended) > 0 {
						x.Errorf("%s again: %q, %v", name, mended, err)
					}
				}
			})
		})
	}
}

// TestSourceSchemaRenamed (V10): the schema of the feeds' tables is renamed, and that of rowfeed's tables is
// not. Writes are captured all the same. Verify says where the table is; feed upgrade follows a table that has
// the feed's trigger. The message of other feeds names what to do.
func TestSourceSchemaRenamed(t *testing.T) {
	testdb.Quick(t)
	eachPostgres(t, func(x *env) {
		rf := x.makeIn("shop", "own")
		if err := rf.writeIn("shop", "1"); err != nil {
			x.Fatal(err)
		}
		x.exec("ALTER SCHEMA shop RENAME TO store", "INSERT INTO store.plain VALUES (2)", "INSERT INTO store.box VALUES (2, 0)")
		// A table of the same name that is another feed's.
		x.exec("CREATE SCHEMA other", "CREATE TABLE other.plain (id BIGINT NOT NULL PRIMARY KEY)")
		rf.add(rowfeed.FeedSpec{Name: "other", Table: "other.plain"})
		rf = x.inSchema("own")
		for _, name := range []string{"plain", "box"} {
			_, err := rf.feedNamed(name).Admin().Verify(x.ctx)
			rf.wantCode(err, rowfeed.Refused)
			rf.wantAll(name, []string{err.Error()}, 1, "store."+name, "rowfeed feed upgrade "+name)
			mended, err := rf.feedNamed(name).Admin().Upgrade(x.ctx)
			if err != nil {
				x.Fatal(err)
			}
			rf.wantAll(name, mended, 1, "shop."+name, "store."+name)
		}
		for _, name := range []string{"col", "events"} {
			_, err := rf.feedNamed(name).Admin().Upgrade(x.ctx)
			rf.wantCode(err, rowfeed.Refused)
			rf.wantAll(name, []string{err.Error()}, 1, "shop."+name, "is gone", "name back", "feed drop "+name)
		}
		x.exec("ALTER SCHEMA store RENAME TO shop")
		for _, name := range []string{"plain", "box"} {
			if _, err := rf.feedNamed(name).Admin().Upgrade(x.ctx); err != nil {
				x.Fatal(err)
			}
		}
		x.exec("INSERT INTO shop.col (id) VALUES (2)")
		if err := rf.writeIn("shop", "3"); err != nil {
			x.Fatal(err)
		}
		x.exec("DELETE FROM shop.events", "DELETE FROM shop.col WHERE id = 2") // what was not written twice
		for _, name := range []string{"plain", "box"} {
			x.wantSound(rf.feedNamed(name))
		}
		rf.wantDrain(rf.feedNamed("plain"), "", `upsert {"id":1}`, `upsert {"id":2}`, `upsert {"id":3}`)
	})
}

// TestOwnerWithoutRights (V3): a role that owns functions cannot be dropped, and can lose rights on tables and
// schemas. Verify says so, for each kind of feed.
func TestOwnerWithoutRights(t *testing.T) {
	testdb.Quick(t)
	eachPostgres(t, func(x *env) {
		owner := x.newLogin("owner", nil)
		rf := x.makeIn("shop", "own")
		for _, name := range x.list("SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = 'own'::regnamespace") {
			x.exec("GRANT CREATE, USAGE ON SCHEMA own TO "+owner.sql, "ALTER FUNCTION "+name+" OWNER TO "+owner.sql)
		}
		defer x.exec("REASSIGN OWNED BY " + owner.sql + " TO CURRENT_USER")
		all := []string{"USAGE ON SCHEMA own", "USAGE ON SCHEMA shop",
			"INSERT ON own.rowfeed_changes_plain", "SELECT ON shop.plain",
			"INSERT ON own.rowfeed_outbox_box", "SELECT ON shop.box",
			"SELECT ON own.rowfeed_shards", "INSERT ON own.rowfeed_shards", "UPDATE ON own.rowfeed_shards",
			"SELECT ON own.rowfeed_feeds", "UPDATE ON own.rowfeed_feeds", "SELECT ON shop.events"}
		for _, right := range all {
			x.exec("GRANT " + right + " TO " + owner.sql)
		}
		verify := func(what string, want ...string) {
			x.Helper()
			var found []string
			for _, name := range []string{"plain", "box", "events"} {
				problems, err := rf.feedNamed(name).Admin().Verify(x.ctx)
				if err != nil {
					x.Fatal(err)
				}
				if len(problems) > 0 && strings.HasPrefix(problems[0], "the owner of function ") {
					found = append(found, name)
				}
			}
			if strings.Join(found, " ") != strings.Join(want, " ") {
				x.Errorf("%s: found of %v, want %v", what, found, want)
			}
		}
		verify("all rights")
		if err := rf.writeIn("shop", "1"); err != nil {
			x.Fatal(err)
		}
		for i, right := range all {
			x.exec("REVOKE " + right + " FROM " + owner.sql)
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
			// TRUNCATE and the first lock of a shard need the others.
			failed := rf.writeIn("shop", "2") != nil
			if want := i < 2 || slices.Contains([]int{2, 4, 6, 8, 11}, i); failed != want {
				x.Errorf("without %s a write has failed: %v", right, failed)
			}
			for _, table := range []string{"plain", "col", "box", "events"} {
				x.exec("DELETE FROM shop." + table + " WHERE id = 2")
			}
			x.exec("GRANT " + right + " TO " + owner.sql)
		}
	})
}
