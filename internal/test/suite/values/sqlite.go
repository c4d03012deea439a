package values

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// sqliteSamples are every storage class in columns of every affinity.
func sqliteSamples() []sample {
	// What a column of numeric affinity makes of each value.
	number := func(decl string) sample {
		return column(decl, feedtype.Dynamic, "1", "1", "'12'", "12", "'abc'", `"abc"`, "1.5", "1.5", "2.0", "2", "x'00ff'", `{"$binary":"AP8="}`,
			"9223372036854775807", "9223372036854775807", "-9223372036854775808", "-9223372036854775808", "9223372036854775808", "9.223372036854776e+18",
			"9e999", `{"$float":"Infinity"}`, "-9e999", `{"$float":"-Infinity"}`, "''", `""`, "x''", `{"$binary":""}`, "1e100", "1e+100",
			"'a'||char(0)||'b'", `"a\u0000b"`, "CAST(x'61ff62' AS TEXT)", `{"$text64":"Yf9i"}`)
	}
	return []sample{
		number("INTEGER"), number("BIGINT"), number("NUMERIC"), number("DECIMAL(10,5)"), number("DATE"), number("DATETIME"), number("TIMESTAMP"), number("BOOLEAN"),
		column("DATE", feedtype.Dynamic, "'2026-01-02'", `"2026-01-02"`, "1767312000", "1767312000"),
		column("DATETIME", feedtype.Dynamic, "'2026-01-02 03:04:05.6'", `"2026-01-02 03:04:05.6"`, "'2026-01-02T03:04:05Z'", `"2026-01-02T03:04:05Z"`, "1767312000000", "1767312000000"),
		column("TIMESTAMP", feedtype.Dynamic, "'2026-01-02 03:04:05+02:00'", `"2026-01-02 03:04:05+02:00"`),
		column("BOOLEAN", feedtype.Dynamic, "TRUE", "1", "FALSE", "0", "'true'", `"true"`),
		column("TEXT", feedtype.Dynamic, "12", `"12"`, "'é😀'", `"é😀"`, "x'00ff'", `{"$binary":"AP8="}`, "CAST(x'61ff62' AS TEXT)", `{"$text64":"Yf9i"}`,
			"'a'||char(0)||'b'", `"a\u0000b"`, "1.5", `"1.5"`, "''", `""`, "x''", `{"$binary":""}`, `'{"$binary":"AA=="}'`, `"{\"$binary\":\"AA==\"}"`),
		column("VARCHAR(3)", feedtype.Dynamic, "'longer'", `"longer"`, "007", `"7"`),
		column("JSON", feedtype.Dynamic, `'{"a": 1}'`, `"{\"a\": 1}"`),
		column("BLOB", feedtype.Binary, "x'00ff'", `"AP8="`, "5", "5", "'text'", `{"$text":"text"}`, "1.5", "1.5", "9e999", `{"$float":"Infinity"}`,
			"CAST(x'61ff62' AS TEXT)", `{"$text64":"Yf9i"}`, "x''", `""`, "''", `{"$text":""}`, "9223372036854775807", "9223372036854775807"),
		column("REAL", feedtype.Dynamic, "1", "1.0", "0.1", "0.1", "'x'", `"x"`, "x'01'", `{"$binary":"AQ=="}`, "9e999", `{"$float":"Infinity"}`, "-0.0", "0.0",
			"1.7976931348623157e308", "1.7976931348623157e+308", "4.9e-324", "5e-324", "0.30000000000000004", "0.30000000000000004"),
		column("", feedtype.Dynamic, "1", "1", "1.0", "1.0", "'1'", `"1"`, "x'31'", `{"$binary":"MQ=="}`, "CAST(x'ff' AS TEXT)", `{"$text64":"/w=="}`, "x'ff'", `{"$binary":"/w=="}`),
	}
}

// TestStrictTables: SQLite's STRICT tables, and WITHOUT ROWID ones, are delivered
// like any other; ANY keeps each value as it is.
func TestStrictTables(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		if e != testdb.SQLite {
			return
		}
		x := suite.NewEnv(t, e, nil)
		x.Migrate()
		samples := []sample{
			column("INT", feedtype.Dynamic, "-9223372036854775808", "-9223372036854775808"),
			column("INTEGER", feedtype.Dynamic, "9223372036854775807", "9223372036854775807"),
			column("REAL", feedtype.Dynamic, "1", "1.0"),
			column("TEXT", feedtype.Dynamic, "5", `"5"`, "CAST(x'ff' AS TEXT)", `{"$text64":"/w=="}`),
			column("BLOB", feedtype.Binary, "x'00'", `"AA=="`),
			column("ANY", feedtype.Dynamic, "1.0", "1.0", "'1'", `"1"`, "x'31'", `{"$binary":"MQ=="}`, "1", "1"),
		}
		want := valuesTable(x, func(s string) { x.Exec(s) }, samples, " STRICT, WITHOUT ROWID")
		f := x.Add(rowfeed.FeedSpec{Name: "every", Table: "every"})
		x.Publish(f)
		wantValues(x, f, "default", samples, want)
	})
}

