package feedtype

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// fromDatabase converts a value that a dialect's Value expression has read to the Go value of a Row: int64, uint64,
// float64, bool, string, []byte, json.RawMessage or nil. Decimals and times become strings in the form of the JSON,
// so that no digit and no offset is lost.
func fromDatabase(kind Kind, raw any) (any, error) {
	if raw == nil {
		return nil, nil
	}
	switch kind {
	case Dynamic, Binary: // SQLite stores values of any type in a BLOB column, too
		switch v := raw.(type) {
		case []byte:
			if v == nil {
				return []byte{}, nil // not NULL: some drivers return nil for an empty value
			}
			return raw, nil
		case string, int64, float64:
			return raw, nil
		}
		return nil, fmt.Errorf("the driver returned %T, which is not a value of the database: "+
			"open the pool without its settings that turn values into others, such as _texttotime", raw)
	case Boolean:
		switch v := raw.(type) {
		case bool:
			return v, nil
		case int64:
			return v != 0, nil
		}
	case Integer:
		return toInteger(raw)
	case Float32, Float64:
		return toFloat(kind, raw)
	}
	text, ok := toText(raw)
	if !ok {
		return nil, fmt.Errorf("the database returned %T for a value of kind %s", raw, kind)
	}
	switch kind {
	case JSON:
		if tooDeep([]byte(text)) {
			return json.RawMessage(text), nil // decoders and json.Compact would refuse it
		}
		var b bytes.Buffer
		if err := json.Compact(&b, []byte(text)); err != nil {
			return nil, fmt.Errorf("a value of kind json is not JSON: %w", err)
		}
		return json.RawMessage(b.Bytes()), nil
	case Timestamp:
		return isoTimestamp(text), nil
	case TimestampTZ:
		return instant(text), nil
	}
	if _, is := raw.(string); is {
		return raw, nil
	}
	return text, nil
}

func toText(raw any) (string, bool) {
	switch v := raw.(type) {
	case string:
		return v, true
	case []byte:
		return string(v), true
	case time.Time: // some drivers return it although Value expressions avoid it
		return v.UTC().Format(time.RFC3339Nano), true
	}
	return "", false
}

func toInteger(raw any) (any, error) {
	switch v := raw.(type) {
	case int64:
		return raw, nil // raw, not v: converting v to any would allocate
	case uint64:
		if v <= math.MaxInt64 {
			return int64(v), nil
		}
		return raw, nil
	}
	text, _ := toText(raw)
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i, nil
	}
	u, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("the database returned %v (%T) for an integer", raw, raw)
	}
	return u, nil
}

// toFloat returns a float32 as the float64 of the same value, also if the database returns its shortest text: 0.1
// becomes 0.10000000149011612.
func toFloat(kind Kind, raw any) (any, error) {
	switch v := raw.(type) {
	case float64:
		if kind == Float32 {
			return float64(float32(v)), nil
		}
		return v, nil
	case float32:
		return float64(v), nil
	}
	text, _ := toText(raw)
	f, err := strconv.ParseFloat(text, floatBits(kind)) // accepts NaN, Infinity and -Infinity
	if err != nil {
		return nil, fmt.Errorf("the database returned %v (%T) for a floating-point number", raw, raw)
	}
	return f, nil
}

// isoTimestamp puts the T of RFC 3339 between date and time. Other values (infinity, years BC) stay as the database
// writes them.
func isoTimestamp(text string) string {
	date, clock, ok := strings.Cut(text, " ")
	if !ok || !isDigit(date, len(date)-1) || !isDigit(clock, len(clock)-1) {
		return text
	}
	return date + "T" + clock
}

// instant converts an instant to RFC 3339 in UTC. It reads "2006-01-02 15:04:05.999999+00", or seconds since the Unix
// epoch with a fraction.
func instant(text string) string {
	if body, ok := strings.CutSuffix(text, "+00"); ok {
		return isoTimestamp(body) + "Z"
	}
	whole, fraction, _ := strings.Cut(text, ".")
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return text
	}
	// Keep as many digits of the fraction as the database returned, which is the column's precision.
	s := time.Unix(seconds, 0).UTC().Format("2006-01-02T15:04:05")
	if fraction != "" {
		s += "." + fraction
	}
	return s + "Z"
}

func isDigit(s string, i int) bool { return i >= 0 && s[i] >= '0' && s[i] <= '9' }

// AppendValue appends a value of a Row as JSON. It panics for a type that a Row cannot hold.
func AppendValue(dst []byte, kind Kind, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case uint64:
		return strconv.AppendUint(dst, v, 10)
	case bool:
		return strconv.AppendBool(dst, v)
	case float64:
		return appendFloat(dst, kind, v)
	case json.RawMessage:
		return appendDocument(dst, v)
	case []byte:
		if kind == Binary {
			return appendBase64(dst, v)
		}
		return append(appendBase64(append(dst, `{"$binary":`...), v), '}')
	case string:
		if !utf8.ValidString(v) {
			tag := `{"$binary":`
			if kind == Dynamic || kind == Binary {
				tag = `{"$text64":` // $binary would mean another value in such a column
			}
			return append(appendBase64(append(dst, tag...), []byte(v)), '}')
		}
		if kind == Binary {
			return append(appendString(append(dst, `{"$text":`...), v), '}')
		}
		return appendString(dst, v)
	}
	panic(fmt.Sprintf("rowfeed: a Row cannot hold a %T", v)) // fromDatabase returns no other type
}

