package conformance

import (
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	relays "github.com/rowfeed/rowfeed/relay"
)

// TestDropKeepsEpochs (M54): a receiver refuses epochs below the highest that it has seen,
// and knows nothing of a consumer that was dropped, or of how many shards it has. The
// first epochs after that are above all before.
func TestDropKeepsEpochs(t *testing.T) {
	each(t, func(x *env) {
		f, l := x.addShards(64), x.sharing()
		x.insertIDs(idsOf(1, 1, 64, 0, 8)...)
		x.publish(f)
		var lowest, highest int64
		deliver := func(shards int) {
			x.Helper()
			before := highest
			lowest = 0
			r := &relays.Relay{Name: "test", Source: f, DB: x.rf, Sink: l, ShardCount: shards, Lease: time.Minute, Observe: func(e relays.Event) {
				if e.Kind != relays.Working {
					return
				}
				if lowest == 0 || e.Epoch < lowest {
					lowest = e.Epoch
				}
				highest = max(highest, e.Epoch)
			}}
			if err := r.RunOnce(x.ctx); err != nil {
				x.Fatal(err)
			}
			if lowest <= before {
				x.Errorf("%d shards: epoch %d after %d", shards, lowest, before)
			}
		}
		for range 3 {
			deliver(3)
		}
		for _, step := range []struct {
			id     rowfeed.ConsumerID
			shards int
		}{
			{rowfeed.ConsumerID{Consumer: "test", Feed: "kv"}, 7},
			{rowfeed.ConsumerID{Consumer: "test"}, 1},
			{rowfeed.ConsumerID{Consumer: "test", Feed: "kv"}, 5},
			{rowfeed.ConsumerID{Consumer: "test", Feed: "kv"}, 3},
		} {
			if _, err := x.rf.DropConsumer(x.ctx, step.id); err != nil {
				x.Fatal(err)
			}
			deliver(step.shards)
		}
	})
}
