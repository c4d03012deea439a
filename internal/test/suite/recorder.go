package suite

import (
	"database/sql"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/checker/feedlog"
)

// Recorder reads a feed, and keeps its cursor and all entries, for Check.
type Recorder struct {
	x      *Env
	Source rowfeed.Source
	limit  int
	Cursor rowfeed.Cursor
	Log    []feedlog.Entry
}

// Recorder returns a Recorder that has read nothing. Its pages have at most limit entries.
func (x *Env) Recorder(source rowfeed.Source, limit int) *Recorder {
	return &Recorder{x: x, Source: source, limit: limit}
}

// Page reads one page, and returns its entries and whether the feed has more.
func (k *Recorder) Page() (got []feedlog.Entry, more bool) {
	k.x.Helper()
	page := k.x.Fetch(k.Source, k.Cursor, k.limit)
	for _, e := range page.Entries {
		var entry feedlog.Entry
		if err := json.Unmarshal(e.AppendJSON(nil), &entry); err != nil {
			k.x.Fatal(err)
		}
		got = append(got, entry)
	}
	k.Cursor, k.Log = page.Cursor, append(k.Log, got...)
	return got, page.More
}

// Read reads up to the head, and returns the new entries as lines: "3 upsert 7" for position 3 and the key 7.
func (k *Recorder) Read() (lines []string) {
	k.x.Helper()
	for more := true; more; {
		var got []feedlog.Entry
		got, more = k.Page()
		for _, e := range got {
			var key struct{ ID int64 }
			if err := json.Unmarshal(e.Key, &key); err != nil {
				k.x.Fatal(err)
			}
			lines = append(lines, e.Position+" "+e.Op+" "+strconv.FormatInt(key.ID, 10))
		}
	}
	return lines
}

// Check compares all entries that were read with the table's rows.
func (k *Recorder) Check(rows []json.RawMessage, rules feedlog.Rules) {
	k.x.Helper()
	Report(k.x.T, feedlog.Check(k.Log, rows, rules))
}

// Report reports the faults of a verdict, at most 20 of them.
func Report(t *testing.T, v feedlog.Verdict) {
	t.Helper()
	for i, fault := range v.Faults {
		if i == 20 {
			t.Errorf("… and %d more faults", len(v.Faults)-i)
			break
		}
		t.Error(fault)
	}
	if v.Entries == 0 {
		t.Error("no entry was read")
	}
}

// ByID are the rules for tables with the key id.
var ByID = feedlog.Rules{Key: []string{"id"}}

// Rows returns the rows of a query as JSON objects. The named columns have text, the others integers.
func (x *Env) Rows(query string, text ...string) []json.RawMessage {
	x.Helper()
	rows, err := x.DB.Admin().QueryContext(x.Ctx, x.Has.Spell(query))
	if err != nil {
		x.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		x.Fatal(err)
	}
	values, dest := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range values {
		dest[i] = &values[i]
	}
	var all []json.RawMessage
	for rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			x.Fatal(err)
		}
		row := map[string]any{}
		for i, v := range values {
			switch {
			case !v.Valid:
				row[columns[i]] = nil
			case slices.Contains(text, columns[i]):
				row[columns[i]] = v.String
			default:
				row[columns[i]] = json.Number(v.String)
			}
		}
		data, err := json.Marshal(row)
		if err != nil {
			x.Fatal(err)
		}
		all = append(all, data)
	}
	if err := rows.Err(); err != nil {
		x.Fatal(err)
	}
	return all
}

// KVRows returns the rows of the table kv.
func (x *Env) KVRows() []json.RawMessage {
	x.Helper()
	return x.Rows("SELECT id, k, v FROM kv", "k")
}

// Fill inserts rows 1 to n into kv.
func (x *Env) Fill(n int) {
	x.Helper()
	for from := 1; from <= n; from += 500 {
		var values []string
		for id := from; id < from+500 && id <= n; id++ {
			values = append(values, "("+strconv.Itoa(id)+", 'k', 0)")
		}
		x.Exec("INSERT INTO kv VALUES " + strings.Join(values, ", "))
	}
}
