package publish

import (
	"testing"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

// BenchmarkAssign measures the assignments of 1000 changes with distinct keys.
func BenchmarkAssign(b *testing.B) {
	text := make([]dialect.Change, 1000)
	numbers := make([]dialect.Change, 1000)
	for i := range text {
		numbers[i] = dialect.Change{Seq: int64(i), Key: []any{int64(i) * 7919}}
		text[i] = dialect.Change{Seq: int64(i), Key: []any{"customer " + string(rune('a'+i%26)), int64(i)}}
	}
	r := &catalog.FeedRecord{DataShards: 1}
	for name, changes := range map[string][]dialect.Change{"number": numbers, "text and number": text} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if as, err := assignments(r, changes, 100); err != nil || len(as) != len(changes) {
					b.Fatal(as, err)
				}
			}
		})
	}
}
