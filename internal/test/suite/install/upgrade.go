package install

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/test/fixture"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestUnreleasedTablesAreRefused (M63, O7): a database with tables of before the first release is refused with the next
// step, by every command, and stays as it is.
func TestUnreleasedTablesAreRefused(t *testing.T) {
	testdb.Quick(t)
	// MySQL's tables are refused as MariaDB's are.
	testdb.Only(t, testdb.SQLite, testdb.Postgres15, testdb.Postgres18, testdb.MariaDB)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		savedBy := fixture.Of(e).Text(t, "install.saved_by")
		text, err := os.ReadFile(filepath.Join("../../../internal/test/suite/install/testdata/upgrade",
			savedBy+".7.sql"))
		if err != nil {
			t.Fatal(err)
		}
		db := e.New(t)
		db.Load(t, string(text))
		before := db.Dump(t)
		x := suite.OpenEnv(t, db, nil)
		_, feeds := x.RF.Feeds(x.Ctx)
		_, migrate := x.RF.Migrate(x.Ctx)
		_, versions := x.RF.Admin().Migrations(x.Ctx)
		for doing, err := range map[string]error{"list": feeds, "migrate": migrate, "versions": versions,
			"migrate down": x.RF.MigrateDown(x.Ctx)} {
			x.WantCode(err, rowfeed.SchemaVersion)
			for _, said := range []string{"version 7", "before the first release", "rowfeed migrate down"} {
				if !strings.Contains(err.Error(), said) {
					x.Errorf("%s: %v", doing, err)
				}
			}
		}
		if after := db.Dump(t); after != before {
			x.Errorf("changed to\n%s", after)
		}
	})
}

// TestNewerTablesAreRefused (M63): an older version refuses tables of a newer one, and says to use that.
func TestNewerTablesAreRefused(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		x.Exec("INSERT INTO rowfeed_schema_version (version, applied_at) VALUES (1000, 0)")
		_, err := suite.OpenEnv(x.T, x.DB, nil).RF.Feeds(x.Ctx)
		x.WantCode(err, rowfeed.SchemaVersion)
		if !strings.Contains(err.Error(), "Next: use a newer rowfeed") {
			x.Errorf("tables of a newer version: %v", err)
		}
	})
}

// TestInterruptedMigrateDownIsFinished (M63): where each DDL statement commits, a process that is killed while it
// removes rowfeed's tables leaves some of them. Migrate makes the others again, and MigrateDown removes the rest.
func TestInterruptedMigrateDownIsFinished(t *testing.T) {
	testdb.Only(t, testdb.MariaDB, testdb.MySQL) // the others roll back
	suite.Each(t, func(x *suite.Env) {
		q := dialect.On(x.Pool)
		schema, err := x.Dialect.CurrentSchema(x.Ctx, q)
		if err != nil {
			x.Fatal(err)
		}
		names := dialect.Names{Schema: schema, Prefix: "rowfeed_"}
		down := x.Dialect.Migrations(names)[0].Down
		interrupt := func(after int) {
			x.Helper()
			for _, s := range down[:after] {
				if _, err := q.Exec(x.Ctx, s); err != nil {
					x.Fatal(err)
				}
			}
		}
		interrupt(len(down) / 2)
		if applied, err := x.RF.Migrate(x.Ctx); err != nil || len(applied) != 1 {
			x.Fatal(applied, err)
		}
		if feeds, err := x.RF.Feeds(x.Ctx); err != nil || len(feeds) != 0 {
			x.Errorf("%v, %v", feeds, err)
		}
		interrupt(len(down) / 2)
		if err := x.RF.MigrateDown(x.Ctx); err != nil {
			x.Fatal(err)
		}
		for _, base := range []string{"schema_version", "feeds", "sequences", "terms"} {
			if _, err := x.Dialect.Describe(x.Ctx, q,
				names.Table(base)); x.Dialect.Classify(err) != dialect.ClassUndefined {
				x.Errorf("table %s: %v", base, err)
			}
		}
	})
}
