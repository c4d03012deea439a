package values

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// sample is a column type with values, and what a feed shows for them.
type sample struct {
	decl  string
	kind  feedtype.Kind
	cells []cell
}

// cell is a value as an SQL expression, and as the JSON in an entry.
type cell struct{ sql, json string }

var repeated = regexp.MustCompile(`\{\{(.) (\d+)\}\}`)

// parseSamples reads samples of a fixture. A paragraph is about a column type, or about several:
//
//	SMALLINT | INTEGER: integer
//	-1 => -1
//	repeat('a', 1000) => "{{a 1000}}"
//
// Behind the types is the kind, then a line for each value: its SQL and its JSON. A line that begins with "-- " is a
// comment.
func parseSamples(text string) (all []sample) {
	for _, paragraph := range strings.Split(text, "\n\n") {
		lines := slices.DeleteFunc(strings.Split(paragraph, "\n"), func(line string) bool {
			return strings.HasPrefix(line, "-- ") || line == ""
		})
		if len(lines) == 0 {
			continue
		}
		var cells []cell
		for _, line := range lines[1:] {
			sql, json, _ := strings.Cut(line, " => ")
			json = repeated.ReplaceAllStringFunc(json, func(found string) string {
				parts := repeated.FindStringSubmatch(found)
				n, _ := strconv.Atoi(parts[2]) // digits, by the expression
				return strings.Repeat(parts[1], n)
			})
			cells = append(cells, cell{sql, json})
		}
		colon := strings.LastIndex(lines[0], ": ")
		for _, decl := range strings.Split(lines[0][:colon], " | ") {
			all = append(all, sample{decl, feedtype.Kind(lines[0][colon+2:]), cells})
		}
	}
	return all
}

// optionalSamples returns samples of types that not every server has. Before each there are a query that fails if the
// server does not have the type, and a statement that makes the type.
func optionalSamples(x *suite.Env) (all []sample) {
	x.Helper()
	for _, paragraph := range strings.Split(x.Text("values.optional_samples"), "\n\n") {
		lines := strings.SplitN(paragraph, "\n", 3)
		if len(lines) < 3 {
			continue
		}
		if _, err := x.DB.Admin().ExecContext(x.Ctx, lines[0]); err == nil {
			x.Exec(lines[1])
			all = append(all, parseSamples(lines[2])...)
		}
	}
	return all
}

// addTimeZone teaches the server a time zone with the real shifts of 2026, unless servers of tests know time zones.
func addTimeZone(x *suite.Env) {
	x.Helper()
	if !x.Has.Knows("values.insert_time_zone") || x.Scalar(x.Text("values.count_time_zone")) > 0 {
		return
	}
	x.Exec(x.Text("values.insert_id_of_time_zone"))
	id := x.Scalar(x.Text("values.id_of_time_zone"))
	summer := time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC).Unix()
	winter := time.Date(2026, 10, 25, 1, 0, 0, 0, time.UTC).Unix()
	x.Exec(x.Statements("values.insert_time_zone", id, summer, winter)...)
}

// valuesTable makes the table every(id, c0, c1…). Row i has the i-th value of each sample, and the last row is NULL in
// every column. It returns what entry i shows in column j.
func valuesTable(x *suite.Env, samples []sample, options string) (want [][]string) {
	x.Helper()
	conn, err := x.DB.Admin().Conn(x.Ctx)
	if err != nil {
		x.Fatal(err)
	}
	defer conn.Close()
	run := func(statements ...string) {
		x.Helper()
		for _, statement := range statements {
			if _, err := conn.ExecContext(x.Ctx, statement); err != nil {
				x.Fatalf("%s: %v", statement, err)
			}
		}
	}
	run(x.Statements("values.begin_writing_samples")...)
	decls, rows := []string{"id INTEGER NOT NULL PRIMARY KEY"}, 0
	for i, s := range samples {
		decls = append(decls, fmt.Sprintf("c%d %s", i, s.decl))
		rows = max(rows, len(s.cells))
	}
	run("CREATE TABLE every (" + strings.Join(decls, ", ") + ") " + options)
	for r := range rows + 1 {
		values, shown := []string{fmt.Sprint(r)}, []string{}
		for _, s := range samples {
			c := cell{"NULL", "null"}
			if r < len(s.cells) {
				c = s.cells[r]
			}
			values, shown = append(values, c.sql), append(shown, c.json)
		}
		run("INSERT INTO every VALUES (" + strings.Join(values, ", ") + ")")
		want = append(want, shown)
	}
	return want
}

