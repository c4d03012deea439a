package conformance

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	relays "github.com/rowfeed/rowfeed/cmd/relay"
)

// TestShardCountAsItIs (M23): who says no number of shards takes the one that the consumer
// has, or one where that is new: nobody divides the cursors anew by having forgotten a
// number.
func TestShardCountAsItIs(t *testing.T) {
	each(t, func(x *env) {
		f, r := x.addShards(64), x.receiver()
		x.insertKV(1, 41)
		x.publish(f)
		shards := func(want int) {
			x.Helper()
			if at, count := x.positions("test"); len(at) != want || count != want {
				x.Errorf("cursors at %d, of %d, want %d", at, count, want)
			}
		}
		r.once(r.shardsOf(f, x.rf, 0))
		shards(1)
		r.once(r.shardsOf(f, x.rf, 4))
		shards(4)
		x.insertKV(41, 61)
		x.publish(f)
		r.once(r.shardsOf(f, x.rf, 0))
		shards(4)
		if n := len(r.applied()); n != 60 {
			x.Errorf("%d entries took effect, want 60", n)
		}
		whole := r.shardsOf(f, x.rf, 0)
		whole.OnComplete = func(context.Context, *sql.Tx) error { return nil }
		x.wantCode(whole.RunOnce(x.ctx), rowfeed.InvalidRequest)
		held := r.shardsOf(f, x.rf, 0)
		held.Epoch = 1
		x.wantCode(held.RunOnce(x.ctx), rowfeed.InvalidRequest)
		l := x.sharing()
		relay := &relays.Relay{Name: "test", Source: f, DB: x.rf, Sink: l, Wait: 50 * time.Millisecond}
		x.insertKV(61, 81)
		x.publish(f)
		if err := relay.RunOnce(x.ctx); err != nil {
			x.Error(err)
		}
		shards(4)
		r.once(r.shardsOf(f, x.rf, 1))
		shards(1)
	})
}
