package bench

import (
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
)

// TestPublishByCapture drains changes of distinct keys, which triggers have recorded or which are marked in the rows
// themselves. It publishes each key for the first time, and then once more.
func TestPublishByCapture(t *testing.T) {
	out := table{Title: "Publishing by capture, batches of 1000, keys/s",
		Head: []string{"database", "publication", "trigger", "column", "column ÷ trigger"}}
	each(t, func(b *bed) {
		rows := scaled(100_000)
		b.fill("items", rows)
		p := b.passes(b.Pool, 1000)
		results := figures[string]{}
		for range *reps {
			for _, capture := range []feedtype.Capture{feedtype.CaptureTrigger, feedtype.CaptureColumn} {
				f := b.Feed(p.db, rowfeed.FeedSpec{Name: "items", Table: "items", Capture: capture})
				for _, publication := range []string{"first", "again"} {
					switch {
					case publication == "first":
					case capture == feedtype.CaptureColumn:
						b.SQL("UPDATE items SET feed_sync_id = NULL")
					default:
						b.SQL("UPDATE items SET payload = payload")
					}
					b.analyze("items")
					took, keys := turns(func() int { return p.pass(f) })
					if keys[0] != rows {
						b.Fatalf("%d keys of %d", keys[0], rows)
					}
					results.Add(publication+string(capture), float64(rows)/took[0].Seconds())
				}
				b.Must(p.db.DropFeed(b.Context(), "items"))
			}
		}
		for _, publication := range []string{"first", "again"} {
			trigger, column := results[publication+"trigger"], results[publication+"column"]
			out.Row(b.Engine.Name, publication, count(trigger.Median()), count(column.Median()),
				column.Over(trigger).Ratio())
		}
	})
	out.Print()
}
