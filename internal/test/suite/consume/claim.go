package consume

import (
	"errors"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestLateClaimKeepsNewEpoch (H2): an instance claims its cursor while the number of shards changes. Its late claim
// does not write an epoch into the new shard's cursor.
func TestLateClaimKeepsNewEpoch(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddShards(64), x.Receiver()
		x.InsertKV(1, 21)
		x.Publish(f)
		r.Once(r.Consumer(f, x.RF))
		claim := testdb.Hold(func(ev testdb.TapEvent) bool {
			return ev.Kind == testdb.Exec && strings.Contains(ev.SQL, "SET epoch = ")
		})
		ended := make(chan error, 1)
		former := &rowfeed.RelayConsumer{
			Consumer: *r.Consumer(f, x.TappedDB(testdb.Hooks{Before: claim.Before}, nil)), Epoch: 1000,
		}
		go func() { ended <- former.RunOnce(x.Ctx) }()
		<-claim.Reached
		if x.Has.OneWriter {
			claim.Release() // it holds the only write lock
			<-ended
			return
		}
		r.Once(r.ShardsOf(f, x.RF, 4))
		claim.Release()
		if err := <-ended; !errors.Is(err, rowfeed.Conflict) {
			x.Errorf("the former instance ended with %v", err)
		}
		if epoch := x.Scalar("SELECT epoch FROM rowfeed_cursors WHERE shard = 0"); epoch != 0 {
			x.Errorf("epoch of shard 0 of 4: %d", epoch)
		}
	})
}
