package bench

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/rowfeed/rowfeed"
)

// TestPages reads pages of a feed from SQL, one after the other, and prints what it takes as
// `go test -bench` does, so that benchstat can compare two versions:
//
//	go test -run 'TestPages$' -reps 6 -v | grep ^Benchmark
func TestPages(t *testing.T) {
	each(t, func(b *bed) {
		b.fill("items", scaled(100_000))
		db := b.rowfeed(b.pool, nil)
		f := b.add(db, rowfeed.FeedSpec{Name: "items", Table: "items"})
		_, err := f.Publish(b.Context())
		b.must(err)
		for range *reps {
			for _, limit := range []int{100, 1000, 5000} {
				after := rowfeed.Beginning
				r := testing.Benchmark(func(loop *testing.B) {
					loop.ReportAllocs()
					for loop.Loop() {
						page, err := f.Fetch(loop.Context(), rowfeed.Request{After: after, Limit: limit})
						b.must(err)
						if after = page.Cursor; !page.More {
							after = rowfeed.Beginning
						}
					}
				})
				fmt.Printf("BenchmarkPage/%s/%d-%d\t%s\t%s\n", b.Engine.Name, limit, runtime.NumCPU(), r, r.MemString())
			}
		}
	})
}
