package install

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/fixture"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestDroppedFeedLeavesNoTrace (M28, M48, M63): after feed drop and migrate down, a schema dump equals the one from
// before init, byte for byte. Every step can be repeated.
func TestDroppedFeedLeavesNoTrace(t *testing.T) {
	testdb.Quick(t)
	suite.EachFresh(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)",
			"INSERT INTO kv VALUES (1, 'a', 0), (2, 'b', 0)")
		before := x.DB.Dump(x.T)
		_, err := x.RF.Feeds(x.Ctx)
		x.WantCode(err, rowfeed.NotInitialized)
		for range 2 {
			x.Migrate()
		}
		fresh := x.DB.Dump(x.T)
		x.Add(rowfeed.FeedSpec{Name: "app", Table: "kv", Capture: feedtype.CaptureApp})
		f := x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
		x.Exec("DELETE FROM kv WHERE id = 2")
		x.Drain(f, "")
		if err := x.RF.MigrateDown(x.Ctx); !suite.IsCode(err, rowfeed.Conflict) ||
			!strings.Contains(err.Error(), "app, kv") {
			x.Errorf("migrate down under feeds: %v", err)
		}
		for range 2 {
			for _, name := range []string{"kv", "app"} {
				if err := x.RF.DropFeed(x.Ctx, name); err != nil {
					x.Fatal(err)
				}
			}
		}
		if after := x.DB.Dump(x.T); after != fresh {
			x.Errorf("feed drop left something behind:\n%s\nbefore feed add:\n%s", after, fresh)
		}
		x.Exec("INSERT INTO kv VALUES (3, 'c', 0)") // no trigger is left to fail
		for range 2 {
			if err := x.RF.MigrateDown(x.Ctx); err != nil {
				x.Fatal(err)
			}
		}
		if after := x.DB.Dump(x.T); after != before {
			x.Errorf("migrate down left something behind:\n%s\nbefore init:\n%s", after, before)
		}
	})
}

// TestFeedOfDroppedTableCanBeDropped (M63): a feed whose table was dropped refuses to be read, status reports a
// problem, and the feed can be dropped.
func TestFeedOfDroppedTableCanBeDropped(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		fresh := x.DB.Dump(x.T)
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'a', 0)")
		x.Drain(f, "")
		x.Exec("DROP TABLE kv")
		_, err := f.Fetch(x.Ctx, rowfeed.Request{})
		x.WantCode(err, rowfeed.Refused)
		if status, err := f.Admin().Status(x.Ctx); err != nil || len(status.Problems) == 0 {
			x.Errorf("status: %+v %v", status, err)
		}
		if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		if after := x.DB.Dump(x.T); after != fresh {
			x.Errorf("left behind:\n%s", after)
		}
	})
}

// TestAddingAgainChangesNothing (M28): adding a feed again with the same arguments changes nothing. With other
// arguments, it is a conflict that names the differences.
func TestAddingAgainChangesNothing(t *testing.T) {
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'a', 0)")
		x.Drain(f, "")
		before := x.DB.Dump(x.T)
		x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv", Key: []string{"id"}})
		if n := x.Publish(f); n != 0 {
			x.Errorf("adding again recorded %d keys", n)
		}
		_, err := x.RF.AddFeed(x.Ctx,
			rowfeed.FeedSpec{Name: "kv", Table: "kv", Columns: []string{"k"}, Tombstones: time.Hour}, nil)
		x.WantCode(err, rowfeed.Conflict)
		for _, part := range []string{"columns", "tombstones", "720h0m0s", "1h0m0s"} {
			if !strings.Contains(err.Error(), part) {
				x.Errorf("%q does not name %q", err, part)
			}
		}
		if x.DB.Dump(x.T) != before {
			x.Error("a refused feed add changed the schema")
		}
	})
}

