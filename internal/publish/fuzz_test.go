package publish

import (
	"encoding/json"
	"testing"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

func FuzzKeyValue(f *testing.F) {
	seeds := []string{"1", "-0", "9223372036854775808", "AP8=", "x", "1e3", "", "\x00", "NaN", "2026-01-31",
		`{"$binary":"AA=="}`}
	for _, seed := range seeds {
		f.Add(seed)
	}
	kinds := []feedtype.Kind{feedtype.Integer, feedtype.Float64, feedtype.Boolean, feedtype.Decimal, feedtype.Text,
		feedtype.Binary, feedtype.JSON, feedtype.TimestampTZ, feedtype.Dynamic, "of later"}
	f.Fuzz(func(t *testing.T, text string) {
		for _, kind := range kinds {
			v, err := parseKeyValue(dialect.Column{Name: "k", Kind: kind}, text)
			if err == nil && v == nil {
				t.Errorf("%q as %s is parsed as nil", text, kind)
			}
			if json.Valid([]byte(text)) {
				_, _ = feedtype.ParseValue(kind, json.RawMessage(text))
			}
		}
	})
}
