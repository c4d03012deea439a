package publish

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// keyColumns shows the columns of a key with their types.
func keyColumns(key []dialect.Column) string {
	parts := make([]string, len(key))
	for i, c := range key {
		parts[i] = c.Name + " " + c.Type
	}
	return strings.Join(parts, ", ")
}

// ParseKey parses a key as an operator writes it: the bare value if the key has one column, or the JSON object or array
// that entries show, such as {"ns":"a","k":"b"}. Binary values are base64.
func (f *Recorder) ParseKey(text string) (feedtype.Key, error) {
	columns := f.DialectFeed().Key
	bad := func(format string, args ...any) (feedtype.Key, error) {
		return nil, &feedtype.Error{Code: feedtype.InvalidRequest, Param: "key", Object: feedtype.FeedObject(f.Name),
			Cause: fmt.Sprintf("%q is not a key of (%s): %s", text, keyColumns(columns), fmt.Sprintf(format, args...)),
			Next:  "write the key as entries show it, like " + exampleKey(columns)}
	}
	var parts []json.RawMessage
	var object map[string]json.RawMessage
	switch {
	case len(columns) == 1 && strings.HasPrefix(text, `{"$`): // a value with its type, such as {"$binary":"AA=="}
		parts = append(parts, json.RawMessage(text))
	case json.Unmarshal([]byte(text), &object) == nil && object != nil:
		for _, c := range columns {
			part, ok := object[c.Name]
			if !ok {
				return bad("member %q is missing", c.Name)
			}
			parts = append(parts, part)
		}
		if len(object) != len(columns) {
			return bad("it has %d members", len(object))
		}
	case json.Unmarshal([]byte(text), &parts) == nil && parts != nil:
		if len(parts) != len(columns) {
			return bad("it has %d values", len(parts))
		}
	case len(columns) == 1:
		v, err := parseKeyValue(columns[0], text)
		if err != nil {
			return bad("%v", err)
		}
		return feedtype.Key{v}, nil
	default:
		return bad("a key of %d columns is a JSON object", len(columns))
	}
	key := make(feedtype.Key, len(columns))
	for i, c := range columns {
		v, err := feedtype.ParseValue(c.Kind, parts[i])
		if err != nil || v == nil || !fits(c.Kind, v) {
			return bad("%s is not a value for column %q", parts[i], c.Name)
		}
		key[i] = v
	}
	return key, nil
}

// fits returns true if entries show such a JSON value for a column of this kind. Other values are refused here: some
// databases would convert them to another key.
func fits(kind feedtype.Kind, v any) bool {
	switch kind {
	case feedtype.Integer:
		switch v.(type) {
		case int64, uint64:
			return true
		}
		return false
	case feedtype.Float32, feedtype.Float64:
		_, ok := v.(float64)
		return ok
	case feedtype.Binary:
		_, ok := v.([]byte)
		return ok
	case feedtype.Text, feedtype.Date, feedtype.Time, feedtype.Timestamp, feedtype.TimestampTZ:
		_, ok := v.(string)
		return ok
	case feedtype.Decimal:
		switch v.(type) {
		case string, int64, uint64:
			return true
		}
		return false
	}
	return true
}

func parseKeyValue(c dialect.Column, text string) (any, error) {
	switch c.Kind {
	case feedtype.Integer:
		row, err := feedtype.NewRow([]feedtype.Column{{Name: c.Name, Kind: c.Kind}}, []any{text})
		if err != nil {
			return nil, errors.New("it is not an integer")
		}
		return row.Value(0), nil
	case feedtype.Binary:
		v, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, errors.New("it is not base64")
		}
		return v, nil
	case feedtype.Dynamic:
		// SQLite converts text by the column's affinity. Only without a declared type the conversion is done here.
		if v, err := strconv.ParseInt(text, 10, 64); err == nil && c.Type == "" {
			return v, nil
		}
	}
	return text, nil
}

func exampleKey(columns []dialect.Column) string {
	shown := make([]feedtype.Column, len(columns))
	values := make([]any, len(columns))
	for i, c := range columns {
		shown[i], values[i] = feedtype.Column{Name: c.Name, Kind: feedtype.Text}, "…"
		if c.Kind == feedtype.Integer {
			shown[i].Kind, values[i] = feedtype.Integer, int64(7)
		}
	}
	row, _ := feedtype.NewRow(shown, values) // Text and integers never fail.
	return string(row.AppendJSON(nil))
}
