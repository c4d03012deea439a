package feedtype

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

var kinds = []Kind{Integer, Float32, Float64, Boolean, Decimal, Text, Binary,
	JSON, Date, Time, Timestamp, TimestampTZ, Dynamic}

// sameValue compares two values of a Row: NaN equals itself, -0 differs from 0, and an empty []byte differs from nil.
func sameValue(a, b any) bool {
	x, ok := a.(float64)
	y, both := b.(float64)
	if ok || both {
		return ok && both && (math.Float64bits(x) == math.Float64bits(y) || math.IsNaN(x) && math.IsNaN(y))
	}
	return reflect.DeepEqual(a, b)
}

// rowValue draws a value that fromDatabase can return for a column of the kind.
func rowValue(r random, kind Kind) any {
	float := func(bits int) any {
		f := r.float()
		if bits == 32 {
			return float64(float32(f))
		}
		return f
	}
	if r.IntN(10) == 0 {
		return nil
	}
	switch kind {
	case Integer:
		if u := r.Uint64(); u > math.MaxInt64 {
			return u
		}
		return r.between(math.MinInt64, math.MaxInt64)
	case Float32:
		return float(32)
	case Float64:
		return float(64)
	case Boolean:
		return r.coin()
	case JSON:
		docs := []string{"null", "0", `""`, "[]", `{"$json":1}`, `{"$text":"a"}`, `{"$binary":"AA=="}`,
			`{"\u0024json":null}`, `{"$ref":"a"}`,
			`{"a":1,"a":2}`, "1e400", "\"\xff\"", strings.Repeat("[", 9001) + strings.Repeat("]", 9001),
			strings.Repeat("[", 9000) + strings.Repeat("]", 9000)}
		return json.RawMessage(docs[r.IntN(len(docs))])
	case Binary: // SQLite stores values of any type in a BLOB column
		if r.coin() {
			return r.bytes()
		}
		fallthrough
	case Dynamic:
		switch r.IntN(4) {
		case 0:
			return r.between(math.MinInt64, math.MaxInt64)
		case 1:
			f := float(64).(float64)
			if math.IsNaN(f) {
				return nil // SQLite stores NaN as NULL
			}
			return f
		case 2:
			return r.bytes()
		}
	}
	return r.text()
}

// Every value that a page can show parses from its JSON to the same value of the same type. The JSON is valid UTF-8
// on one line (M15).
func TestValuesParseFromTheirJSON(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			drawn(t, func(t *testing.T, r random) {
				v := rowValue(r, kind)
				text := AppendValue(nil, kind, v)
				if !json.Valid(text) || !utf8.Valid(text) || bytes.IndexByte(text, '\n') >= 0 {
					t.Fatalf("%#v of kind %s is written as %s", v, kind, text)
				}
				back, err := ParseValue(kind, text)
				if err != nil || !sameValue(v, back) {
					t.Fatalf("%#v of kind %s is written as %.200s and read as %#v, %v", v, kind, text, back, err)
				}
				if again := AppendValue(nil, kind, back); !bytes.Equal(text, again) {
					t.Fatalf("%s, then %s", text, again)
				}
			})
		})
	}
}

// The values of different drivers become the same value and the same text.
func TestDriversGiveSameValue(t *testing.T) {
	tests := []struct {
		kind Kind
		raw  any
		want any
		text string
	}{
		{Integer, int64(-1), int64(-1), "-1"},
		{Integer, []byte("18446744073709551615"), uint64(math.MaxUint64), "18446744073709551615"},
		{Float32, "0.1", float64(float32(0.1)), "0.1"},
		{Float32, float64(float32(0.1)), float64(float32(0.1)), "0.1"},
		{Float32, float32(0.1), float64(float32(0.1)), "0.1"},
		{Float64, []byte("0.30000000000000004"), 0.30000000000000004, "0.30000000000000004"},
		{Float64, "-0", math.Copysign(0, -1), "-0.0"},
		{Float64, "1", 1.0, "1.0"},
		{Float64, "NaN", math.NaN(), `"NaN"`},
		{Dynamic, math.Inf(-1), math.Inf(-1), `{"$float":"-Infinity"}`},
		{Binary, math.Inf(1), math.Inf(1), `{"$float":"Infinity"}`},
		{Binary, "text", "text", `{"$text":"text"}`},
		{Binary, "\xff", "\xff", `{"$text64":"/w=="}`},
		{Binary, []byte{}, []byte{}, `""`},
		{Dynamic, []byte{0xff}, []byte{0xff}, `{"$binary":"/w=="}`},
		{Text, []byte("\xff"), "\xff", `{"$binary":"/w=="}`},
		{Boolean, int64(1), true, "true"},
		{Decimal, []byte("1.50"), "1.50", `"1.50"`},
		{JSON, " { \"a\" :\n[1, \"b c\"] } ", json.RawMessage(`{"a":[1,"b c"]}`), `{"a":[1,"b c"]}`},
		{Timestamp, "2026-01-31 12:00:00.5", "2026-01-31T12:00:00.5", `"2026-01-31T12:00:00.5"`},
		{Timestamp, "0044-03-15 12:00:00 BC", "0044-03-15 12:00:00 BC", `"0044-03-15 12:00:00 BC"`},
		{Timestamp, "infinity", "infinity", `"infinity"`},
		{TimestampTZ, "2026-01-31 12:00:00.500+00", "2026-01-31T12:00:00.500Z", `"2026-01-31T12:00:00.500Z"`},
		{TimestampTZ, "1769860800.120", "2026-01-31T12:00:00.120Z", `"2026-01-31T12:00:00.120Z"`},
		{TimestampTZ, "-infinity", "-infinity", `"-infinity"`},
		{TimestampTZ, "0044-03-15 12:00:00+00 BC", "0044-03-15 12:00:00+00 BC", `"0044-03-15 12:00:00+00 BC"`},
		{Text, time.Date(2026, 1, 31, 12, 0, 0, 5000, time.FixedZone("", 3600)), "2026-01-31T11:00:00.000005Z",
			`"2026-01-31T11:00:00.000005Z"`},
	}
	for _, test := range tests {
		v, err := fromDatabase(test.kind, test.raw)
		if err != nil || !sameValue(v, test.want) {
			t.Errorf("%s %#v becomes %#v, %v, want %#v", test.kind, test.raw, v, err, test.want)
			continue
		}
		if text := string(AppendValue(nil, test.kind, v)); text != test.text {
			t.Errorf("%s %#v is written as %s, want %s", test.kind, test.raw, text, test.text)
		}
	}
	for _, bad := range []struct {
		kind Kind
		raw  any
	}{{Integer, "x"}, {Float64, "x"}, {JSON, "{1,2}"}, {Decimal, 1.5}, {Boolean, "maybe"}} {
		if v, err := fromDatabase(bad.kind, bad.raw); err == nil && bad.kind != Boolean {
			t.Errorf("%s %#v becomes %#v", bad.kind, bad.raw, v)
		}
	}
}
