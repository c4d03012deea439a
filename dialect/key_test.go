package dialect

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
)

// Different values of a column without a type have different JSON. Keys are told apart by it: two keys that
// were taken for the same one would lose a row (guarantee 1).
func TestDifferentKeysHaveDifferentJSON(t *testing.T) {
	values := []any{nil, int64(0), int64(1), int64(-1), int64(math.MaxInt64), 0.0, 1.0, -1.5, math.Inf(1), "", "0", "1",
		"a", "\xff", []byte{}, []byte("a"),
		[]byte{0xff}}
	r := rand.New(rand.NewPCG(1, 0))
	for range 200 {
		values = append(values, int64(r.Uint64()), r.NormFloat64(), string(rune(r.IntN(1<<16))),
			[]byte{byte(r.Uint32())})
	}
	for _, a := range values {
		for _, b := range values {
			if same := KeyIdentity([]any{a}) == KeyIdentity([]any{b}); same != reflect.DeepEqual(a, b) {
				t.Fatalf("%#v and %#v", a, b)
			}
		}
	}
	different := [][]any{{"\xff"}, {[]byte{0xff}}, {int64(1)}, {"1"}, {1.0}, {"a", "b"}, {"ab", ""}, {"", "ab"},
		{""}, {[]byte{}},
		{`{"$binary":"/w=="}`}, {`{"$text64":"/w=="}`}}
	seen := map[string][]any{}
	for _, key := range different {
		id := KeyIdentity(key)
		if other, ok := seen[id]; ok {
			t.Errorf("%#v and %#v are taken for one key", key, other)
		}
		seen[id] = key
	}
}

// The key after which back-fill continues keeps its types. On SQLite a BLOB is above every text, so a text that
// is read back as a BLOB would skip rows.
func TestKeyOfBackFillKeepsItsTypes(t *testing.T) {
	key := []any{"\xff", []byte{0xff}, "ok", int64(7), 1.0, math.Inf(1)}
	got, err := DecodeKey(EncodeKey(key))
	if err != nil || !reflect.DeepEqual(got, key) {
		t.Errorf("%#v comes back as %#v, %v", key, got, err)
	}
}
