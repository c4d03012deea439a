package install

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestKeysAreComparedByTheirBytes (V6): a changed key is recorded with its former value, and an unchanged key once,
// whatever text the writer's session makes of the values. Outboxes compare keys in the same way.
func TestKeysAreComparedByTheirBytes(t *testing.T) {
	testdb.Quick(t)
	// Other databases compare keys as values: see TestUpdateToEqualValueIsCaptured and
	// TestCompositeKeysMayHaveOddColumnNames.
	testdb.Only(t, testdb.PostgreSQL...)
	suite.Each(t, func(x *suite.Env) {
		x.Exec("CREATE COLLATION ignoring (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
			"CREATE TYPE mood AS ENUM ('sad', 'happy')",
			"CREATE DOMAIN rough AS double precision CHECK (VALUE > 0)",
			"CREATE EXTENSION citext", "CREATE DOMAIN mail AS citext")
		const long = "repeat('abcdefghijklmnopqrstuvwxyz', 90)" // compressed in the table
		types := [][3]string{                                   // the type, a key, and another one
			{"double precision", "1.00001", "1.00002"}, {"real", "1.00001", "1.00002"}, {"rough", "1.00001", "1.00002"},
			{"double precision", "0", "'-0'"}, {"numeric", "1.0", "1.00"}, {"numeric(20,2)", "1", "1.01"},
			{"interval", "'1 day'", "'24:00'"}, {"money", "1.5", "1.51"}, {"text COLLATE ignoring", "'fred'", "'Fred'"},
			{"text COLLATE ignoring", long + " || 'y'", long + " || 'Y'"},
			{"char(5)", "'a'", "'b'"}, {"bpchar", "'a'", "'a '"},
			{"bit(4)", "B'1010'", "B'1011'"}, {"varbit", "B'101'", "B'1010'"}, {"inet", "'10.0.0.1'", "'10.0.0.1/8'"},
			{"time", "'12:00'", "'12:00:00.000001'"}, {"timetz", "'00:00+01'", "'01:00+02'"}, {"oid", "1", "2"},
			{"jsonb", `'{"a": 1.0}'`, `'{"a": 1.00}'`},
			{"int4range", "'[1,5]'", "'[1,7)'"}, {"numrange", "'[1,2)'", "'[1.0,2)'"},
			{"mood", "'sad'", "'happy'"}, {"tsvector", "'a'", "'b'"},
			{"citext", "'fred'", "'Fred'"}, {"mail", "'fred'", "'Fred'"},
		}
		for i, of := range types {
			table := fmt.Sprint("k", i)
			x.Exec("CREATE TABLE "+table+" (id "+of[0]+" NOT NULL, part date NOT NULL DEFAULT '2026-01-01', v int,"+
				" PRIMARY KEY (id, part))",
				"INSERT INTO "+table+" (id) VALUES ("+of[1]+")")
			x.Add(rowfeed.FeedSpec{Name: table, Table: table})
			outbox := rowfeed.FeedSpec{
				Name:    table + "_outbox",
				Table:   table,
				Mode:    rowfeed.ModeOutbox,
				Capture: "trigger",
			}
			x.Add(outbox)
			x.Exec("DELETE FROM rowfeed_changes_"+table, "DELETE FROM rowfeed_outbox_"+outbox.Name)
			session := "SET extra_float_digits = -12; SET DateStyle = German; SET IntervalStyle = sql_standard; "
			update := func(set string, changes, records int64) {
				x.Helper()
				x.Exec(session + "UPDATE " + table + " SET " + set + "; RESET ALL")
				if n := x.Scalar("SELECT count(*) FROM rowfeed_changes_" + table); n != changes {
					x.Errorf("%s from %s by %s: %d changes, want %d", of[0], of[1], set, n, changes)
				}
				if n := x.Scalar("SELECT count(*) FROM rowfeed_outbox_" + outbox.Name); n != records {
					x.Errorf("%s from %s by %s: %d records, want %d", of[0], of[1], set, n, records)
				}
			}
			update("v = 1, id = id", 1, 0)
			update("id = "+of[2], 3, 1)
			update("v = 2, id = "+of[2], 4, 1)
			update("part = '2026-01-02'", 6, 2)
		}
	})
}

// TestDomainOverEnumIsNoKey (V6): PostgreSQL has no = for domains over enums and ranges, so publishing would always
// fail. Such a key is refused.
func TestDomainOverEnumIsNoKey(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.PostgreSQL...) // elsewhere there are no domains
	suite.Each(t, func(x *suite.Env) {
		x.Exec("CREATE TYPE mood AS ENUM ('sad')", "CREATE DOMAIN moods AS mood", "CREATE DOMAIN spans AS int4range",
			"CREATE TABLE a (id moods PRIMARY KEY)", "CREATE TABLE b (id spans PRIMARY KEY)")
		for _, table := range []string{"a", "b"} {
			_, err := x.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: table, Table: table}, nil)
			if x.WantCode(err, rowfeed.Refused); !strings.Contains(fmt.Sprint(err), "domain over an enum or a range") {
				x.Error(err)
			}
		}
	})
}

// TestKeyOperatorsMayBeInAnySchema (V6): keys are compared by the operators of their type, in any schema. If the
// operators move to another schema, Verify reports it and upgrade mends it.
func TestKeyOperatorsMayBeInAnySchema(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.PostgreSQL...) // elsewhere operators have no schema
	suite.Each(t, func(x *suite.Env) {
		x.Exec("CREATE SCHEMA before", "CREATE SCHEMA now", "CREATE EXTENSION citext SCHEMA before",
			"CREATE TABLE users (mail before.citext NOT NULL, part int NOT NULL, PRIMARY KEY (mail, part))",
			"INSERT INTO users VALUES ('a', 1), ('B', 1), ('c', 2)")
		f := x.Add(rowfeed.FeedSpec{Name: "users", Table: "users"})
		_, cursor := x.Drain(f, "")
		// The session's search_path has no operators of citext, and would compare as text.
		if unknown, err := f.Admin().UnknownKeys(x.Ctx, rowfeed.Key{"A", 1}); err != nil || len(unknown) > 0 {
			x.Errorf("unknown: %v, %v", unknown, err)
		}
		x.Exec("ALTER EXTENSION citext SET SCHEMA now")
		if problems, err := f.Admin().Verify(x.Ctx); err != nil || len(problems) != 1 ||
			!strings.Contains(problems[0], "operators") {
			x.Errorf("%q, %v", problems, err)
		}
		if mended, err := f.Admin().Upgrade(x.Ctx); err != nil || len(mended) != 1 {
			x.Errorf("%q, %v", mended, err)
		}
		if n, err := f.Admin().RepublishWhere(x.Ctx, "", 1, nil); n != 3 || err != nil {
			x.Errorf("%d republished, %v", n, err)
		}
		x.WantDrain(f, cursor, `upsert {"mail":"a","part":1}`, `upsert {"mail":"B","part":1}`,
			`upsert {"mail":"c","part":2}`)
		x.WantSound(f)
	})
}
