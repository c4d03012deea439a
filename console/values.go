package console

import (
	"encoding/json"
	"strings"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
)

// entryView is an entry on a page.
type entryView struct {
	Position string
	Before   rowfeed.Cursor // from which it is the next
	Op       rowfeed.Op
	Shard    int
	Key, Row []valueView
	JSON     string // the key, as people write it back
}

type valueView struct {
	Name, Type, Value string
	Null, Binary      bool
}

// located is an entry, and the cursor from which it is the next.
type located struct {
	rowfeed.Entry
	before rowfeed.Cursor
}

// locate says where the entries of a page are that was asked for from after on.
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
	return entryView{e.Position, e.before, e.Op, e.Shard, values(e.Key, rowfeed.Row{}), values(e.Row, e.Key), string(e.Key.AppendJSON(nil))}
}

// values lists a row's values as the script would show them, without those of key.
func values(row, key rowfeed.Row) []valueView {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(row.AppendJSON(nil), &members); err != nil {
		return []valueView{{Name: "?", Value: err.Error()}}
	}
	var all []valueView
	for i := range row.Len() {
		column := row.Column(i)
		if _, inKey := key.Get(column.Name); inKey {
			continue
		}
		v := valueView{Name: column.Name, Type: column.Type, Value: text(members[column.Name]), Null: row.Value(i) == nil}
		_, bytes := row.Value(i).([]byte)
		v.Binary = bytes || column.Kind == dialect.Binary && !v.Null
		all = append(all, v)
	}
	return all
}

// text is a JSON value without the quotes of a string.
func text(value json.RawMessage) string {
	var s string
	if strings.HasPrefix(string(value), `"`) && json.Unmarshal(value, &s) == nil {
		return s
	}
	return string(value)
}

// isKey tells whether a key is the one that was typed, the object or the value of its only
// column; or, where parts will do, whether one of its values has it in it.
func isKey(key rowfeed.Row, typed string, parts bool) bool {
	object := key.AppendJSON(nil)
	if rowfeed.SameKey(object, json.RawMessage(typed)) {
		return true
	}
	for _, v := range values(key, rowfeed.Row{}) {
		if key.Len() == 1 && v.Value == typed || parts && strings.Contains(strings.ToLower(v.Value), strings.ToLower(typed)) {
			return true
		}
	}
	return false
}
