package values

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/fixture"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// sample is a column type with values and what a feed shows for them. The tables of
// samples are in postgres.go, mysql.go and sqlite.go.
type sample struct {
	decl  string
	kind  feedtype.Kind
	cells []string // pairs: an SQL expression, the JSON in the entry
}

// column makes a sample; every column gets a NULL besides.
func column(decl string, kind feedtype.Kind, cells ...string) sample {
	return sample{decl: decl, kind: kind, cells: cells}
}

// valuesTable makes the table every(id, c0, c1…): row i holds the i-th value of each
// sample, the last row only NULLs. want is what entry i shows in column j.
func valuesTable(x *suite.Env, run func(string), samples []sample, suffix string) (want [][]string) {
	x.Helper()
	decls, rows := []string{"id INTEGER NOT NULL PRIMARY KEY"}, 0
	for i, s := range samples {
		decls = append(decls, fmt.Sprintf("c%d %s", i, s.decl))
		rows = max(rows, len(s.cells)/2)
	}
	run("CREATE TABLE every (" + strings.Join(decls, ", ") + ")" + suffix)
	for r := range rows + 1 {
		values, shown := []string{fmt.Sprint(r)}, []string{}
		for _, s := range samples {
			value, json := "NULL", "null"
			if 2*r < len(s.cells) {
				value, json = s.cells[2*r], s.cells[2*r+1]
			}
			values, shown = append(values, value), append(shown, json)
		}
		run("INSERT INTO every VALUES (" + strings.Join(values, ", ") + ")")
		want = append(want, shown)
	}
	return want
}

// wantValues reads the feed whole and compares every value with what it should be:
// its JSON, and that JSON through ParseEntry, as HTTP clients read it.
func wantValues(x *suite.Env, f *rowfeed.Feed, name string, samples []sample, want [][]string) {
	x.Helper()
	info, err := f.Info(x.Ctx)
	if err != nil {
		x.Fatal(err)
	}
	for i, s := range samples {
		if c := info.Columns[i+1]; c.Kind != s.kind {
			x.Errorf("%s: %s is of kind %s, want %s", name, s.decl, c.Kind, s.kind)
		}
	}
	page := x.Fetch(f, "", feedtype.MaxLimit)
	if len(page.Entries) != len(want) {
		x.Fatalf("%s: %d entries, want %d", name, len(page.Entries), len(want))
	}
	for r, e := range page.Entries {
		for i, s := range samples {
			if got := member(x, e.Row, i+1); got != want[r][i] {
				x.Errorf("%s: %s, row %d: got %.200s, want %.200s", name, s.decl, r, got, want[r][i])
			}
		}
		wantRoundTrip(x, e, info)
	}
}

// wantRoundTrip: an entry's JSON reads back as the same values and the same JSON.
func wantRoundTrip(x *suite.Env, e rowfeed.Entry, info *rowfeed.Info) {
	x.Helper()
	text := e.AppendJSON(nil)
	if !json.Valid(text) || !utf8.Valid(text) || bytes.IndexByte(text, '\n') >= 0 {
		x.Errorf("an entry is no line of JSON: %.300s", text)
	}
	back, ok, err := feedtype.ParseEntry(text, e.Generation, info)
	if err != nil || !ok {
		x.Errorf("ParseEntry: %v, %v: %.300s", ok, err, text)
		return
	}
	if again := back.AppendJSON(nil); string(again) != string(text) {
		x.Errorf("the entry\n%.300s\nreads back as\n%.300s", text, again)
	}
	for i := range e.Row.Len() {
		a, b := e.Row.Value(i), back.Row.Value(i)
		if !sameValue(a, b) {
			x.Errorf("%s: %T %.100v reads back as %T %.100v", e.Row.Column(i).Type, a, a, b, b)
		}
	}
}

// sameValue compares two values of a row: type and bits.
func sameValue(a, b any) bool {
	switch a := a.(type) {
	case float64:
		b, ok := b.(float64)
		return ok && (math.Float64bits(a) == math.Float64bits(b) || math.IsNaN(a) && math.IsNaN(b))
	case []byte:
		b, ok := b.([]byte)
		return ok && b != nil && bytes.Equal(a, b)
	case json.RawMessage:
		b, ok := b.(json.RawMessage)
		return ok && bytes.Equal(a, b)
	}
	return a == b
}

// member is the JSON of one column of a row.
func member(x *suite.Env, r rowfeed.Row, i int) string {
	x.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(r.AppendJSON(nil), &members); err != nil {
		x.Fatal(err)
	}
	return string(members[r.Column(i).Name])
}