// TestKeysThatLookAlike: on SQLite a text and a blob of the same bytes, and a number
// and its text, are different keys; none may be taken for another, also where
// back-fill was interrupted between them (guarantee 1, hazard 24).
func TestKeysThatLookAlike(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		if e != testdb.SQLite {
			return
		}
		x := suite.NewEnv(t, e, nil)
		x.Migrate()
		x.Exec("CREATE TABLE alike (k NOT NULL PRIMARY KEY)",
			"INSERT INTO alike VALUES (1), ('1'), ('Fred'), ('fred'), (x'31'), (CAST(x'ff' AS TEXT)), (x'ff'), ('{\"$binary\":\"/w==\"}'), (CAST(x'fe' AS TEXT))")
		f := x.Add(rowfeed.FeedSpec{Name: "alike", Table: "alike"})
		x.WantDrain(f, "", `upsert {"k":1}`, `upsert {"k":"1"}`, `upsert {"k":"Fred"}`, `upsert {"k":"fred"}`, `upsert {"k":"{\"$binary\":\"/w==\"}"}`, `upsert {"k":{"$text64":"/g=="}}`, `upsert {"k":{"$text64":"/w=="}}`,
			`upsert {"k":{"$binary":"MQ=="}}`, `upsert {"k":{"$binary":"/w=="}}`)
		x.WantSound(f)
	})
}

// TestIntegerKeys: a key declared INTEGER holds anything but where it is the rowid itself, as
// it is in the table that has such a key's positions.
func TestIntegerKeys(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		if e != testdb.SQLite {
			return
		}
		x := suite.NewEnv(t, e, nil)
		x.Migrate()
		for name, c := range map[string]struct {
			table string
			rowid bool
			odd   string
		}{
			"rowids":   {"(id INTEGER PRIMARY KEY)", true, ""},
			"named":    {"(v, id INTEGER, PRIMARY KEY (id))", true, ""},
			"lists":    {"(id INTEGER PRIMARY KEY) WITHOUT ROWID", false, "abc"},
			"backward": {"(id INTEGER NOT NULL PRIMARY KEY DESC)", false, "abc"},
			"wide":     {"(id INT PRIMARY KEY NOT NULL)", false, "abc"},
		} {
			x.Exec("CREATE TABLE "+name+" "+c.table, "INSERT INTO "+name+" (id) VALUES (3), (-1), (9223372036854775807)")
			if c.odd != "" {
				x.Exec("INSERT INTO " + name + " (id) VALUES ('" + c.odd + "')")
			}
			f := x.Add(rowfeed.FeedSpec{Name: name, Table: name})
			want := []string{"-1", "3", "9223372036854775807"}
			if c.odd != "" {
				want = append(want, strconv.Quote(c.odd))
			}
			var got []string
			x.Publish(f)
			x.Exec("DELETE FROM "+name+" WHERE id = 3", "INSERT INTO "+name+" (id) VALUES (3)") // again, by a change
			x.Publish(f)
			for _, e := range x.Fetch(f, "", 100).Entries {
				got = append(got, strings.TrimSuffix(strings.TrimPrefix(string(e.Key.AppendJSON(nil)), `{"id":`), "}"))
			}
			slices.Sort(got)
			if slices.Sort(want); !slices.Equal(got, want) {
				t.Errorf("%s: keys %s, want %s", name, got, want)
			}
			if rowid := x.Scalar("SELECT wr FROM pragma_table_list WHERE name = 'rowfeed_positions_"+name+"'") == 0; rowid != c.rowid {
				t.Errorf("%s: the positions' key is the rowid: %t", name, rowid)
			}
			x.WantSound(f)
		}
	})
}

// TestDriverThatInventsTimes: a driver told to turn every text that looks like a time
// into one cannot be read through without loss; it is refused, and says what to change.
func TestDriverThatInventsTimes(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		if e != testdb.SQLite {
			return
		}
		x := suite.NewEnv(t, e, nil)
		x.Migrate()
		x.Exec("CREATE TABLE d (id INTEGER PRIMARY KEY, at DATETIME)", "INSERT INTO d VALUES (1, '2026-01-02 03:04:05')")
		f := x.Add(rowfeed.FeedSpec{Name: "d", Table: "d"})
		x.WantDrain(f, "", `upsert {"id":1,"at":"2026-01-02 03:04:05"}`)
		if _, err := feedThrough(x, "d", "_texttotime=1").Fetch(x.Ctx, rowfeed.Request{}); err == nil || !strings.Contains(err.Error(), "_texttotime") {
			t.Errorf("error %v", err)
		}
	})
}
