package relay

import (
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	relays "github.com/rowfeed/rowfeed/cmd/relay"
	"github.com/rowfeed/rowfeed/cmd/sink"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestEpochsGrowOverReshard (M54, H24): the feed is resharded, and data shards move from a shard with many claims to
// one with few. Their epochs grow all the same, whether the consumer goes on by itself or is set back by an operator. A
// consumer of one shard keeps its epoch.
func TestEpochsGrowOverReshard(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, s := x.AddShards(8), &spy{Env: x}
		x.Fill(60)
		x.Publish(f)
		highest := map[int]int64{}
		s.decide = func(e sink.Entry) sink.Result {
			if e.Epoch < highest[e.Shard] {
				x.Errorf("data shard %d: epoch %d after %d (generation %d)", e.Shard, e.Epoch, highest[e.Shard],
					e.Generation)
			}
			highest[e.Shard] = max(highest[e.Shard], e.Epoch)
			return sink.Accept()
		}
		once := func(name string, shards int) {
			x.Helper()
			r := &relays.Relay{
				Name:       name,
				Source:     f,
				DB:         x.RF,
				Sink:       s,
				ShardCount: shards,
				Lease:      time.Minute,
			}
			if err := r.RunOnce(x.Ctx); err != nil {
				x.Fatal(err)
			}
		}
		// Several claims of a shard begin and end, and a page is delivered under the last one.
		claims := func(shard int) {
			x.Helper()
			for range 5 {
				claim, err := x.RF.Lease(admin.JobLease(suite.TestGroup, 2, shard), time.Minute).TryAcquire(x.Ctx)
				if err != nil {
					x.Fatal(err)
				}
				if err := claim.Release(x.Ctx); err != nil {
					x.Fatal(err)
				}
			}
			x.Exec("UPDATE kv SET v = v + 1")
			x.Publish(f)
			once("test", 2)
		}
		once("test", 2)
		claims(1)
		x.Reshard(f, 16) // moves data shards 4 to 7 to shard 0
		x.Exec("UPDATE kv SET v = v + 1")
		x.Publish(f)
		once("test", 2)
		if len(highest) != 16 {
			x.Fatalf("not all was delivered: %v", highest)
		}
		claims(0)
		x.Reshard(f, 8) // moves them back to shard 1
		if n, err := x.RF.Admin().ResetConsumer(x.Ctx, suite.TestConsumer); n != 2 || err != nil {
			x.Fatal(n, err)
		}
		once("test", 2)

		clear(highest)
		once("sole", 1)
		before := x.Scalar("SELECT epoch FROM rowfeed_cursors WHERE consumer = 'sole'")
		if _, err := x.RF.Admin().ResetConsumer(x.Ctx, rowfeed.ConsumerID{Consumer: "sole"}); err != nil {
			x.Fatal(err)
		}
		if after := x.Scalar("SELECT epoch FROM rowfeed_cursors WHERE consumer = 'sole'"); before == 0 ||
			after != before {
			x.Errorf("epoch %d after %d", after, before)
		}
	})
}