// feedThrough is the feed over another pool, with settings of the driver's.
func feedThrough(x *suite.Env, name string, params ...string) *rowfeed.Feed {
	x.Helper()
	rf, err := rowfeed.Open(x.Ctx, x.DB.OpenTapped(x.T, testdb.Hooks{}, params...), x.Dialect, nil)
	if err != nil {
		x.Fatal(err)
	}
	f, err := rf.Feed(x.Ctx, name)
	if err != nil {
		x.Fatal(err)
	}
	return f
}

// driverSettings change what a driver makes of a value, or what the server sends.
func driverSettings(e testdb.Engine) map[string][]string {
	switch e.Family {
	case "postgres":
		return map[string][]string{
			"session": {"TimeZone=America/New_York", "DateStyle=German", "IntervalStyle=sql_standard", "extra_float_digits=-3", "bytea_output=escape", "xmloption=content"},
			"simple":  {"default_query_exec_mode=simple_protocol", "TimeZone=Asia/Kathmandu", "DateStyle=SQL", "bytea_output=escape"},
			"exec":    {"default_query_exec_mode=exec", "default_transaction_isolation=serializable"},
		}
	case "mysql":
		isolation := "transaction_isolation"
		if e == testdb.MariaDB {
			isolation = "tx_isolation"
		}
		return map[string][]string{
			"text":      {"interpolateParams=true"},
			"times":     {"parseTime=true", "loc=Asia%2FKathmandu"},
			"textTimes": {"parseTime=true", "loc=America%2FNew_York", "interpolateParams=true", "charset=latin1"},
			"zone":      {"time_zone=%27Test%2FBerlin%27", "sql_mode=%27ANSI_QUOTES%2CPIPES_AS_CONCAT%2CSTRICT_ALL_TABLES%2CNO_ZERO_DATE%2CNO_ZERO_IN_DATE%2CNO_BACKSLASH_ESCAPES%27"},
			"level":     {isolation + "=%27READ-UNCOMMITTED%27"},
		}
	}
	return map[string][]string{
		"times": {"_inttotime=1", "_time_format=sqlite", "_timezone=America/New_York"},
	}
}

// TestValuesOfEveryType (M15): every value of every column type of every database
// travels typed and without loss, and is the same whatever the driver's and the
// session's settings are. NULL is NULL in every type.
func TestValuesOfEveryType(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		run := func(statement string) { x.Helper(); x.Exec(statement) }
		var samples []sample
		var suffix string
		switch x.Family() {
		case "postgres":
			samples = postgresSamples(x)
		case "mysql":
			samples, suffix = mysqlSamples(x.Engine), " ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4"
			addBerlin(x)
			conn, err := x.DB.Admin().Conn(x.Ctx) // zero dates need a session of their own
			if err != nil {
				x.Fatal(err)
			}
			defer conn.Close()
			run = func(statement string) {
				x.Helper()
				if _, err := conn.ExecContext(x.Ctx, statement); err != nil {
					x.Fatalf("%s: %v", statement, err)
				}
			}
			run("SET SESSION sql_mode = ''")
		default:
			samples = sqliteSamples()
		}
		want := valuesTable(x, run, samples, suffix)
		f := x.Add(rowfeed.FeedSpec{Name: "every", Table: "every"})
		x.Publish(f)
		wantValues(x, f, "default", samples, want)
		for name, params := range driverSettings(x.Engine) {
			wantValues(x, feedThrough(x, "every", params...), name, samples, want)
		}
		x.WantSound(f)
	})
}

// TestGeneratedColumns: columns that the database computes are delivered like any
// other, stored or not.
func TestGeneratedColumns(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		virtual := x.By(map[string]string{"sqlite": "VIRTUAL", "mysql": "VIRTUAL", "postgres": "STORED"})
		if x.Engine == testdb.Postgres18 {
			virtual = "VIRTUAL"
		}
		x.Exec(
			"CREATE TABLE g (id BIGINT NOT NULL PRIMARY KEY, a INTEGER, s INTEGER GENERATED ALWAYS AS (a * 2) STORED, "+
				"v INTEGER GENERATED ALWAYS AS (a + 1) "+virtual+")",
			"INSERT INTO g (id, a) VALUES (1, 10), (2, NULL)")
		f := x.Add(rowfeed.FeedSpec{Name: "g", Table: "g"})
		cursor := x.WantDrain(f, "", `upsert {"id":1,"a":10,"s":20,"v":11}`, `upsert {"id":2,"a":null,"s":null,"v":null}`)
		x.Exec("UPDATE g SET a = 5 WHERE id = 1")
		x.WantDrain(f, cursor, `upsert {"id":1,"a":5,"s":10,"v":6}`)
	})
}

