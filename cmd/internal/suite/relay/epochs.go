package relay

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	relays "github.com/rowfeed/rowfeed/cmd/relay"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestEpochsGrowAfterDrop (M54): a receiver refuses epochs below the highest that it has seen, and does not know
// whether a consumer was dropped, or how many shards it has. The first epochs after a drop are above all earlier ones.
func TestEpochsGrowAfterDrop(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, l := x.AddShards(64), newSharing(x)
		x.InsertIDs(suite.IDsOf(1, 1, 64, 0, 8)...)
		x.Publish(f)
		var lowest, highest int64
		deliver := func(shards int) {
			x.Helper()
			before := highest
			lowest = 0
			r := &relays.Relay{
				Name:       "test",
				Source:     f,
				DB:         x.RF,
				Sink:       l,
				ShardCount: shards,
				Lease:      time.Minute,
				Observe: func(e relays.Event) {
					if e.Kind != relays.Working {
						return
					}
					if lowest == 0 || e.Epoch < lowest {
						lowest = e.Epoch
					}
					highest = max(highest, e.Epoch)
				},
			}
			if err := r.RunOnce(x.Ctx); err != nil {
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
			if _, err := x.RF.Admin().DropConsumer(x.Ctx, step.id); err != nil {
				x.Fatal(err)
			}
			deliver(step.shards)
		}
	})
}

// TestClaimIsAboveEpochsOfCursors (M54): while an instance waits for a lease, the cursors are claimed under higher
// epochs that the lease does not have, as by instances of another shard count. The claim of the waiting instance is
// above them.
func TestClaimIsAboveEpochsOfCursors(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, l := x.AddShards(64), newSharing(x)
		x.InsertIDs(suite.IDsOf(1, 1, 64, 0, 8)...)
		x.Publish(f)
		for _, shards := range []int{1, relayShards} {
			name := relays.LeaseName("test", "kv")
			if shards > 1 {
				name = admin.JobLease(suite.TestGroup, shards, 0)
			}
			relay := func(rf *rowfeed.DB) *relays.Relay {
				return &relays.Relay{Name: "test", Source: f, DB: rf, Sink: l, ShardCount: shards, Lease: time.Minute}
			}
			if err := relay(x.RF).RunOnce(x.Ctx); err != nil {
				x.Fatal(err)
			}
			other, err := x.RF.Lease(name, time.Minute).TryAcquire(x.Ctx)
			if err != nil {
				x.Fatal(err)
			}
			looked := make(chan struct{})
			look := sync.OnceFunc(func() { close(looked) })
			rf := x.TappedDB(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
				if ev.Kind == testdb.Query && strings.Contains(ev.SQL, "rowfeed_leases") && suite.HasArg(ev, name) {
					look()
				}
				return nil
			}}, nil)
			ended := make(chan error, 1)
			go func() { ended <- relay(rf).RunOnce(x.Ctx) }()
			<-looked
			epoch := 1000 * int64(shards)
			x.Exec(fmt.Sprintf("UPDATE rowfeed_cursors SET epoch = %d", epoch))
			if err := other.Release(x.Ctx); err != nil {
				x.Fatal(err)
			}
			if err := <-ended; err != nil {
				x.Fatal(err)
			}
			if n := x.Scalar("SELECT MAX(epoch) FROM rowfeed_leases WHERE name = '" + name + "'"); n <= epoch {
				x.Errorf("%d shards: epoch %d after %d", shards, n, epoch)
			}
		}
	})
}

// TestOldLeasesAreListedOnlyIfHeld (M72): leases of shards that a consumer had before are listed with the current ones
// only if an instance holds them.
func TestOldLeasesAreListedOnlyIfHeld(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, l := x.AddShards(64), newSharing(x)
		x.InsertIDs(suite.IDsOf(1, 1, 64, 0, 8)...)
		x.Publish(f)
		if _, err := x.RF.Lease("ours", time.Minute).TryAcquire(x.Ctx); err != nil {
			x.Fatal(err)
		}
		names := func(list func(context.Context) ([]*rowfeed.LeaseStatus, error)) (names []string) {
			x.Helper()
			all, err := list(x.Ctx)
			if err != nil {
				x.Fatal(err)
			}
			for _, s := range all {
				names = append(names, s.Name)
			}
			return names
		}
		want := func(want ...string) {
			x.Helper()
			if got := names(x.RF.Admin().CurrentLeases); !slices.Equal(got, want) {
				x.Errorf("leases %q, want %q", got, want)
			}
		}
		for _, shards := range []int{3, 2} {
			r := &relays.Relay{Name: "test", Source: f, DB: x.RF, Sink: l, ShardCount: shards, Lease: time.Minute}
			if err := r.RunOnce(x.Ctx); err != nil {
				x.Fatal(err)
			}
		}
		job := func(shards, n int) string { return admin.JobLease(suite.TestGroup, shards, n) }
		want(job(2, 0), job(2, 1), "ours")
		former, err := x.RF.Lease(job(3, 2), time.Minute).TryAcquire(x.Ctx)
		if err != nil {
			x.Fatal(err)
		}
		want(job(2, 0), job(2, 1), job(3, 2), "ours")
		if err := former.Release(x.Ctx); err != nil {
			x.Fatal(err)
		}
		if _, err := x.RF.Admin().DropConsumer(x.Ctx, suite.TestConsumer); err != nil {
			x.Fatal(err)
		}
		want("ours")
		if got := names(x.RF.Admin().Leases); len(got) != 3+2+1+1 { // one keeps the epochs of the dropped consumer
			x.Errorf("all leases: %q", got)
		}
	})
}
