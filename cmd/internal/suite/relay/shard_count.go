package relay

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	relays "github.com/rowfeed/rowfeed/cmd/relay"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestUnsetShardCountKeepsStored (M23): a consumer or relay without a shard count uses the stored one, or 1 if it is
// new. So forgetting the number changes nothing.
func TestUnsetShardCountKeepsStored(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddShards(64), x.Receiver()
		x.InsertKV(1, 41)
		x.Publish(f)
		shards := func(want int) {
			x.Helper()
			if at, count := x.Positions("test"); len(at) != want || count != want {
				x.Errorf("cursors at %d, of %d, want %d", at, count, want)
			}
		}
		r.Once(r.ShardsOf(f, x.RF, 0))
		shards(1)
		r.Once(r.ShardsOf(f, x.RF, 4))
		shards(4)
		x.InsertKV(41, 61)
		x.Publish(f)
		r.Once(r.ShardsOf(f, x.RF, 0))
		shards(4)
		if n := len(r.Applied()); n != 60 {
			x.Errorf("%d entries took effect, want 60", n)
		}
		whole := r.ShardsOf(f, x.RF, 0)
		whole.Options.OnComplete = func(context.Context, *sql.Tx) error { return nil }
		x.WantCode(whole.RunOnce(x.Ctx), rowfeed.InvalidRequest)
		held := &rowfeed.RelayConsumer{Consumer: *r.ShardsOf(f, x.RF, 0), Epoch: 1}
		x.WantCode(held.RunOnce(x.Ctx), rowfeed.InvalidRequest)
		l := newSharing(x)
		relay := &relays.Relay{Name: "test", Source: f, DB: x.RF, Sink: l, Wait: 50 * time.Millisecond}
		x.InsertKV(61, 81)
		x.Publish(f)
		if err := relay.RunOnce(x.Ctx); err != nil {
			x.Error(err)
		}
		shards(4)
		r.Once(r.ShardsOf(f, x.RF, 1))
		shards(1)
	})
}
