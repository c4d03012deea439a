package conformance

import (
	"database/sql"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/checker/judge"
)

// keeper is a consumer that keeps its cursor and all it received, for the judge.
type keeper struct {
	x      *env
	source rowfeed.Source
	limit  int
	cursor rowfeed.Cursor
	log    []judge.Entry
}

func (x *env) keeper(source rowfeed.Source, limit int) *keeper {
	return &keeper{x: x, source: source, limit: limit}
}

// page reads one page and answers whether the feed has more.
func (k *keeper) page() (got []judge.Entry, more bool) {
	k.x.Helper()
	page := k.x.fetch(k.source, k.cursor, k.limit)
	for _, e := range page.Entries {
		var entry judge.Entry
		if err := json.Unmarshal(e.AppendJSON(nil), &entry); err != nil {
			k.x.Fatal(err)
		}
		got = append(got, entry)
	}
	k.cursor, k.log = page.Cursor, append(k.log, got...)
	return got, page.More
}

// read reads to the head and answers what was new: "3 upsert 7" a line.
func (k *keeper) read() (lines []string) {
	k.x.Helper()
	for more := true; more; {
		var got []judge.Entry
		got, more = k.page()
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

// judge compares all that was received with the table's rows.
func (k *keeper) judge(rows []json.RawMessage, rules judge.Rules) {
	k.x.Helper()
	report(k.x.T, judge.Judge(k.log, rows, rules))
}

func report(t *testing.T, v judge.Verdict) {
	t.Helper()
	for i, fault := range v.Faults {
		if i == 20 {
			t.Errorf("… and %d more faults", len(v.Faults)-i)
			break
		}
		t.Error(fault)
	}
	if v.Entries == 0 {
		t.Error("nothing was received")
	}
}

// byID is how the judge reads tables with the key id.
var byID = judge.Rules{Key: []string{"id"}}

// rows reads a table as JSON objects. Columns are integers but for those in text.
func (x *env) rows(query string, text ...string) []json.RawMessage {
	x.Helper()
	rows, err := x.db.Admin().QueryContext(x.ctx, query)
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

// kvRows are the rows of the table that addKV makes.
func (x *env) kvRows() []json.RawMessage {
	x.Helper()
	return x.rows("SELECT id, k, v FROM kv", "k")
}

// fill inserts rows 1 to n into kv.
func (x *env) fill(n int) {
	x.Helper()
	for from := 1; from <= n; from += 500 {
		var values []string
		for id := from; id < from+500 && id <= n; id++ {
			values = append(values, "("+strconv.Itoa(id)+", 'k', 0)")
		}
		x.exec("INSERT INTO kv VALUES " + strings.Join(values, ", "))
	}
}
