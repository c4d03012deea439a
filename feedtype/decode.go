package feedtype

import (
	"bytes"
	"database/sql"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// DecodeOption changes how rows are decoded.
type DecodeOption int

// EveryField returns an error if a field has no column. By default such a field keeps its value.
const EveryField DecodeOption = 1

// Decode stores the row's values in a struct. It returns an error if a value cannot be stored exactly.
//
// A field's column is the one that its tag names (`rowfeed:"name"`, else `db` or `json`; "-" for none). Without a tag
// it is the column with the field's name, ignoring case and underscores: CreatedAt is created_at. Fields of embedded
// structs count as fields. Columns without a field are ignored, and so are fields without a column unless EveryField
// is given.
//
// Values are stored as follows:
//   - integers in integer types that can hold them;
//   - floating-point numbers in float64, or in float32 if the value is a float32;
//   - booleans, and the integers 0 and 1, in bool;
//   - decimals in strings and types that read text, but not in float64, which would lose digits;
//   - text in strings and []byte;
//   - binary values in []byte;
//   - dates and times in time.Time (in UTC if the column has no time zone) or strings;
//   - JSON, and text in structs, maps and slices, as encoding/json decodes it.
//
// Types with a method Scan or UnmarshalText use that method. NULL can be stored in pointers, slices, maps, any and
// sql.Null types only.
//
// into may also be a map[string]any, which gets all values as Value returns them.
func (r Row) Decode(into any, options ...DecodeOption) error {
	v := reflect.ValueOf(into)
	if m, ok := into.(map[string]any); ok && m != nil {
		for i, c := range r.columns {
			m[c.Name] = r.values[i]
		}
		return nil
	}
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("decode a row: %T is neither a pointer to a struct nor a map[string]any", into)
	}
	v = v.Elem()
	fields := fieldsOf(v.Type())
	for _, f := range fields {
		i := r.find(f)
		if i < 0 {
			if len(options) > 0 && options[0] == EveryField {
				return fmt.Errorf("decode a row into %T: field %s has no column %q", into, f.name, f.column)
			}
			continue
		}
		target, err := v.FieldByIndexErr(f.index)
		if err != nil { // a nil pointer to an embedded struct is on the way
			if target = reach(v, f.index); !target.IsValid() {
				return fmt.Errorf("decode a row into %T: field %s is in a nil pointer to an unexported struct, "+
					"which cannot be made: make it beforehand", into, f.name)
			}
		}
		if err := decodeInto(target, r.columns[i].Kind, r.values[i]); err != nil {
			return fmt.Errorf("decode a row into %T: column %q, field %s: %w", into, r.columns[i].Name, f.name, err)
		}
	}
	return nil
}

// Decode stores the entry's row, see [Row.Decode]. The key columns are stored as in Key, which has the same text in
// every entry of a key, even if the row now spells its key differently. Decode fails for a delete, which has only a
// key.
func (e Entry) Decode(into any, options ...DecodeOption) error {
	if e.Op == Delete {
		return fmt.Errorf("decode entry at position %s: a delete has no row, decode its Key", e.Position)
	}
	if err := e.Row.Decode(into, options...); err != nil {
		return err
	}
	return e.Key.Decode(into)
}

// field is a field of a struct, and the name of its column.
type field struct {
	name, column string
	tagged       bool
	index        []int
}

var fieldCache sync.Map // reflect.Type to []field

func fieldsOf(t reflect.Type) []field {
	if known, ok := fieldCache.Load(t); ok {
		return known.([]field)
	}
	var all []field
	for _, f := range reflect.VisibleFields(t) {
		name, tagged := "", false
		for _, key := range []string{"rowfeed", "db", "json"} {
			if tag, ok := f.Tag.Lookup(key); ok && !tagged {
				name, _, _ = strings.Cut(tag, ",")
				tagged = name != ""
			}
		}
		switch {
		case !f.IsExported() || name == "-" || f.Anonymous && !tagged && isEmbedded(f.Type):
			continue
		case !tagged:
			name = f.Name
		}
		all = append(all, field{f.Name, name, tagged, f.Index})
	}
	fieldCache.Store(t, all)
	return all
}

