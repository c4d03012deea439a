package feedtype

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// Op tells whether the row of an entry exists.
type Op string

const (
	// Upsert means that the row exists, with the content shown.
	Upsert Op = "upsert"
	// Delete means that the row was deleted, or was hidden by unpublish.
	Delete Op = "delete"
)

// Entry is one key at its position.
type Entry struct {
	Position string // a decimal int64 in sequence mode, else a ULID of 26 characters
	Shard    int    // of the key; -1 if none is known: see FeedSpec.ShardColumn
	Op       Op
	// Generation is the generation of the feed. Feed, generation, stamp, shard and position identify an entry, even
	// after the feed was created again.
	Generation int64
	// Stamp tells entries apart that got the same position, before and after the database was set back: it is when the
	// entry was published, in microseconds since the Unix epoch, or, where a row of the table holds its position, the
	// number of a term. It is 0 in ULID feeds.
	Stamp int64
	Key   Row
	Row   Row // content at the time of the fetch; without columns for a delete
}

// ID returns the entry's idempotency key: feed:generation[.stamp]:shard:position, with the stamp in base 32. An entry
// that is delivered again has the same ID, and no other entry of the feed ever has it.
func (e Entry) ID(feed string) string {
	return fmt.Sprintf("%s:%d%s:%d:%s", feed, e.Generation, e.stamp(), e.Shard, e.Position)
}

func (e Entry) stamp() string {
	if e.Stamp == 0 {
		return ""
	}
	return "." + strconv.FormatInt(e.Stamp, 32)
}

// Column is a column of a Row.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"` // as the database writes it
	Kind Kind   `json:"kind"` // how its values are represented
}

// Row is a list of named values. A value is an int64, uint64 (above the range of int64), float64, bool, string,
// []byte, json.RawMessage, or nil for NULL. Decimals, dates and times are strings, see [Kind]. Bytes may be shared
// with other readers of the same page: copy them before changing them.
type Row struct {
	columns []Column
	values  []any
}

// Len returns the number of columns.
func (r Row) Len() int { return len(r.columns) }

// Column returns the description of the i-th column.
func (r Row) Column(i int) Column { return r.columns[i] }

// Value returns the value of the i-th column.
func (r Row) Value(i int) any { return r.values[i] }

// Get returns the value of the column with this name. ok is false if there is none.
func (r Row) Get(name string) (value any, ok bool) {
	i := slices.IndexFunc(r.columns, func(c Column) bool { return c.Name == name })
	if i < 0 {
		return nil, false
	}
	return r.values[i], true
}

// AppendJSON appends the row as a JSON object, with the columns in the order of the table.
func (r Row) AppendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	for i, c := range r.columns {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, c.Name), ':')
		dst = AppendValue(dst, c.Kind, r.values[i])
	}
	return append(dst, '}')
}

// MarshalJSON is AppendJSON.
func (r Row) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil), nil }

// AppendJSON appends the entry as one JSON object without line breaks.
func (e Entry) AppendJSON(dst []byte) []byte {
	dst = appendString(append(dst, `{"position":`...), e.Position)
	dst = strconv.AppendInt(append(dst, `,"shard":`...), int64(e.Shard), 10)
	dst = append(append(append(dst, `,"op":"`...), e.Op...), `","key":`...)
	dst = e.Key.AppendJSON(dst)
	if e.Op == Upsert {
		dst = e.Row.AppendJSON(append(dst, `,"row":`...))
	}
	return append(dst, '}')
}

// MarshalJSON is AppendJSON.
func (e Entry) MarshalJSON() ([]byte, error) { return e.AppendJSON(nil), nil }

// ParseEntry parses what Entry.AppendJSON has written. ok is false if the entry's columns are not those of info: the
// table has changed, so read the feed's Info again. An entry's JSON contains neither the generation, which is that of
// the page's cursor, nor the stamp, which is in the page.
func ParseEntry(data []byte, generation int64, info *Info) (e Entry, ok bool, err error) {
	var wire struct {
		Position string                     `json:"position"`
		Shard    int                        `json:"shard"`
		Op       Op                         `json:"op"`
		Key      map[string]json.RawMessage `json:"key"`
		Row      map[string]json.RawMessage `json:"row"`
	}
	if err := json.Unmarshal(data, &wire); err != nil {
		return Entry{}, false, fmt.Errorf("entry: %w", err)
	}
	e = Entry{Position: wire.Position, Shard: wire.Shard, Op: wire.Op, Generation: generation}
	if e.Key, ok, err = ParseRow(wire.Key, info.Key); err != nil || !ok {
		return Entry{}, ok, err
	}
	if wire.Op == Upsert {
		if e.Row, ok, err = ParseRow(wire.Row, info.Columns); err != nil || !ok {
			return Entry{}, ok, err
		}
	}
	return e, true, nil
}

// ParseRow parses the values of a row from the members of a JSON object. ok is false if their names are not those of
// columns.
func ParseRow(members map[string]json.RawMessage, columns []Column) (Row, bool, error) {
	if len(members) != len(columns) {
		return Row{}, false, nil
	}
	r := Row{columns: columns, values: make([]any, len(columns))}
	for i, c := range columns {
		data, ok := members[c.Name]
		if !ok {
			return Row{}, false, nil
		}
		v, err := ParseValue(c.Kind, data)
		if err != nil {
			return Row{}, false, fmt.Errorf("column %q: %w", c.Name, err)
		}
		r.values[i] = v
	}
	return r, true, nil
}

// NewRow makes a row of the values that the database returned. It converts them in place.
func NewRow(columns []Column, values []any) (Row, error) {
	for i, v := range values {
		var err error
		if values[i], err = fromDatabase(columns[i].Kind, v); err != nil {
			return Row{}, fmt.Errorf("column %q: %w", columns[i].Name, err)
		}
	}
	return Row{columns: columns, values: values}, nil
}
