package feedtype

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

var entryInfo = &Info{
	Key: []Column{{"id", "bigint", Integer}},
	Columns: []Column{{"id", "bigint", Integer}, {"sp ace\"", "text", Text}, {"b", "bytea", Binary},
		{"at", "timestamptz", TimestampTZ}, {"doc", "json", JSON}, {"none", "text", Text}},
}

func sampleEntry() Entry {
	key := Row{entryInfo.Key, []any{int64(1)}}
	row := Row{entryInfo.Columns,
		[]any{int64(1), "a\n\"", []byte{0, 255}, "2026-01-31T12:00:00.5Z", json.RawMessage(`{"x":[1,1.0]}`), nil}}
	return Entry{Position: "7", Shard: 3, Op: Upsert, Key: key, Row: row}
}

// An entry's JSON is one line with the columns in the table's order, and parses to the same entry.
func TestEntryJSONParsesToSameEntry(t *testing.T) {
	e := sampleEntry()
	const want = `{"position":"7","shard":3,"op":"upsert","key":{"id":1},"row":{"id":1,"sp ace\"":"a\n\"",` +
		`"b":"AP8=","at":"2026-01-31T12:00:00.5Z","doc":{"x":[1,1.0]},"none":null}}`
	if got := string(e.AppendJSON(nil)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	gone := Entry{Position: "8", Op: Delete, Key: e.Key}
	if got := string(gone.AppendJSON(nil)); got != `{"position":"8","shard":0,"op":"delete","key":{"id":1}}` {
		t.Error(got)
	}
	for _, e := range []Entry{e, gone} {
		back, ok, err := ParseEntry(e.AppendJSON(nil), 0, entryInfo)
		if err != nil || !ok || !reflect.DeepEqual(e, back) {
			t.Errorf("%+v, %v, %v; want %+v", back, ok, err, e)
		}
	}
	marshalled, err := json.Marshal(e)
	if err != nil || string(marshalled) != want {
		t.Errorf("json.Marshal: %s, %v", marshalled, err)
	}
}

// An entry with unknown columns is not parsed: its reader has to ask for the Info again.
func TestEntryWithUnknownColumnsIsNotParsed(t *testing.T) {
	text := string(sampleEntry().AppendJSON(nil))
	for name, other := range map[string]string{
		"one more": strings.Replace(text, `"none":null`, `"none":null,"new":1`, 1),
		"one less": strings.Replace(text, `,"none":null`, ``, 1),
		"renamed":  strings.Replace(text, `"none"`, `"nome"`, 1),
		"key":      strings.Replace(text, `"key":{"id"`, `"key":{"ID"`, 1),
	} {
		if _, ok, err := ParseEntry([]byte(other), 0, entryInfo); ok || err != nil {
			t.Errorf("%s: %v, %v", name, ok, err)
		}
	}
	for name, bad := range map[string]string{
		"no JSON": "{", "a number as binary": strings.Replace(text, `"AP8="`, `"?"`, 1),
		"an unknown type": strings.Replace(text, `"AP8="`, `{"$what":1}`, 1),
	} {
		if _, _, err := ParseEntry([]byte(bad), 0, entryInfo); err == nil {
			t.Errorf("%s is read", name)
		}
	}
}

// Decode follows encoding/json's rules; a delete has no row to decode.
func TestDecodeFollowsEncodingJSON(t *testing.T) {
	var into struct {
		ID   int64
		B    []byte
		At   time.Time
		Doc  struct{ X []float64 }
		None *string
	}
	e := sampleEntry()
	if err := e.Decode(&into); err != nil {
		t.Fatal(err)
	}
	if into.ID != 1 || string(into.B) != "\x00\xff" ||
		!into.At.Equal(time.Date(2026, 1, 31, 12, 0, 0, 5e8, time.UTC)) || into.None != nil || len(into.Doc.X) != 2 {
		t.Errorf("%+v", into)
	}
	e.Op = Delete
	if err := e.Decode(&into); err == nil || !strings.Contains(err.Error(), "position 7") {
		t.Errorf("a delete decodes: %v", err)
	}
	if v, ok := e.Row.Get("b"); !ok || string(v.([]byte)) != "\x00\xff" {
		t.Errorf("Get: %v, %v", v, ok)
	}
	if _, ok := e.Row.Get("B"); ok {
		t.Error("Get takes another name")
	}
}
