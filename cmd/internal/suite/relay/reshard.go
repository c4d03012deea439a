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

// TestEpochsOverReshard (M54, H24): the feed is divided anew, and data shards go from a
// shard of many claims to one of few. Their epochs grow all the same, whether the consumer is
// set back by a refusal or by an operator; one of a single shard is left its own.
func TestEpochsOverReshard(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, s := x.AddShards(8), &spy{Env: x}
		x.Fill(60)
		x.Publish(f)
		highest := map[int]int64{}
		s.decide = func(e sink.Entry) sink.Result {
			if e.Epoch < highest[e.Shard] {
				x.Errorf("data shard %d: epoch %d after %d (generation %d)", e.Shard, e.Epoch, highest[e.Shard], e.Generation)
			}
			highest[e.Shard] = max(highest[e.Shard], e.Epoch)
			return sink.Accept()
		}
		once := func(name string, shards int, restart bool) {
			x.Helper()
			r := &relays.Relay{Name: name, Source: f, DB: x.RF, Sink: s, ShardCount: shards, Lease: time.Minute, Restart: restart}
			if err := r.RunOnce(x.Ctx); err != nil {
				x.Fatal(err)
			}
		}
		// claims are begun and ended on a shard, and a page is delivered under the last.
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
			once("test", 2, false)
		}
		once("test", 2, false)
		claims(1)
		x.Reshard(f, 16) // data shards 4 to 7 are shard 0's now
		once("test", 2, true)
		if len(highest) != 16 {
			x.Fatalf("not all was delivered: %v", highest)
		}
		claims(0)
		x.Reshard(f, 8) // and shard 1's again
		if n, err := x.RF.Admin().ResetConsumer(x.Ctx, suite.TestConsumer); n != 2 || err != nil {
			x.Fatal(n, err)
		}
		once("test", 2, false)

		clear(highest)
		once("sole", 1, false)
		before := x.Scalar("SELECT epoch FROM rowfeed_cursors WHERE consumer = 'sole'")
		if _, err := x.RF.Admin().ResetConsumer(x.Ctx, rowfeed.ConsumerID{Consumer: "sole"}); err != nil {
			x.Fatal(err)
		}
		if after := x.Scalar("SELECT epoch FROM rowfeed_cursors WHERE consumer = 'sole'"); before == 0 || after != before {
			x.Errorf("epoch %d after %d", after, before)
		}
	})
}
