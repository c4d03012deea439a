package rowfeed

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/rowfeed/rowfeed/dialect"
)

// What is parsed of what strangers send. `go test` runs the seeds; scripts/fuzz.sh looks
// for more.

func FuzzCursor(f *testing.F) {
	for _, seed := range []string{"", "0", "1", "7:1", "3@27", "2:3@27", "now", "at:2026-01-31T12:00:00Z", "at:2020-01-01T00:00:00 02:00", "9223372036854775807",
		"9223372036854775808", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "5:01ARZ3NDEKTSV4RRFFQ69G5FAV@01ARZ3NDEKTSV4RRFFQ69G5FAW", "-1", "+1", "1:", ":1", "@", "0:1", "00", "1@1", "' OR 1=1 --", "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c := Cursor(text)
		_ = c.check()
		p, err := c.parse()
		if err != nil {
			if c.Generation() != 0 {
				t.Errorf("%q is no cursor, and has a generation", text)
			}
			return
		}
		if p.generation < 0 || !p.start && p.generation < 1 || p.mark.Above(p.position) && p.seen() != p.mark {
			t.Errorf("%q: %+v", text, p)
		}
		again, err := p.cursor().parse()
		if err != nil {
			t.Fatalf("%q was written as %q: %v", text, p.cursor(), err)
		}
		if again.position != p.position || again.seen() != p.seen() || again.start != p.start || !p.start && again.generation != p.generation {
			t.Errorf("%q: %+v, written as %q: %+v", text, p, p.cursor(), again)
		}
	})
}

func FuzzShards(f *testing.F) {
	f.Add(0, 1, 1)
	f.Add(3, 8, 1024)
	f.Add(-1, 0, 1)
	f.Add(7, 7, 3)
	f.Add(math.MaxInt, math.MaxInt, 65_536)
	f.Fuzz(func(t *testing.T, i, n, dataShards int) {
		if dataShards < 1 || dataShards > MaxDataShards {
			return // of no feed
		}
		for _, s := range []Shards{One(i), Part(i, n)} {
			from, to, err := s.Range(dataShards)
			if err == nil && (from < 0 || to < from || to > dataShards) {
				t.Errorf("%v of %d: %d to %d", s, dataShards, from, to)
			}
			if (err == nil) != (s.Check() == nil) && !s.one {
				t.Errorf("%v of %d: %v, but Check: %v", s, dataShards, err, s.Check())
			}
		}
		if n < 1 || n > MaxDataShards || i < 0 || i >= n-1 {
			return
		}
		_, to, _ := Part(i, n).Range(dataShards)
		if from, _, _ := Part(i+1, n).Range(dataShards); from != to {
			t.Errorf("between parts %d and %d of %d there is a gap", i, i+1, n)
		}
	})
}

func FuzzParseEntry(f *testing.F) {
	f.Add(sampleEntry().AppendJSON(nil))
	for _, seed := range []string{`{}`, `null`, `[]`, `{"position":1}`, `{"position":"7","op":"delete","key":{"id":9223372036854775808}}`,
		`{"position":"7","op":"upsert","key":{"id":1},"row":{"id":1,"sp ace\"":{"$binary":"_"},"b":"!","at":null,"doc":"x","none":1e999}}`,
		`{"key":{"id":{"$json":null}}}`, `{"position":"1","shard":1e3,"op":"x","key":{"id":"1"}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, ok, err := ParseEntry(data, 1, entryInfo)
		if err != nil || !ok {
			return
		}
		text := e.AppendJSON(nil)
		again, ok, err := ParseEntry(text, 1, entryInfo)
		if err != nil || !ok {
			t.Fatalf("%s was written as %s: %v %v", data, text, ok, err)
		}
		if got := again.AppendJSON(nil); string(got) != string(text) {
			t.Errorf("%s, then %s", text, got)
		}
	})
}

func FuzzKeyValue(f *testing.F) {
	for _, seed := range []string{"1", "-0", "9223372036854775808", "AP8=", "x", "1e3", "", "\x00", "NaN", "2026-01-31", `{"$binary":"AA=="}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, kind := range []dialect.Kind{dialect.Integer, dialect.Float64, dialect.Boolean, dialect.Decimal, dialect.Text, dialect.Binary, dialect.JSON, dialect.TimestampTZ, dialect.Dynamic, "of later"} {
			v, err := parseKeyValue(dialect.Column{Name: "k", Kind: kind}, text)
			if err == nil && v == nil {
				t.Errorf("%q as %s is nothing", text, kind)
			}
			if json.Valid([]byte(text)) {
				_, _ = fromJSON(kind, json.RawMessage(text))
			}
		}
	})
}

func FuzzTableName(f *testing.F) {
	for _, seed := range []string{"kv", "a.b", `"a.b"."c""d"`, `"`, `""`, ".", "a.", "a.b.c", "\x00", "kv; DROP TABLE kv"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if name, err := parseTable(text); err == nil && name.Name == "" {
			t.Errorf("%q has no name", text)
		}
	})
}

func FuzzStanding(f *testing.F) {
	for _, seed := range []string{"", "1-00000000000000000000000000000007", "-", "1-+000000000000000000000000000000g", "9223372036854775808-00000000000000000000000000000000"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at, ok := parseDigest(text)
		if !ok {
			return
		}
		if again, ok := parseDigest(at.digest()); !ok || again != at {
			t.Errorf("%q: %+v, then %+v", text, at, again)
		}
	})
}

// FuzzText: what is written of a text reads back as it was, and is one line.
func FuzzText(f *testing.F) {
	for _, seed := range []string{"", "a\n\r\u2028", "\"\\", "\x00\x1f\x7f", "é😀", "\xff", "</script>", "data: x\n\nid: 9"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		written := appendString(nil, text)
		if slices.ContainsFunc(written, func(b byte) bool { return b < ' ' }) {
			t.Errorf("%q was written as %q", text, written)
		}
		var back string
		if err := json.Unmarshal(written, &back); err != nil || back != string([]rune(text)) {
			t.Errorf("%q was written as %q: %q %v", text, written, back, err)
		}
	})
}