// isEmbedded tells whether the fields of an embedded struct count, or whether the struct is a single value.
func isEmbedded(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct && t != reflect.TypeFor[time.Time]() &&
		!reflect.PointerTo(t).Implements(reflect.TypeFor[sql.Scanner]()) &&
		!reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// find returns the index of the field's column, or -1. An exact name is preferred.
func (r Row) find(f field) int {
	found := -1
	for i, c := range r.columns {
		if c.Name == f.column {
			return i
		}
		if !f.tagged && found < 0 && plain(c.Name) == plain(f.column) {
			found = i
		}
	}
	return found
}

func plain(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

// reach returns the field with this index, and allocates nil pointers to embedded structs on the way. It returns the
// zero Value if such a struct is unexported.
func reach(v reflect.Value, index []int) reflect.Value {
	for _, i := range index {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				if !v.CanSet() {
					return reflect.Value{}
				}
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	return v
}

// decodeInto stores a value of a Row in a field.
func decodeInto(to reflect.Value, kind Kind, v any) error {
	if to.Kind() == reflect.Pointer {
		if v == nil {
			to.SetZero()
			return nil
		}
		to.Set(reflect.New(to.Type().Elem()))
		return decodeInto(to.Elem(), kind, v)
	}
	if scanner, ok := to.Addr().Interface().(sql.Scanner); ok {
		return scan(scanner, kind, v)
	}
	if v == nil {
		switch to.Kind() {
		case reflect.Slice, reflect.Map, reflect.Interface:
			to.SetZero()
			return nil
		}
		return fmt.Errorf("NULL cannot be a %s: make it a pointer or a sql.Null", to.Type())
	}
	if at, ok := to.Addr().Interface().(*time.Time); ok {
		t, err := toTime(kind, v)
		*at = t
		return err
	}
	if text, ok := to.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if s, ok := textOf(v); ok {
			return text.UnmarshalText([]byte(s))
		}
	}
	if document, ok := documentOf(to, v); ok {
		to.SetZero() // or json.Unmarshal would merge the document with the previous value
		return json.Unmarshal(document, to.Addr().Interface())
	}
	return decodePlain(to, kind, v)
}

// documentOf returns a value as a JSON document if the field can hold one. Not every database has a type for JSON, so
// text counts as JSON for structs, maps and slices.
func documentOf(to reflect.Value, v any) (json.RawMessage, bool) {
	document, isJSON := v.(json.RawMessage)
	switch to.Kind() {
	case reflect.Interface, reflect.String:
		return nil, false
	case reflect.Slice:
		if to.Type().Elem().Kind() == reflect.Uint8 {
			return nil, false
		}
	case reflect.Struct, reflect.Map, reflect.Array:
	default:
		return document, isJSON
	}
	if text, ok := v.(string); ok {
		return json.RawMessage(text), true
	}
	return document, isJSON
}

// scan passes a value to a Scanner, as database/sql would. It first tries dates and times as time.Time, which
// sql.NullTime needs, and then as text, which other types read. Text of another kind is tried as text first, and then
// as a time.
func scan(to sql.Scanner, kind Kind, v any) error {
	t, notTime := toTime(kind, v)
	switch kind {
	case Timestamp, TimestampTZ, Date:
		if notTime == nil && to.Scan(t) == nil {
			return nil
		}
	}
	switch x := v.(type) {
	case json.RawMessage:
		v = []byte(x)
	case uint64:
		v = strconv.FormatUint(x, 10) // drivers have no uint64
	case []byte:
		v = bytes.Clone(x)
	}
	err := to.Scan(v)
	if err != nil && notTime == nil && to.Scan(t) == nil {
		return nil
	}
	return err
}

func textOf(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case int64:
		return strconv.FormatInt(v, 10), true
	case uint64:
		return strconv.FormatUint(v, 10), true
	}
	return "", false
}

var errKind = errors.New("the types do not go together")

func decodePlain(to reflect.Value, kind Kind, v any) error {
	wrong := func() error { return fmt.Errorf("%w: a value of kind %s (%T) into a %s", errKind, kind, v, to.Type()) }
	switch to.Kind() {
	case reflect.Interface:
		if !reflect.TypeOf(v).AssignableTo(to.Type()) {
			return wrong()
		}
		to.Set(reflect.ValueOf(v))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8,
		reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return decodeInteger(to, kind, v, wrong)
	case reflect.Float32, reflect.Float64:
		f, ok := v.(float64)
		if n, isInteger := v.(int64); isInteger && int64(float64(n)) == n && math.Abs(float64(n)) < 1<<53 {
			f, ok = float64(n), true
		}
		if !ok || kind == Decimal {
			return wrong()
		}
		if to.Kind() == reflect.Float32 && float64(float32(f)) != f && !math.IsNaN(f) {
			return fmt.Errorf("%v is not a float32", f)
		}
		to.SetFloat(f)
	case reflect.Bool:
		switch v {
		case true, false:
			to.SetBool(v.(bool))
		case int64(0), int64(1):
			to.SetBool(v == int64(1))
		default:
			return wrong()
		}
	case reflect.String:
		switch v := v.(type) {
		case string:
			to.SetString(v)
		case json.RawMessage:
			to.SetString(string(v))
		case []byte:
			if kind == Binary || !utf8.Valid(v) {
				return wrong()
			}
			to.SetString(string(v))
		default:
			return wrong()
		}
	case reflect.Slice:
		if to.Type().Elem().Kind() != reflect.Uint8 {
			return wrong()
		}
		switch v := v.(type) {
		case []byte:
			to.SetBytes(bytes.Clone(v))
		case string:
			to.SetBytes([]byte(v))
		case json.RawMessage:
			to.SetBytes(bytes.Clone(v))
		default:
			return wrong()
		}
	default:
		return wrong()
	}
	return nil
}

// decodeInteger stores whole numbers that fit the type, including those of a decimal column.
func decodeInteger(to reflect.Value, kind Kind, v any, wrong func() error) error {
	var text string
	switch v := v.(type) {
	case string:
		if kind != Decimal && kind != Integer {
			return wrong()
		}
		text = v
		if whole, fraction, ok := strings.Cut(v, "."); ok && strings.Trim(fraction, "0") == "" {
			text = whole
		}
	default:
		var ok bool
		if text, ok = textOf(v); !ok {
			return wrong()
		}
	}
	if to.CanInt() {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || to.OverflowInt(n) {
			return fmt.Errorf("%v does not fit into a %s", v, to.Type())
		}
		to.SetInt(n)
		return nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || to.OverflowUint(n) {
		return fmt.Errorf("%v does not fit into a %s", v, to.Type())
	}
	to.SetUint(n)
	return nil
}

// toTime parses the text of a date or time.
func toTime(kind Kind, v any) (time.Time, error) {
	text, ok := v.(string)
	if !ok {
		return time.Time{}, fmt.Errorf("%w: a value of kind %s (%T) into a time.Time", errKind, kind, v)
	}
	layouts := []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999",
		time.DateOnly}
	for _, layout := range layouts {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time.Time", text)
}
