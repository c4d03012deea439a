package install

import (
	"testing"

	"github.com/rowfeed/rowfeed/internal/catalog"
)

func FuzzTableName(f *testing.F) {
	for _, seed := range []string{"kv", "a.b", `"a.b"."c""d"`, `"`, `""`, ".", "a.", "a.b.c", "\x00",
		"kv; DROP TABLE kv"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if name, err := catalog.ParseTable(text); err == nil && name.Name == "" {
			t.Errorf("%q has no name", text)
		}
	})
}
