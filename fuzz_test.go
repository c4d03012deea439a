package rowfeed

import (
	"encoding/json"
	"testing"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/watch"
)

// What is parsed of what strangers send. `go test` runs the seeds; scripts/fuzz.sh looks
// for more.

func FuzzKeyValue(f *testing.F) {
	for _, seed := range []string{"1", "-0", "9223372036854775808", "AP8=", "x", "1e3", "", "\x00", "NaN", "2026-01-31", `{"$binary":"AA=="}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, kind := range []feedtype.Kind{feedtype.Integer, feedtype.Float64, feedtype.Boolean, feedtype.Decimal, feedtype.Text, feedtype.Binary, feedtype.JSON, feedtype.TimestampTZ, feedtype.Dynamic, "of later"} {
			v, err := parseKeyValue(dialect.Column{Name: "k", Kind: kind}, text)
			if err == nil && v == nil {
				t.Errorf("%q as %s is nothing", text, kind)
			}
			if json.Valid([]byte(text)) {
				_, _ = feedtype.ParseValue(kind, json.RawMessage(text))
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
		at, ok := watch.ParseDigest(text)
		if !ok {
			return
		}
		if again, ok := watch.ParseDigest(at.Digest()); !ok || again != at {
			t.Errorf("%q: %+v, then %+v", text, at, again)
		}
	})
}
