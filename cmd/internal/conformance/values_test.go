package conformance

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
	"github.com/rowfeed/rowfeed/cmd/internal/open"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// sample is a column type with values and what a feed shows for them. The tables of
// samples are in values_postgres_test.go, values_mysql_test.go and
// values_sqlite_test.go.
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
func valuesTable(x *env, run func(string), samples []sample, suffix string) (want [][]string) {
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
func (x *env) wantValues(f *rowfeed.Feed, name string, samples []sample, want [][]string) {
	x.Helper()
	info, err := f.Info(x.ctx)
	if err != nil {
		x.Fatal(err)
	}
	for i, s := range samples {
		if c := info.Columns[i+1]; c.Kind != s.kind {
			x.Errorf("%s: %s is of kind %s, want %s", name, s.decl, c.Kind, s.kind)
		}
	}
	page := x.fetch(f, "", feedtype.MaxLimit)
	if len(page.Entries) != len(want) {
		x.Fatalf("%s: %d entries, want %d", name, len(page.Entries), len(want))
	}
	for r, e := range page.Entries {
		for i, s := range samples {
			if got := member(x, e.Row, i+1); got != want[r][i] {
				x.Errorf("%s: %s, row %d: got %.200s, want %.200s", name, s.decl, r, got, want[r][i])
			}
		}
		x.wantRoundTrip(e, info)
	}
}

// wantRoundTrip: an entry's JSON reads back as the same values and the same JSON.
func (x *env) wantRoundTrip(e rowfeed.Entry, info *rowfeed.Info) {
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
func member(x *env, r rowfeed.Row, i int) string {
	x.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(r.AppendJSON(nil), &members); err != nil {
		x.Fatal(err)
	}
	return string(members[r.Column(i).Name])
}

// feedThrough is the feed over another pool, with settings of the driver's.
func (x *env) feedThrough(name string, params ...string) *rowfeed.Feed {
	x.Helper()
	rf, err := rowfeed.Open(x.ctx, x.db.OpenTapped(x.T, testdb.Hooks{}, params...), x.dialect, nil)
	if err != nil {
		x.Fatal(err)
	}
	f, err := rf.Feed(x.ctx, name)
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
	eachCapture(t, func(x *env) {
		run := func(statement string) { x.Helper(); x.exec(statement) }
		var samples []sample
		var suffix string
		switch x.family() {
		case "postgres":
			samples = postgresSamples(x)
		case "mysql":
			samples, suffix = mysqlSamples(x.engine), " ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4"
			addBerlin(x)
			conn, err := x.db.Admin().Conn(x.ctx) // zero dates need a session of their own
			if err != nil {
				x.Fatal(err)
			}
			defer conn.Close()
			run = func(statement string) {
				x.Helper()
				if _, err := conn.ExecContext(x.ctx, statement); err != nil {
					x.Fatalf("%s: %v", statement, err)
				}
			}
			run("SET SESSION sql_mode = ''")
		default:
			samples = sqliteSamples()
		}
		want := valuesTable(x, run, samples, suffix)
		f := x.add(rowfeed.FeedSpec{Name: "every", Table: "every"})
		x.publish(f)
		x.wantValues(f, "default", samples, want)
		for name, params := range driverSettings(x.engine) {
			x.wantValues(x.feedThrough("every", params...), name, samples, want)
		}
		x.wantSound(f)
	})
}

// TestGeneratedColumns: columns that the database computes are delivered like any
// other, stored or not.
func TestGeneratedColumns(t *testing.T) {
	testdb.Quick(t)
	eachCapture(t, func(x *env) {
		virtual := x.by(map[string]string{"sqlite": "VIRTUAL", "mysql": "VIRTUAL", "postgres": "STORED"})
		if x.engine == testdb.Postgres18 {
			virtual = "VIRTUAL"
		}
		x.exec(
			"CREATE TABLE g (id BIGINT NOT NULL PRIMARY KEY, a INTEGER, s INTEGER GENERATED ALWAYS AS (a * 2) STORED, "+
				"v INTEGER GENERATED ALWAYS AS (a + 1) "+virtual+")",
			"INSERT INTO g (id, a) VALUES (1, 10), (2, NULL)")
		f := x.add(rowfeed.FeedSpec{Name: "g", Table: "g"})
		cursor := x.wantDrain(f, "", `upsert {"id":1,"a":10,"s":20,"v":11}`, `upsert {"id":2,"a":null,"s":null,"v":null}`)
		x.exec("UPDATE g SET a = 5 WHERE id = 1")
		x.wantDrain(f, cursor, `upsert {"id":1,"a":5,"s":10,"v":6}`)
	})
}

// TestDecodedTypes: what a page's values are in Go, one of each kind, so that
// consumers written in Go can rely on them.
func TestDecodedTypes(t *testing.T) {
	testdb.Quick(t)
	each(t, func(x *env) {
		x.exec(x.by(map[string]string{
			"sqlite":   "CREATE TABLE d (id INTEGER PRIMARY KEY, i BIGINT, f DOUBLE, t TEXT, b BLOB, at TEXT)",
			"postgres": "CREATE TABLE d (id INTEGER PRIMARY KEY, i BIGINT, f DOUBLE PRECISION, t TEXT, b BYTEA, at TIMESTAMPTZ)",
			"mysql":    "CREATE TABLE d (id INTEGER PRIMARY KEY, i BIGINT, f DOUBLE, t TEXT, b BLOB, at TIMESTAMP NULL)",
		}), x.by(map[string]string{
			"sqlite":   `INSERT INTO d VALUES (1, 9007199254740993, 1.5, 'é', x'00ff', '2026-10-25T00:30:00Z')`,
			"postgres": `INSERT INTO d VALUES (1, 9007199254740993, 1.5, 'é', '\x00ff', '2026-10-25 00:30:00+00')`,
			"mysql":    `INSERT INTO d VALUES (1, 9007199254740993, 1.5, 'é', x'00ff', '2026-10-25 00:30:00')`,
		}))
		f := x.add(rowfeed.FeedSpec{Name: "d", Table: "d"})
		x.publish(f)
		page := x.fetch(f, "", 0)
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
		if info, err := f.Info(x.ctx); err != nil || !slices.Equal(info.Base64, []string{"b"}) {
			x.Errorf("base64 columns of %+v, %v", info, err)
		}
	})
}

// TestKeysOfEveryType: rows are found by keys of every type that can be one, their
// keys are shown as the rows have them, and back-fill passes over none of them.
func TestKeysOfEveryType(t *testing.T) {
	testdb.Quick(t)
	eachCapture(t, func(x *env) {
		var keys map[string][4]string // by the key's type: two SQL values, ascending, and their JSON
		switch x.family() {
		case "postgres":
			x.exec("CREATE TYPE mood AS ENUM ('sad', 'happy')", "CREATE DOMAIN five AS char(5)")
			keys = map[string][4]string{
				"char(5)":          {`'a'`, `'b'`, `"a    "`, `"b    "`},
				"five":             {`'a'`, `'b'`, `"a    "`, `"b    "`},
				"uuid":             {`'00000000-0000-0000-0000-000000000001'`, `'ffffffff-0000-0000-0000-000000000001'`, `"00000000-0000-0000-0000-000000000001"`, `"ffffffff-0000-0000-0000-000000000001"`},
				"timestamptz":      {`'2026-10-25 02:30+02'`, `'infinity'`, `"2026-10-25T00:30:00Z"`, `"infinity"`},
				"numeric":          {`1.50`, `2.0`, `"1.50"`, `"2.0"`},
				"bytea":            {`'\x'`, `'\xff'`, `""`, `"/w=="`},
				"mood":             {`'sad'`, `'happy'`, `"sad"`, `"happy"`},
				"inet":             {`'10.0.0.0/8'`, `'10.0.0.1'`, `"10.0.0.0/8"`, `"10.0.0.1"`},
				"double precision": {`'-Infinity'`, `'NaN'`, `"-Infinity"`, `"NaN"`},
				"real":             {`0.1`, `0.2`, `0.1`, `0.2`},
				"boolean":          {`false`, `true`, `false`, `true`},
				"interval":         {`'1 day'`, `'1 mon'`, `"P1D"`, `"P1M"`},
				"money":            {`1`, `2.5`, `"1.00"`, `"2.50"`},
				"date":             {`'0044-03-15 BC'`, `'infinity'`, `"0044-03-15 BC"`, `"infinity"`},
				"int4range":        {`'empty'`, `'[1,3)'`, `"empty"`, `"[1,3)"`},
				"time":             {`'00:00'`, `'24:00'`, `"00:00:00"`, `"24:00:00"`},
				"jsonb":            {`'null'`, `'{"a":1}'`, `{"$json":null}`, `{"a":1}`},
				`"char"`:           {`'a'`, `'b'`, `"a"`, `"b"`},
				"oid":              {`0`, `4294967295`, `0`, `4294967295`},
			}
		case "mysql":
			keys = map[string][4]string{
				"bigint unsigned":                 {`0`, `18446744073709551615`, `0`, `18446744073709551615`},
				"decimal(65,30)":                  {`0.5`, `1.5`, `"0.500000000000000000000000000000"`, `"1.500000000000000000000000000000"`},
				"varbinary(9)":                    {`x''`, `x'ff00'`, `""`, `"/wA="`},
				"varchar(9) COLLATE utf8mb4_bin":  {`'a '`, `'b '`, `"a "`, `"b "`},
				"varchar(9) CHARACTER SET latin1": {`'a'`, `'é'`, `"a"`, `"é"`},
				"date":                            {`'1000-01-01'`, `'9999-12-31'`, `"1000-01-01"`, `"9999-12-31"`},
				"datetime(6)":                     {`'2026-03-29 02:30:00.000001'`, `'2026-03-29 02:30:00.000002'`, `"2026-03-29T02:30:00.000001"`, `"2026-03-29T02:30:00.000002"`},
				"time(6)":                         {`'-838:59:59'`, `'838:59:59'`, `"-838:59:59.000000"`, `"838:59:59.000000"`},
				"year":                            {`1901`, `2155`, `1901`, `2155`},
				"enum('z','é','a')":               {`'é'`, `'a'`, `"é"`, `"a"`},
				"double":                          {`-0.5`, `1e300`, `-0.5`, `1e+300`},
				"bit(64)":                         {`0`, `18446744073709551615`, `0`, `18446744073709551615`},
			}
		default:
			keys = map[string][4]string{
				"BLOB":    {`x''`, `x'ff00'`, `""`, `"/wA="`},
				"":        {`-9e999`, `x'ff'`, `{"$float":"-Infinity"}`, `{"$binary":"/w=="}`},
				"TEXT":    {`'a'||char(0)`, `CAST(x'ff' AS TEXT)`, `"a\u0000"`, `{"$text64":"/w=="}`},
				"REAL":    {`0.5`, `9e999`, `0.5`, `{"$float":"Infinity"}`},
				"DATE":    {`5`, `'2026-01-02'`, `5`, `"2026-01-02"`},
				"NUMERIC": {`1.0`, `'x'`, `1`, `"x"`},
			}
		}
		// One value can have two texts, which capture column refuses.
		inexact := []string{"", "BLOB", "five", "numeric", "double precision", "real", "interval", "int4range", "jsonb", "double",
			"varchar(9) COLLATE utf8mb4_bin", "varchar(9) CHARACTER SET latin1"}
		n := 0
		for decl, parts := range keys {
			n++
			name := fmt.Sprintf("k%d", n)
			x.exec(fmt.Sprintf("CREATE TABLE %s (k %s NOT NULL, v INTEGER, PRIMARY KEY (k))", name, decl),
				fmt.Sprintf("INSERT INTO %s VALUES (%s, 1), (%s, 2)", name, parts[0], parts[1]))
			if x.capture == feedtype.CaptureColumn && slices.Contains(inexact, decl) {
				_, err := x.rf.AddFeed(x.ctx, rowfeed.FeedSpec{Name: name, Table: name, Capture: x.capture}, nil)
				x.wantCode(err, rowfeed.Refused)
				continue
			}
			f := x.add(rowfeed.FeedSpec{Name: name, Table: name})
			row := func(op string, i, v int) string {
				if op == "delete" {
					return fmt.Sprintf(`delete {"k":%s}`, parts[2+i])
				}
				return fmt.Sprintf(`upsert {"k":%s,"v":%d}`, parts[2+i], v)
			}
			got, cursor := x.drain(f, "")
			if want := []string{row("", 0, 1), row("", 1, 2)}; !slices.Equal(got, want) {
				x.Errorf("key %s: got %q, want %q", decl, got, want)
				continue
			}
			x.exec(fmt.Sprintf("UPDATE %s SET v = 3 WHERE v = 1", name), fmt.Sprintf("DELETE FROM %s WHERE v = 2", name))
			got, cursor = x.drain(f, cursor)
			if want := x.order([]string{row("", 0, 3), row("delete", 1, 0)}); !slices.Equal(got, want) {
				x.Errorf("key %s, changed: got %q, want %q", decl, got, want)
			}
			// In batches of one, each goes on after the key of the one before.
			x.exec(fmt.Sprintf("INSERT INTO %s VALUES (%s, 2)", name, parts[1]))
			x.publish(f)
			rows, err := f.Admin().RepublishWhere(x.ctx, "", 1, nil)
			if err != nil || rows != 2 {
				x.Errorf("key %s: republished %d rows of 2, %v", decl, rows, err)
				continue
			}
			x.publish(f)
			page := x.fetch(f, cursor, 0)
			for _, e := range page.Entries {
				x.wantRoundTrip(e, &rowfeed.Info{Key: []rowfeed.Column{e.Key.Column(0)}, Columns: page.Columns})
			}
			x.wantSound(f)
		}
	})
}

// TestArrayKeyRefused: an array travels as JSON, from which the key could not be
// found again; it is refused before anything is made.
func TestArrayKeyRefused(t *testing.T) {
	testdb.Quick(t)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		if e.Family != "postgres" {
			return
		}
		x := newEnv(t, e, nil)
		x.migrate()
		x.exec("CREATE DOMAIN numbers AS int[]", "CREATE TABLE a (k int[] PRIMARY KEY)", "CREATE TABLE b (k numbers PRIMARY KEY)")
		for _, table := range []string{"a", "b"} {
			_, err := x.rf.AddFeed(x.ctx, rowfeed.FeedSpec{Name: table, Table: table}, nil)
			if !isCode(err, rowfeed.Refused) || !strings.Contains(err.Error(), "array") {
				x.Errorf("%s: %v", table, err)
			}
		}
		if n := x.scalar("SELECT count(*) FROM rowfeed_feeds"); n != 0 {
			x.Errorf("%d feeds are left behind", n)
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
		pool, d, err := open.Open(t.Context(), u.String(), open.Options{})
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
		x := &env{T: t, engine: e, db: host, pool: pool, dialect: d, rf: rf, ctx: t.Context()}
		x.migrate()
		for _, s := range []string{
			"CREATE TABLE raw (k text PRIMARY KEY, c char(4), j json, a text[])",
			`INSERT INTO raw VALUES (E'\xff', E'\xe9', E'{"a": "\xe9"}', ARRAY[E'\xe9']), (E'caf\xc3\xa9', 'x', NULL, NULL)`,
		} {
			if _, err := pool.ExecContext(x.ctx, s); err != nil {
				t.Fatal(err)
			}
		}
		f := x.add(rowfeed.FeedSpec{Name: "raw", Table: "raw"})
		got, cursor := x.drain(f, "")
		want := []string{
			`upsert {"k":"café","c":"x   ","j":null,"a":null}`,
			`upsert {"k":{"$binary":"/w=="},"c":{"$binary":"6SAgIA=="},"j":{"$binary":"eyJhIjoi6SJ9"},"a":{"$binary":"WyLpIl0="}}`,
		}
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		info, err := f.Info(x.ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range x.fetch(f, "", 0).Entries {
			x.wantRoundTrip(e, info)
		}
		if _, err := pool.ExecContext(x.ctx, `DELETE FROM raw WHERE k = E'\xff'`); err != nil {
			t.Fatal(err)
		}
		x.wantDrain(f, cursor, `delete {"k":{"$binary":"/w=="}}`)
	})
}
