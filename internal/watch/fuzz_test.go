package watch

import (
	"testing"
)

func FuzzWatermark(f *testing.F) {
	for _, seed := range []string{
		"", "1-00000000000000000000000000000007", "-",
		"1-+000000000000000000000000000000g",
		"9223372036854775808-00000000000000000000000000000000",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at, ok := ParseDigest(text)
		if !ok {
			return
		}
		if again, ok := ParseDigest(at.Digest()); !ok || again != at {
			t.Errorf("%q: %+v, then %+v", text, at, again)
		}
	})
}