// TestUnfitTablesAreRefused (M4, M28, H11, H22): tables that cannot have a feed, and invalid arguments, are refused
// with the reason, and leave no trace.
func TestUnfitTablesAreRefused(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE nokey (a INT)", "CREATE TABLE nullable (a INT, b INT NOT NULL, UNIQUE (a, b))",
			"CREATE TABLE good (id BIGINT NOT NULL PRIMARY KEY, v INT)", "CREATE VIEW looks AS SELECT * FROM good")
		cases := []struct {
			spec rowfeed.FeedSpec
			code rowfeed.Code
			says string
		}{
			{rowfeed.FeedSpec{Name: "f", Table: "absent"}, rowfeed.Refused, "does not exist"},
			{rowfeed.FeedSpec{Name: "f", Table: "nokey"}, rowfeed.Refused, "no primary key"},
			{rowfeed.FeedSpec{Name: "f", Table: "nullable", Key: []string{"b", "a"}}, rowfeed.Refused, "may be NULL"},
			{rowfeed.FeedSpec{Name: "f", Table: "good", Key: []string{"v"}}, rowfeed.Refused, "no unique index"},
			{rowfeed.FeedSpec{Name: "f", Table: "good", Columns: []string{"w"}}, rowfeed.Refused, `no column "w"`},
			{rowfeed.FeedSpec{Name: "f", Table: "good", Columns: []string{"v", "v"}}, rowfeed.InvalidRequest, "twice"},
			{rowfeed.FeedSpec{Name: "f", Table: "looks"}, rowfeed.Refused, "view"},
			{rowfeed.FeedSpec{Name: "F", Table: "good"}, rowfeed.InvalidRequest, "is not a feed name"},
			{rowfeed.FeedSpec{Name: strings.Repeat("x", 40), Table: "good"}, rowfeed.InvalidRequest,
				"is not a feed name"},
			{rowfeed.FeedSpec{Name: "f"}, rowfeed.InvalidRequest, "name the table"},
			{rowfeed.FeedSpec{Name: "f", Table: `"good`}, rowfeed.InvalidRequest, "closing quote"},
			{rowfeed.FeedSpec{Name: "f", Table: "a.b.c"}, rowfeed.InvalidRequest, "3 parts"},
			{rowfeed.FeedSpec{Name: "f", Table: "good", Mode: "ordered"}, rowfeed.InvalidRequest, "sequence"},
			{rowfeed.FeedSpec{Name: "f", Table: "good", Capture: "luck"}, rowfeed.InvalidRequest, "trigger, app"},
		}
		for _, system := range strings.Fields(x.Text("install.system_tables")) {
			cases = append(cases, struct {
				spec rowfeed.FeedSpec
				code rowfeed.Code
				says string
			}{rowfeed.FeedSpec{Name: "f", Table: system}, rowfeed.Refused, "the database's own tables"})
		}
		x.Exec(x.Statements("install.unfit_tables")...)
		for line := range strings.Lines(x.Text("install.unfit_table_reasons")) {
			table, says, _ := strings.Cut(strings.TrimSpace(line), " -> ")
			cases = append(cases, struct {
				spec rowfeed.FeedSpec
				code rowfeed.Code
				says string
			}{rowfeed.FeedSpec{Name: "f", Table: table}, rowfeed.Refused, says})
		}
		before := x.DB.Dump(x.T)
		for _, c := range cases {
			_, err := x.RF.AddFeed(x.Ctx, c.spec, nil)
			if !suite.IsCode(err, c.code) || !strings.Contains(err.Error(), c.says) {
				x.Errorf("%+v: %v, want %s with %q", c.spec, err, c.code, c.says)
			}
		}
		if x.DB.Dump(x.T) != before {
			x.Error("a refusal left something behind")
		}
		if feeds, err := x.RF.Feeds(x.Ctx); err != nil || len(feeds) != 0 {
			x.Errorf("feeds: %v %v", feeds, err)
		}
	})
}

// TestErrorTellsHowToQuoteDottedTable (M28): the error for a table name with a dot, whose first part is no schema, says
// how to quote the name if such a table exists. The quoted name works.
func TestErrorTellsHowToQuoteDottedTable(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		dotted := x.Dialect.Quote("odd.table")
		x.Exec("CREATE TABLE " + dotted + " (id BIGINT NOT NULL PRIMARY KEY)")
		_, err := x.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: "odd", Table: "odd.table"}, nil)
		x.WantCode(err, rowfeed.Refused)
		if !strings.Contains(err.Error(), `--table '"odd.table"'`) {
			x.Errorf("%v", err)
		}
		_, err = x.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: "odd", Table: "odd.chair"}, nil)
		x.WantCode(err, rowfeed.Refused)
		if strings.Contains(err.Error(), "--table") {
			x.Errorf("%v", err)
		}
		f := x.Add(rowfeed.FeedSpec{Name: "odd", Table: `"odd.table"`})
		x.Exec("INSERT INTO " + dotted + " VALUES (1)")
		x.WantDrain(f, "", `upsert {"id":1}`)
	})
}

// TestConcurrentMigrationsSucceed (H20): several processes run the migrations concurrently. All succeed, and each
// migration runs once.
func TestConcurrentMigrationsSucceed(t *testing.T) {
	testdb.Quick(t)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		db := e.New(t)
		var group sync.WaitGroup
		for range 4 {
			x := suite.OpenEnv(t, db, nil)
			group.Go(func() {
				if _, err := x.RF.Migrate(x.Ctx); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		x := suite.OpenEnv(t, db, nil)
		all, err := x.RF.Admin().Migrations(x.Ctx)
		if err != nil || len(all) == 0 || !all[len(all)-1].Applied {
			t.Errorf("%+v %v", all, err)
		}
		if n := x.Scalar("SELECT count(*) FROM rowfeed_schema_version"); n != int64(len(all)) {
			t.Errorf("%d rows in schema_version", n)
		}
	})
}

// TestMigrateKeepsTablesOfOthers: a user's table with the name of one of rowfeed's is a conflict, and stays untouched.
// What an interrupted migration has left is completed.
func TestMigrateKeepsTablesOfOthers(t *testing.T) {
	testdb.Quick(t)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		x := suite.NewEnv(t, e, nil)
		x.Migrate()
		fresh := x.DB.Dump(t)
		if err := x.RF.MigrateDown(x.Ctx); err != nil {
			x.Fatal(err)
		}
		x.Exec("CREATE TABLE rowfeed_cursors (name VARCHAR(100), value BIGINT)")
		before := x.DB.Dump(t)
		_, err := x.RF.Migrate(x.Ctx)
		x.WantCode(err, rowfeed.Conflict)
		if !strings.Contains(err.Error(), "rowfeed_cursors") || x.DB.Dump(t) != before {
			x.Errorf("a table of the user's own: %v", err)
		}
		x.Exec("DROP TABLE rowfeed_cursors")
		x.Migrate()
		if after := x.DB.Dump(x.T); after != fresh {
			x.Errorf("made again:\n%s\nfresh:\n%s", after, fresh)
		}
	})
}