// wantValues reads the feed and compares the JSON of every value with what it should be, and with what ParseEntry makes
// of it, as HTTP clients read it.
func wantValues(x *suite.Env, f *rowfeed.Feed, name string, samples []sample, want [][]string) {
	x.Helper()
	info, err := f.Info(x.Ctx)
	if err != nil {
		x.Fatal(err)
	}
	for i, s := range samples {
		if c := info.Columns[i+1]; c.Kind != s.kind {
			x.Errorf("with settings %s, type %s is of kind %s, want %s", name, s.decl, c.Kind, s.kind)
		}
	}
	page := x.Fetch(f, "", feedtype.MaxLimit)
	if len(page.Entries) != len(want) {
		x.Fatalf("with settings %s, the page has %d entries, want %d", name, len(page.Entries), len(want))
	}
	for r, e := range page.Entries {
		for i, s := range samples {
			if got := member(x, e.Row, i+1); got != want[r][i] {
				x.Errorf("with settings %s, a value of type %s in row %d is %.200s, want %.200s",
					name, s.decl, r, got, want[r][i])
			}
		}
		wantRoundTrip(x, e, info)
	}
}

// wantRoundTrip asserts that the JSON of an entry can be read back as the same values and the same JSON.
func wantRoundTrip(x *suite.Env, e rowfeed.Entry, info *rowfeed.Info) {
	x.Helper()
	text := e.AppendJSON(nil)
	if !json.Valid(text) || !utf8.Valid(text) || bytes.IndexByte(text, '\n') >= 0 {
		x.Errorf("the entry is not JSON on one line: %.300s", text)
	}
	back, ok, err := feedtype.ParseEntry(text, e.Generation, info)
	if err != nil || !ok {
		x.Errorf("ParseEntry returns %v, %v for %.300s", ok, err, text)
		return
	}
	if again := back.AppendJSON(nil); string(again) != string(text) {
		x.Errorf("the entry\n%.300s\nreads back as\n%.300s", text, again)
	}
	for i := range e.Row.Len() {
		a, b := e.Row.Value(i), back.Row.Value(i)
		if !sameValue(a, b) {
			x.Errorf("a value of type %s, %T %.100v, reads back as %T %.100v", e.Row.Column(i).Type, a, a, b, b)
		}
	}
}

// sameValue tells whether two values of a row have the same type and bits.
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

// member returns the JSON of a column of a row.
func member(x *suite.Env, r rowfeed.Row, i int) string {
	x.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(r.AppendJSON(nil), &members); err != nil {
		x.Fatal(err)
	}
	return string(members[r.Column(i).Name])
}

// feedThrough opens the feed with a pool that has settings of the driver.
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

// driverSettings returns settings by a name, which change what a driver makes of a value, or what the server sends.
func driverSettings(x *suite.Env) map[string][]string {
	x.Helper()
	settings := map[string][]string{}
	for _, line := range strings.Split(x.Text("values.settings_of_drivers"), "\n") {
		words := strings.Fields(line)
		settings[words[0]] = words[1:]
	}
	if x.Has.ReadsUncommitted {
		settings["isolation"] = []string{x.ReadUncommitted()}
	}
	return settings
}

// TestValuesOfEveryType (M15): values of every type of every database are typed and lossless in entries, and the same
// for all settings of drivers and sessions. NULL is NULL in every type.
func TestValuesOfEveryType(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		x.Exec(x.Statements("values.types_of_samples")...)
		samples := parseSamples(x.Text("values.samples") + "\n\n" + x.Text("values.further_samples"))
		samples = append(samples, optionalSamples(x)...)
		addTimeZone(x)
		want := valuesTable(x, samples, x.Text("values.options_of_samples"))
		f := x.Add(rowfeed.FeedSpec{Name: "every", Table: "every"})
		x.Publish(f)
		wantValues(x, f, "default", samples, want)
		for name, params := range driverSettings(x) {
			wantValues(x, feedThrough(x, "every", params...), name, samples, want)
		}
		x.WantSound(f)
	})
}

