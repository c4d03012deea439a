package capture

import (
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestNullKeyIsReported (V7): SQLite accepts NULL in `id TEXT PRIMARY KEY`. A feed takes such a key if no row has NULL
// in it. Writers may insert such rows later: they are no entries, check and status report them, and all other rows are
// published. A row that gets a key, or loses it, appears or is deleted.
func TestNullKeyIsReported(t *testing.T) {
	testdb.Only(t, testdb.SQLite) // other databases keep NULL out of every primary key
	suite.Each(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE notes (id TEXT PRIMARY KEY, v TEXT UNIQUE)",
			"INSERT INTO notes VALUES ('a', 'x'), (NULL, 'y')")
		spec := rowfeed.FeedSpec{Name: "notes", Table: "notes"}
		refused := func(spec rowfeed.FeedSpec, cause, next string) {
			t.Helper()
			_, err := x.RF.AddFeed(x.Ctx, spec, nil)
			if x.WantCode(err, rowfeed.Refused); !strings.Contains(err.Error(), cause) ||
				!strings.Contains(err.Error(), next) {
				t.Errorf("error %v, want %s, and %s", err, cause, next)
			}
		}
		refused(spec, `rows with NULL in key column "id": 1`, "give these rows keys")
		x.Exec("UPDATE notes SET id = 'b' WHERE id IS NULL")
		byColumn := spec
		byColumn.Capture = feedtype.CaptureColumn
		refused(byColumn, `key column "id" may be NULL`, "NOT NULL")

		f := x.Add(spec)
		line := func(id, v string) string { return `upsert {"id":"` + id + `","v":"` + v + `"}` }
		gone := func(id string) string { return `delete {"id":"` + id + `"}` }
		cursor := x.WantDrain(f, "", line("a", "x"), line("b", "y"))
		reported := func(want string) {
			t.Helper()
			findings, err := f.Admin().Check(x.Ctx)
			if err != nil {
				t.Fatal(err)
			}
			status, err := f.Admin().Status(x.Ctx)
			if err != nil {
				t.Fatal(err)
			}
			if want == "" {
				if len(findings) > 0 || len(status.Problems) > 0 {
					t.Errorf("check: %v, status: %v", findings, status.Problems)
				}
				return
			}
			if len(findings) != 1 || findings[0].Rule != "row-has-key" || findings[0].ByRepair() ||
				!strings.Contains(findings[0].Problem, want) {
				t.Errorf("check: %v, want %s", findings, want)
			}
			if !slices.ContainsFunc(status.Problems, func(p string) bool { return strings.Contains(p, want) }) {
				t.Errorf("status: %v, want %s", status.Problems, want)
			}
		}
		reported("")
		x.Exec("INSERT INTO notes VALUES (NULL, 'n1'), (NULL, 'n2'), (NULL, 'n3'), ('c', 'z')",
			"UPDATE notes SET v = 'n4' WHERE v = 'n1'", "DELETE FROM notes WHERE v = 'n3'",
			"INSERT OR REPLACE INTO notes VALUES ('d', 'n2')", "UPDATE notes SET id = NULL WHERE id = 'b'")
		cursor = x.WantDrain(f, cursor, line("c", "z"), line("d", "n2"), gone("b"))
		const two = `rows with NULL in key column "id": 2;`
		reported(two)
		if n, err := f.Admin().RepublishWhere(x.Ctx, "", 2, nil); err != nil || n != 3 {
			t.Errorf("%d rows published again, %v; want 3", n, err)
		}
		cursor = x.WantDrain(f, cursor, line("a", "x"), line("c", "z"), line("d", "n2"))
		if _, err := f.Admin().Repair(x.Ctx); err != nil {
			t.Error(err)
		}
		reported(two)
		x.Exec("UPDATE notes SET id = 'e' WHERE v = 'n4'", "DELETE FROM notes WHERE id IS NULL")
		x.WantDrain(f, cursor, line("e", "n4"))
		reported("")

		_, err := x.RF.AddFeed(x.Ctx, spec, nil) // again: nothing changes
		if err != nil {
			t.Error(err)
		}
	})
}

// TestKeyThatMayBecomeNullIsReported (V7): a table is rebuilt without the NOT NULL of its primary key. The feed's
// triggers would fail writers of rows with NULL, so check says that the table has become unfit.
func TestKeyThatMayBecomeNullIsReported(t *testing.T) {
	testdb.Only(t, testdb.SQLite) // other databases keep NULL out of every primary key
	suite.Each(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE notes (id TEXT NOT NULL PRIMARY KEY, v TEXT)")
		f := x.Add(rowfeed.FeedSpec{Name: "notes", Table: "notes"})
		x.Exec("DROP TABLE notes", "CREATE TABLE notes (id TEXT PRIMARY KEY, v TEXT)")
		problems, err := f.Admin().Verify(x.Ctx)
		if err != nil || !slices.ContainsFunc(problems, func(p string) bool {
			return strings.Contains(p, `key column "id" may be NULL`)
		}) {
			t.Errorf("verify: %v, %v", problems, err)
		}
	})
}
