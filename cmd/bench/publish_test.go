package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
)

// TestPublish drains changes of distinct keys: their first publication, and once more when every key already has a
// position. rowfeed and the prototype take turns batch by batch, so that both meet the same load.
func TestPublish(t *testing.T) {
	out := table{Title: "Publishing, keys/s",
		Head: []string{"database", "batch", "publication", "prototype", "rowfeed", "ratio"}}
	each(t, func(b *bed) {
		rows := scaled(100_000)
		b.fill("items", rows)
		bare := b.prototype("items")
		for _, size := range []int{100, 1000, 5000} {
			p := b.passes(b.Pool, size)
			theirs, ours := figures[string]{}, figures[string]{}
			publications := []string{"first", "again"}
			for range *reps {
				bare.create()
				f := b.Feed(p.db, rowfeed.FeedSpec{Name: "items", Table: "items"})
				for _, publication := range publications {
					bare.record()
					if publication == "again" {
						_, err := f.Admin().RepublishWhere(b.Context(), "", 10_000, nil)
						b.Must(err)
					}
					took, keys := turns(func() int { return bare.pass(size) }, func() int { return p.pass(f) })
					if keys[0] != rows || keys[1] != rows {
						b.Fatalf("%v keys of %d", keys, rows)
					}
					theirs.Add(publication, float64(rows)/took[0].Seconds())
					ours.Add(publication, float64(rows)/took[1].Seconds())
				}
				bare.drop()
				b.Must(p.db.DropFeed(b.Context(), "items"))
			}
			for _, publication := range publications {
				out.Row(b.Engine.Name, fmt.Sprint(size), publication, count(theirs[publication].Median()),
					count(ours[publication].Median()),
					ours[publication].Over(theirs[publication]).Ratio())
			}
		}
	})
	out.Print()
}

// turns runs publishers, one pass each in turn, until none finds any change.
func turns(publishers ...func() int) (took []time.Duration, keys []int) {
	took, keys = make([]time.Duration, len(publishers)), make([]int, len(publishers))
	for busy := true; busy; {
		busy = false
		for i, pass := range publishers {
			started := time.Now()
			n := pass()
			if n > 0 { // a pass that finds nothing does not count
				took[i] += time.Since(started)
				keys[i] += n
				busy = true
			}
		}
	}
	return took, keys
}