// TestTablesHavePrefixAndSchema: rowfeed's tables have the configured prefix and schema. Writers need no search_path to
// find them.
func TestTablesHavePrefixAndSchema(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		const schema = `Feeds & "more"`
		cfg := &rowfeed.Config{Prefix: rowfeed.NoPrefix}
		if fixture.Of(e).Schemas {
			cfg.Schema = schema
		}
		x := suite.NewEnv(t, e, cfg)
		positions := "positions_kv"
		if x.Has.Schemas {
			positions = x.Dialect.Quote(schema) + "." + positions
			if _, err := x.RF.Migrate(x.Ctx); err == nil {
				t.Error("init accepted a schema that does not exist")
			}
			x.Exec("CREATE SCHEMA " + x.Dialect.Quote(schema))
		}
		x.Migrate()
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'a', 0)")
		cursor := x.WantDrain(f, "", suite.KV(1, "a", 0))
		if x.Has.Schemas {
			x.Exec(x.Text("install.write_in_other_schema"))
			x.WantDrain(f, cursor, suite.KV(1, "a", 1))
		}
		if n := x.Scalar("SELECT count(*) FROM " + positions); n != 1 {
			x.Errorf("%s has %d rows, want 1", positions, n)
		}
	})
}

// TestRowSecurityIsRefused (H5, V7): row security that hides rows from rowfeed's login is an error of every operation,
// and never looks like deletes.
func TestRowSecurityIsRefused(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.PostgreSQL...) // the others have no row security
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("INSERT INTO kv VALUES (1, 'a', 0)", "UPDATE kv SET v = 1")
		role := "feeder_" + x.DB.Name
		x.Exec("CREATE ROLE "+role+" LOGIN", "GRANT ALL ON ALL TABLES IN SCHEMA public TO "+role,
			"GRANT CREATE ON SCHEMA public TO "+role)
		x.Cleanup(func() { x.Exec("DROP OWNED BY "+role, "DROP ROLE "+role) })
		other := &testdb.Database{
			Engine: x.Engine,
			URL:    strings.Replace(x.DB.URL, "//postgres@", "//"+role+"@", 1),
			Name:   x.DB.Name,
		}
		y := suite.OpenEnv(x.T, other, nil)
		g, err := y.RF.Feed(x.Ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		x.Exec("ALTER TABLE kv ENABLE ROW LEVEL SECURITY", "CREATE POLICY mine ON kv USING (id > 100)")
		if problems, err := g.Admin().Verify(x.Ctx); err != nil || !strings.Contains(strings.Join(problems, "; "),
			"row security policies hide rows") {
			x.Errorf("problems %q, %v", problems, err)
		}
		_, err = g.Publish(x.Ctx)
		x.WantCode(err, rowfeed.Refused)
		_, err = g.Fetch(x.Ctx, rowfeed.Request{})
		x.WantCode(err, rowfeed.Refused)
		_, err = y.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: "more", Table: "kv"}, nil)
		x.WantCode(err, rowfeed.Refused)
		x.WantDrain(f, "", suite.KV(1, "a", 1)) // the owner sees all rows, and so does its feed
	})
}

// TestUnsafeDurabilityIsRefused: a session whose commits can be lost may not publish, unless the configuration accepts
// that.
func TestUnsafeDurabilityIsRefused(t *testing.T) {
	testdb.SQLite.Require(t)
	x := suite.NewEnv(t, testdb.SQLite, nil)
	x.Migrate()
	x.AddKV()
	x.Exec("INSERT INTO kv VALUES (1, 'a', 0)")
	careless := x.DB.OpenTapped(t, testdb.Hooks{}, "_pragma=synchronous(normal)")
	rf, err := rowfeed.Open(x.Ctx, careless, x.Dialect, nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := rf.Feed(x.Ctx, "kv")
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Publish(x.Ctx)
	x.WantCode(err, rowfeed.UnsafeDurability)
	rf, err = rowfeed.Open(x.Ctx, careless, x.Dialect, &rowfeed.Config{UnsafeDurability: true})
	if err != nil {
		t.Fatal(err)
	}
	if f, err = rf.Feed(x.Ctx, "kv"); err != nil {
		t.Fatal(err)
	}
	if n, err := f.Publish(x.Ctx); n != 1 || err != nil {
		t.Errorf("accepted: %d %v", n, err)
	}
}