// TestDecodedTypes: what a page's values are in Go, one of each kind, so that
// consumers written in Go can rely on them.
func TestDecodedTypes(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		x.Exec(x.By(map[string]string{
			"sqlite":   "CREATE TABLE d (id INTEGER PRIMARY KEY, i BIGINT, f DOUBLE, t TEXT, b BLOB, at TEXT)",
			"postgres": "CREATE TABLE d (id INTEGER PRIMARY KEY, i BIGINT, f DOUBLE PRECISION, t TEXT, b BYTEA, at TIMESTAMPTZ)",
			"mysql":    "CREATE TABLE d (id INTEGER PRIMARY KEY, i BIGINT, f DOUBLE, t TEXT, b BLOB, at TIMESTAMP NULL)",
		}), x.By(map[string]string{
			"sqlite":   `INSERT INTO d VALUES (1, 9007199254740993, 1.5, 'é', x'00ff', '2026-10-25T00:30:00Z')`,
			"postgres": `INSERT INTO d VALUES (1, 9007199254740993, 1.5, 'é', '\x00ff', '2026-10-25 00:30:00+00')`,
			"mysql":    `INSERT INTO d VALUES (1, 9007199254740993, 1.5, 'é', x'00ff', '2026-10-25 00:30:00')`,
		}))
		f := x.Add(rowfeed.FeedSpec{Name: "d", Table: "d"})
		x.Publish(f)
		page := x.Fetch(f, "", 0)
		row := page.Entries[0].Row
		got := []any{row.Value(1), row.Value(2), row.Value(3), row.Value(4), row.Value(5)}
		if diff := cmp.Diff([]any{int64(9007199254740993), 1.5, "é", []byte{0, 255}, "2026-10-25T00:30:00Z"}, got); diff != "" {
			x.Error(diff)
		}
		var into struct {
			I  int64
			F  float64
			T  string
			B  []byte
			At time.Time
		}
		if err := page.Entries[0].Decode(&into); err != nil || into.I != 9007199254740993 || string(into.B) != "\x00\xff" || !into.At.Equal(time.Date(2026, 10, 25, 0, 30, 0, 0, time.UTC)) {
			x.Errorf("%+v, %v", into, err)
		}
		if info, err := f.Info(x.Ctx); err != nil || !slices.Equal(info.Base64, []string{"b"}) {
			x.Errorf("base64 columns of %+v, %v", info, err)
		}
	})
}

// TestTextThatIsNotUTF8: a PostgreSQL database without an encoding holds any bytes;
// they travel as bytes, in text, in JSON and as keys. (SQLite's are in the table of
// values; MySQL and MariaDB convert every text from its character set.)
func TestTextThatIsNotUTF8(t *testing.T) {
	testdb.Quick(t)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		if e.Family != "postgres" {
			return
		}
		host := e.New(t)
		host.Exec(t, "CREATE DATABASE "+host.Name+"_ascii ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
		u, err := url.Parse(host.URL)
		if err != nil {
			t.Fatal(err)
		}
		u.Path += "_ascii"
		pool, d, err := suite.Open(t.Context(), u.String(), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			pool.Close()
			host.Exec(t, "DROP DATABASE "+host.Name+"_ascii WITH (FORCE)")
		})
		rf, err := rowfeed.Open(t.Context(), pool, d, nil)
		if err != nil {
			t.Fatal(err)
		}
		x := &suite.Env{T: t, Engine: e, DB: host, Pool: pool, Dialect: d, RF: rf, Ctx: t.Context(), Has: fixture.Of(e)}
		x.Migrate()
		for _, s := range []string{
			"CREATE TABLE raw (k text PRIMARY KEY, c char(4), j json, a text[])",
			`INSERT INTO raw VALUES (E'\xff', E'\xe9', E'{"a": "\xe9"}', ARRAY[E'\xe9']), (E'caf\xc3\xa9', 'x', NULL, NULL)`,
		} {
			if _, err := pool.ExecContext(x.Ctx, s); err != nil {
				t.Fatal(err)
			}
		}
		f := x.Add(rowfeed.FeedSpec{Name: "raw", Table: "raw"})
		got, cursor := x.Drain(f, "")
		want := []string{
			`upsert {"k":"café","c":"x   ","j":null,"a":null}`,
			`upsert {"k":{"$binary":"/w=="},"c":{"$binary":"6SAgIA=="},"j":{"$binary":"eyJhIjoi6SJ9"},"a":{"$binary":"WyLpIl0="}}`,
		}
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		info, err := f.Info(x.Ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range x.Fetch(f, "", 0).Entries {
			wantRoundTrip(x, e, info)
		}
		if _, err := pool.ExecContext(x.Ctx, `DELETE FROM raw WHERE k = E'\xff'`); err != nil {
			t.Fatal(err)
		}
		x.WantDrain(f, cursor, `delete {"k":{"$binary":"/w=="}}`)
	})
}
