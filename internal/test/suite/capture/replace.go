package capture

import (
	"slices"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestReplaceCapturesDeletedRows (H6): a statement that replaces rows is captured with the rows that it deletes (hazard
// 6). SQLite fires no DELETE trigger for them.
func TestReplaceCapturesDeletedRows(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.SQLite, testdb.MariaDB, testdb.MySQL) // PostgreSQL has no REPLACE
	suite.Each(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)",
			"CREATE UNIQUE INDEX kv_k ON kv (k)", "CREATE UNIQUE INDEX kv_v ON kv (v)")
		f := x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
		x.Exec("INSERT INTO kv VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3), (4, 'd', 4)")
		_, cursor := x.Drain(f, "")
		sorted := func(after rowfeed.Cursor) ([]string, rowfeed.Cursor) {
			lines, next := x.Drain(f, after)
			slices.Sort(lines)
			return lines, next
		}
		x.Exec("REPLACE INTO kv VALUES (5, 'a', 2)") // deletes rows 1 and 2
		lines, cursor := sorted(cursor)
		if want := []string{suite.Gone(1), suite.Gone(2), suite.KV(5, "a", 2)}; !slices.Equal(lines, want) {
			x.Errorf("the entries are %q, want %q", lines, want)
		}
		if updates := x.Statements("capture.update_and_replace"); len(updates) > 0 {
			x.Exec(updates[0]) // sets k of row 4, and deletes row 3
			lines, cursor = sorted(cursor)
			if want := []string{suite.Gone(3), suite.KV(4, "c", 4)}; !slices.Equal(lines, want) {
				x.Errorf("the entries are %q, want %q", lines, want)
			}
			x.Exec(updates[1]) // makes row 5 row 4, and deletes the former row 4
			lines, _ = sorted(cursor)
			if want := []string{suite.Gone(5), suite.KV(4, "a", 2)}; !slices.Equal(lines, want) {
				x.Errorf("the entries are %q, want %q", lines, want)
			}
		}
		x.WantSound(f)
	})
}

// TestVerifyFindsLaterUniqueIndex (M63, H6): on SQLite the triggers depend on the unique indexes of the table. Verify
// finds that an index was added, and upgrade makes the triggers anew.
func TestVerifyFindsLaterUniqueIndex(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec("CREATE UNIQUE INDEX kv_k ON kv (k)")
		problems, err := f.Admin().Verify(x.Ctx)
		if err != nil {
			x.Fatal(err)
		}
		if (len(problems) > 0) != x.Has.SilentReplace {
			x.Errorf("verify found %q", problems)
		}
		if _, err := f.Admin().Upgrade(x.Ctx); err != nil {
			x.Fatal(err)
		}
		if problems, _ = f.Admin().Verify(x.Ctx); len(problems) > 0 {
			x.Errorf("after upgrade, verify found %q", problems)
		}
		if !x.Has.SilentReplace {
			return
		}
		x.Exec("INSERT INTO kv VALUES (1, 'a', 1)")
		_, cursor := x.Drain(f, "")
		x.Exec("REPLACE INTO kv VALUES (2, 'a', 2)")
		x.WantDrain(f, cursor, suite.Gone(1), suite.KV(2, "a", 2))
		_, err = x.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: "other", Table: "kv"}, nil)
		if err != nil {
			x.Fatal(err)
		}
		x.Exec(x.Text("capture.add_index_on_expression"))
		_, err = x.RF.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: "refused", Table: "kv"}, nil)
		x.WantCode(err, rowfeed.Refused)
	})
}

// TestReplaceByDefaultsIsCaptured (H6): OR REPLACE writes the default of a column in place of NULL, and deletes the row
// that has it. Both are captured.
func TestReplaceByDefaultsIsCaptured(t *testing.T) {
	testdb.Only(t, testdb.SQLite)
	suite.Each(t, func(x *suite.Env) {
		x.Exec(x.Text("capture.table_with_unique_defaults"))
		f := x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
		x.Exec("INSERT INTO kv VALUES (1, 'xy', 'a')")
		_, cursor := x.Drain(f, "")
		x.Exec(x.Text("capture.replace_by_defaults"))
		cursor = x.WantDrain(f, cursor, suite.Gone(1), `upsert {"id":2,"ns":"xy","k":"a"}`)
		x.Exec("INSERT INTO kv VALUES (3, 'z', 'z')")
		_, cursor = x.Drain(f, cursor)
		x.Exec(x.Text("capture.update_to_defaults"))
		x.WantDrain(f, cursor, suite.Gone(2), `upsert {"id":3,"ns":"xy","k":"a"}`)
		x.WantSound(f)
	})
}

// TestReplaceByRowidIsCaptured (H6): OR REPLACE deletes rows by a second index on the key's columns with another
// collation, and by the hidden rowid. The deletes are captured.
func TestReplaceByRowidIsCaptured(t *testing.T) {
	testdb.Only(t, testdb.SQLite)
	suite.Each(t, func(x *suite.Env) {
		x.Exec(x.Statements("capture.table_with_second_collation")...)
		f := x.Add(rowfeed.FeedSpec{Name: "n", Table: "n"})
		x.Exec("INSERT INTO n VALUES ('a', 1)")
		_, cursor := x.Drain(f, "")
		x.Exec("REPLACE INTO n VALUES ('A', 2)")
		x.WantDrain(f, cursor, `delete {"k":"a"}`, `upsert {"k":"A","v":2}`)
		x.Exec("CREATE TABLE h (k TEXT NOT NULL PRIMARY KEY)")
		g := x.Add(rowfeed.FeedSpec{Name: "h", Table: "h"})
		x.Exec(x.Text("capture.insert_rowids"))
		_, cursor = x.Drain(g, "")
		x.Exec(x.Text("capture.replace_rowid"))
		cursor = x.WantDrain(g, cursor, `delete {"k":"a"}`, `upsert {"k":"z"}`)
		x.Exec(x.Text("capture.update_rowid_and_replace"))
		x.WantDrain(g, cursor, `delete {"k":"z"}`, `upsert {"k":"b"}`)
		x.WantSound(f)
		x.WantSound(g)
	})
}

// TestStrictKeysKeepTheirTypes: in a STRICT table 1 and '1' are two keys of a column of type ANY.
func TestStrictKeysKeepTheirTypes(t *testing.T) {
	testdb.Only(t, testdb.SQLite)
	suite.Each(t, func(x *suite.Env) {
		x.Exec(x.Text("capture.table_with_key_of_any_type"))
		f := x.Add(rowfeed.FeedSpec{Name: "s", Table: "s"})
		x.Exec("INSERT INTO s VALUES (1, 1), ('1', 2)")
		cursor := x.WantDrain(f, "", `upsert {"k":1,"v":1}`, `upsert {"k":"1","v":2}`)
		x.Exec("DELETE FROM s WHERE v = 2")
		x.WantDrain(f, cursor, `delete {"k":"1"}`)
		x.WantSound(f)
	})
}
