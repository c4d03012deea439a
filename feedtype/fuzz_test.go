package feedtype

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
)

func FuzzCursor(f *testing.F) {
	for _, seed := range []string{"", "0", "1", "7:1", "3@27", "2:3@27", "now", "at:2026-01-31T12:00:00Z",
		"at:2020-01-01T00:00:00 02:00", "9223372036854775807", "9223372036854775808", "01ARZ3NDEKTSV4RRFFQ69G5FAV",
		"5:01ARZ3NDEKTSV4RRFFQ69G5FAV@01ARZ3NDEKTSV4RRFFQ69G5FAW", "-1", "+1", "1:", ":1", "@", "0:1", "00", "1@1",
		"' OR 1=1 --", "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c := Cursor(text)
		_ = c.Check()
		p, err := c.State()
		if err != nil {
			if c.Generation() != 0 {
				t.Errorf("%q is no cursor, and has a generation", text)
			}
			return
		}
		if p.Generation < 0 || !p.Start && p.Generation < 1 || p.Mark.Above(p.Position) && p.Seen() != p.Mark {
			t.Errorf("%q: %+v", text, p)
		}
		again, err := p.Cursor().State()
		if err != nil {
			t.Fatalf("%q was written as %q: %v", text, p.Cursor(), err)
		}
		if again.Position != p.Position || again.Seen() != p.Seen() || again.Start != p.Start ||
			!p.Start && again.Generation != p.Generation {
			t.Errorf("%q: %+v, written as %q: %+v", text, p, p.Cursor(), again)
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
			return // no feed has this number of shards
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
	for _, seed := range []string{`{}`, `null`, `[]`, `{"position":1}`,
		`{"position":"7","op":"delete","key":{"id":9223372036854775808}}`,
		`{"position":"7","op":"upsert","key":{"id":1},"row":{"id":1,"sp ace\"":{"$binary":"_"},"b":"!","at":null,` +
			`"doc":"x","none":1e999}}`,
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

// FuzzText: the JSON of a text parses to the same text, and is one line.
func FuzzText(f *testing.F) {
	for _, seed := range []string{
		"", "a\n\r\u2028", "\"\\", "\x00\x1f\x7f", "é😀", "\xff", "</script>", "data: x\n\nid: 9",
	} {
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
