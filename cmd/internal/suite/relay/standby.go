package relay

import (
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	relays "github.com/rowfeed/rowfeed/cmd/relay"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestWaitingInstanceReportsHolder (M56): an instance that waits for the lease of another instance reports it, once for
// each claim of that one, and does not wait if the relay is paused.
func TestWaitingInstanceReportsHolder(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, l := x.AddShards(64), newSharing(x)
		x.InsertIDs(suite.IDsOf(1, 1, 64, 0, 8)...)
		x.Publish(f)
		rf, said := x.Standby()
		end := func(ended chan error) error {
			x.Helper()
			deadline := time.NewTimer(suite.Patience())
			defer deadline.Stop()
			select {
			case err := <-ended:
				return err
			case <-deadline.C:
				x.Fatal("it waits for what is paused")
				return nil
			}
		}
		once := func(name string, shards int, observe func(relays.Event)) chan error {
			ended := make(chan error, 1)
			r := &relays.Relay{Name: name, Source: f, DB: rf, Sink: l, ShardCount: shards, Observe: observe}
			go func() { ended <- r.RunOnce(x.Ctx) }()
			return ended
		}
		hold := func(lease string) *rowfeed.Claim {
			x.Helper()
			claim, err := x.RF.Lease(lease, time.Hour).TryAcquire(x.Ctx)
			if err != nil {
				x.Fatal(err)
			}
			return claim
		}

		claim := hold(admin.JobLease(suite.TestGroup, relayShards, 1))
		ended := once("test", relayShards, nil)
		x.Eventually("it says what it waits for", func() bool { return len(said.Of(rowfeed.JobStandsBy)) > 0 })
		shard := 1
		id := rowfeed.ConsumerID{Consumer: "test", Feed: "kv", Shard: &shard}
		if _, err := x.RF.Admin().PauseConsumer(x.Ctx, id); err != nil {
			x.Fatal(err)
		}
		x.WantCode(end(ended), rowfeed.ConsumerPaused)
		if told := said.Of(rowfeed.JobStandsBy); len(told) != 1 || told[0].Job != 1 || told[0].Jobs != relayShards ||
			told[0].Owner != claim.Owner() || told[0].Epoch != claim.Epoch() {
			x.Errorf("said: %+v", told)
		}

		if err := end(once("alone", 1, nil)); err != nil {
			x.Fatal(err)
		}
		claim = hold(relays.LeaseName("alone", "kv"))
		standing := make(chan relays.Event, 100)
		ended = once("alone", 1, func(e relays.Event) { standing <- e })
		if e := <-standing; e.Kind != relays.StandingBy || e.Owner != claim.Owner() || e.Epoch != claim.Epoch() {
			x.Errorf("said: %+v", e)
		}
		if _, err := x.RF.Admin().PauseConsumer(x.Ctx, rowfeed.ConsumerID{Consumer: "alone", Feed: "kv"}); err != nil {
			x.Fatal(err)
		}
		x.WantCode(end(ended), rowfeed.ConsumerPaused)
		if len(standing) > 0 {
			x.Errorf("said again: %+v", <-standing)
		}
	})
}
