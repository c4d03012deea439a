package conformance

import (
	"errors"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestClaimOfFormerShard (H2): an instance that claims its cursor while the number of
// shards changes leaves the epoch of the new division's cursor alone.
func TestClaimOfFormerShard(t *testing.T) {
	each(t, func(x *env) {
		f, r := x.addShards(64), x.receiver()
		x.insertKV(1, 21)
		x.publish(f)
		r.once(r.consumer(f, x.rf))
		claim := testdb.Hold(func(ev testdb.TapEvent) bool {
			return ev.Kind == testdb.Exec && strings.Contains(ev.SQL, "SET epoch = ")
		})
		ended := make(chan error, 1)
		former := r.consumer(f, x.tappedDB(testdb.Hooks{Before: claim.Before}, nil))
		former.Epoch = 1000
		go func() { ended <- former.RunOnce(x.ctx) }()
		<-claim.Reached
		if x.family() == "sqlite" {
			claim.Release() // it has the only write lock
			<-ended
			return
		}
		r.once(r.shardsOf(f, x.rf, 4))
		claim.Release()
		if err := <-ended; !errors.Is(err, rowfeed.Conflict) {
			x.Errorf("the former instance ended with %v", err)
		}
		if epoch := x.scalar("SELECT epoch FROM rowfeed_cursors WHERE shard = 0"); epoch != 0 {
			x.Errorf("epoch of shard 0 of 4: %d", epoch)
		}
	})
}