// TestGeneratedColumnsAreDelivered: columns that the database computes are delivered like any other, stored or not.
func TestGeneratedColumnsAreDelivered(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		x.Exec(
			"CREATE TABLE g (id BIGINT NOT NULL PRIMARY KEY, a INTEGER, s INTEGER GENERATED ALWAYS AS (a * 2) STORED, "+
				"v INTEGER GENERATED ALWAYS AS (a + 1) "+x.Text("values.virtual_column")+")",
			"INSERT INTO g (id, a) VALUES (1, 10), (2, NULL)")
		f := x.Add(rowfeed.FeedSpec{Name: "g", Table: "g"})
		cursor := x.WantDrain(f, "", `upsert {"id":1,"a":10,"s":20,"v":11}`,
			`upsert {"id":2,"a":null,"s":null,"v":null}`)
		x.Exec("UPDATE g SET a = 5 WHERE id = 1")
		x.WantDrain(f, cursor, `upsert {"id":1,"a":5,"s":10,"v":6}`)
	})
}

// TestValuesHaveTheirGoTypes: the values of a row have documented Go types, one for each kind.
func TestValuesHaveTheirGoTypes(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		x.Exec(x.Statements("values.table_of_decoded_kinds")...)
		f := x.Add(rowfeed.FeedSpec{Name: "d", Table: "d"})
		x.Publish(f)
		page := x.Fetch(f, "", 0)
		row := page.Entries[0].Row
		got := []any{row.Value(1), row.Value(2), row.Value(3), row.Value(4), row.Value(5)}
		want := []any{int64(9007199254740993), 1.5, "é", []byte{0, 255}, "2026-10-25T00:30:00Z"}
		if diff := cmp.Diff(want, got); diff != "" {
			x.Error(diff)
		}
		var into struct {
			I  int64
			F  float64
			T  string
			B  []byte
			At time.Time
		}
		at := time.Date(2026, 10, 25, 0, 30, 0, 0, time.UTC)
		if err := page.Entries[0].Decode(&into); err != nil || into.I != 9007199254740993 ||
			string(into.B) != "\x00\xff" || !into.At.Equal(at) {
			x.Errorf("the entry decodes into %+v, %v", into, err)
		}
		if info, err := f.Info(x.Ctx); err != nil || !slices.Equal(info.Base64, []string{"b"}) {
			x.Errorf("the feed's info is %+v, %v; want b in base64", info, err)
		}
	})
}

// TestTextThatIsNotUTF8IsBinary: a PostgreSQL database without an encoding holds any bytes. They are delivered as bytes
// in texts, in JSON and in keys. SQLite's are among the samples. MySQL and MariaDB convert every text from its
// character set.
func TestTextThatIsNotUTF8IsBinary(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(host *suite.Env) {
		if !host.Has.Knows("values.database_without_encoding") {
			return
		}
		name := host.DB.Name + "_ascii"
		host.Exec(host.Text("values.database_without_encoding", name))
		host.Cleanup(func() { host.Exec(host.Text("values.drop_database", name)) })
		u, err := url.Parse(host.DB.URL)
		if err != nil {
			host.Fatal(err)
		}
		u.Path += "_ascii"
		x := suite.OpenEnv(host.T, &testdb.Database{Engine: host.Engine, URL: u.String(), Name: name}, nil)
		x.Migrate()
		run := func(statements ...string) {
			x.Helper()
			for _, statement := range statements {
				if _, err := x.Pool.ExecContext(x.Ctx, statement); err != nil {
					x.Fatal(err)
				}
			}
		}
		run(x.Statements("values.table_of_bytes")...)
		f := x.Add(rowfeed.FeedSpec{Name: "raw", Table: "raw"})
		got, cursor := x.Drain(f, "")
		want := []string{
			`upsert {"k":"café","c":"x   ","j":null,"a":null}`,
			`upsert {"k":{"$binary":"/w=="},"c":{"$binary":"6SAgIA=="},` +
				`"j":{"$binary":"eyJhIjoi6SJ9"},"a":{"$binary":"WyLpIl0="}}`,
		}
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			x.Error(diff)
		}
		info, err := f.Info(x.Ctx)
		if err != nil {
			x.Fatal(err)
		}
		for _, e := range x.Fetch(f, "", 0).Entries {
			wantRoundTrip(x, e, info)
		}
		run(x.Text("values.delete_key_of_bytes"))
		x.WantDrain(f, cursor, `delete {"k":{"$binary":"/w=="}}`)
	})
}