// appendDocument appends a JSON document as it is, unless a reader would misunderstand it.
func appendDocument(dst []byte, v json.RawMessage) []byte {
	switch {
	case !utf8.Valid(v):
		return append(appendBase64(append(dst, `{"$binary":`...), v), '}')
	case tooDeep(v):
		return append(appendString(append(dst, `{"$text":`...), string(v)), '}')
	case string(v) == "null" || looksTyped(v): // it could be taken for SQL's NULL or for one of rowfeed's own objects
		return append(append(append(dst, `{"$json":`...), v...), '}')
	}
	return append(dst, v...)
}

// looksTyped tells whether a compact JSON document could be taken for one of rowfeed's own objects, even if the name
// of its first member is escaped.
func looksTyped(v []byte) bool {
	name, ok := bytes.CutPrefix(v, []byte(`{"`))
	if !ok {
		return false
	}
	name, _, _ = bytes.Cut(name, []byte(`"`))
	switch string(name) {
	case "$json", "$text", "$binary":
		return true
	}
	return bytes.IndexByte(name, '\\') >= 0
}

// maxDepth is the maximum nesting of a JSON document that is written as it is. An entry and a page add a few levels,
// and encoding/json refuses more than 10,000.
const maxDepth = 9000

func tooDeep(v []byte) bool {
	if bytes.Count(v, []byte{'['})+bytes.Count(v, []byte{'{'}) <= maxDepth {
		return false
	}
	depth, inString := 0, false
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case inString:
			if c == '\\' {
				i++
			}
			inString = c != '"'
		case c == '"':
			inString = true
		case c == '[' || c == '{':
			if depth++; depth > maxDepth {
				return true
			}
		case c == ']' || c == '}':
			depth--
		}
	}
	return false
}

func appendFloat(dst []byte, kind Kind, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		name := "NaN"
		if math.IsInf(f, 1) {
			name = "Infinity"
		} else if math.IsInf(f, -1) {
			name = "-Infinity"
		}
		if kind != Float32 && kind != Float64 {
			return append(appendString(append(dst, `{"$float":`...), name), '}')
		}
		return appendString(dst, name)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'g', -1, floatBits(kind))
	if !bytes.ContainsAny(dst[start:], ".e") {
		dst = append(dst, ".0"...) // distinguishes 1.0 from 1 where values, not columns, have types
	}
	return dst
}

func floatBits(kind Kind) int {
	if kind == Float32 {
		return 32
	}
	return 64
}

func appendBase64(dst, v []byte) []byte {
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, v)
	return append(dst, '"')
}

// appendString appends valid UTF-8 as a JSON string. It escapes only what JSON requires.
func appendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for {
		plain := unescaped(s)
		dst = append(dst, s[:plain]...)
		if plain == len(s) {
			return append(dst, '"')
		}
		switch c := s[plain]; c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		s = s[plain+1:]
	}
}

// unescaped returns how many bytes at the beginning of s need no escape in JSON. Most of what is sent is text without
// escapes, so it tests eight bytes at a time. In such a word, a byte is below n if subtracting n borrows from its top
// bit. A byte equals c if its XOR with c is below 1. The lowest bit found is exact.
func unescaped(s string) int {
	const each, top = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(s); i += 8 {
		w := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
			uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
		quote, backslash := w^each*'"', w^each*'\\'
		found := ((w-each*0x20) & ^w | (quote-each) & ^quote | (backslash-each) & ^backslash) & top
		if found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' {
			break
		}
	}
	return i
}

// ParseValue parses the JSON of AppendValue.
func ParseValue(kind Kind, data json.RawMessage) (any, error) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 || string(data) == "null" && kind != JSON {
		return nil, nil
	}
	switch {
	case kind == JSON:
		return fromDocument(data)
	case data[0] == '{':
		var typed struct {
			Binary *[]byte `json:"$binary"`
			Text   *string `json:"$text"`
			Text64 *[]byte `json:"$text64"`
			Float  *string `json:"$float"`
		}
		if err := json.Unmarshal(data, &typed); err != nil {
			return nil, err
		}
		switch {
		case typed.Binary != nil && (kind == Dynamic || kind == Binary):
			return *typed.Binary, nil
		case typed.Binary != nil:
			return string(*typed.Binary), nil // see AppendValue: text that is not UTF-8
		case typed.Text != nil:
			return *typed.Text, nil
		case typed.Text64 != nil:
			return string(*typed.Text64), nil
		case typed.Float != nil:
			return strconv.ParseFloat(*typed.Float, 64)
		}
		return nil, fmt.Errorf("unknown typed value %s", data)
	case data[0] == '"':
		var s string
		if err := json.Unmarshal(data, &s); err != nil {
			return nil, err
		}
		switch kind {
		case Binary:
			return base64.StdEncoding.DecodeString(s)
		case Float32, Float64:
			return strconv.ParseFloat(s, floatBits(kind))
		}
		return s, nil
	case data[0] == 't' || data[0] == 'f':
		return data[0] == 't', nil
	}
	if kind == Float32 || kind == Float64 || bytes.ContainsAny(data, ".eE") {
		return strconv.ParseFloat(string(data), floatBits(kind))
	}
	return toInteger(string(data))
}

// fromDocument parses the JSON of appendDocument.
func fromDocument(data []byte) (any, error) {
	if string(data) == "null" {
		return nil, nil
	}
	if inner, ok := bytes.CutPrefix(data, []byte(`{"$json":`)); ok {
		return append(json.RawMessage(nil), bytes.TrimSpace(inner[:len(inner)-1])...), nil
	}
	if looksTyped(data) {
		var typed struct {
			Binary []byte `json:"$binary"`
			Text   string `json:"$text"`
		}
		if err := json.Unmarshal(data, &typed); err != nil {
			return nil, err
		}
		return json.RawMessage(append(typed.Binary, typed.Text...)), nil
	}
	return append(json.RawMessage(nil), data...), nil
}
