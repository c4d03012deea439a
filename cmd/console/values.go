package console

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/feedtype"
)

// entryView is an entry on a page.
type entryView struct {
	Position string
	Before   rowfeed.Cursor // the cursor after which it is the next entry
	Op       rowfeed.Op
	Shard    int
	Key, Row []valueView
	JSON     string // the key, as a form accepts it
}

type valueView struct {
	Name, Type, Value string
	Null, Binary      bool
}

// located is an entry, and the cursor after which it is the next entry.
type located struct {
	rowfeed.Entry
	before rowfeed.Cursor
}

// locate returns the entries of a page with their cursors. after is the cursor of the page's request.
func locate(p rowfeed.Page, after rowfeed.Cursor) ([]located, error) {
	all := make([]located, len(p.Entries))
	before := after
	for i, e := range p.Entries {
		all[i] = located{e, before}
		var err error
		if before, err = p.CursorAt(after, i); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func viewOf(e located) entryView {
	return entryView{e.Position, e.before, e.Op, e.Shard, values(e.Key, rowfeed.Row{}), values(e.Row, e.Key),
		string(e.Key.AppendJSON(nil))}
}

// values lists a row's values as the script shows them, without those that are equal in key. A row can have another
// text of its key than the entry; then both are shown.
func values(row, key rowfeed.Row) []valueView {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(row.AppendJSON(nil), &members); err != nil {
		return []valueView{{Name: "?", Value: err.Error()}}
	}
	var all []valueView
	for i := range row.Len() {
		column := row.Column(i)
		if v, inKey := key.Get(column.Name); inKey && reflect.DeepEqual(v, row.Value(i)) {
			continue
		}
		v := valueView{Name: column.Name, Type: column.Type, Value: text(members[column.Name]),
			Null: row.Value(i) == nil}
		_, bytes := row.Value(i).([]byte)
		v.Binary = bytes || column.Kind == feedtype.Binary && !v.Null
		all = append(all, v)
	}
	return all
}

// text returns a JSON value, a string without its quotes.
func text(value json.RawMessage) string {
	var s string
	if strings.HasPrefix(string(value), `"`) && json.Unmarshal(value, &s) == nil {
		return s
	}
	return string(value)
}

// isKey tells whether the typed text is the key of an entry: a JSON object, or the value of the only key column. With
// parts, it tells whether a value of the key contains the text. The key columns of the row are compared as well.
func isKey(e rowfeed.Entry, typed string, parts bool) bool {
	return typedAs(e.Key, e.Key, typed, parts) || respelled(e.Row, e.Key) && typedAs(e.Row, e.Key, typed, parts)
}

// respelled tells whether the key columns of a row differ from the entry's key.
func respelled(row, key rowfeed.Row) bool {
	for i := range key.Len() {
		if v, ok := row.Get(key.Column(i).Name); ok && !reflect.DeepEqual(v, key.Value(i)) {
			return true
		}
	}
	return false
}

// typedAs is isKey for the key columns of row.
func typedAs(row, key rowfeed.Row, typed string, parts bool) bool {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(row.AppendJSON(nil), &members); err != nil {
		return false
	}
	object := make(map[string]json.RawMessage, key.Len())
	for i := range key.Len() {
		name := key.Column(i).Name
		object[name] = members[name]
		value := text(members[name])
		if key.Len() == 1 && value == typed ||
			parts && strings.Contains(strings.ToLower(value), strings.ToLower(typed)) {
			return true
		}
	}
	whole, err := json.Marshal(object)
	return err == nil && admin.SameKey(whole, json.RawMessage(typed))
}
