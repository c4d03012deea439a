package conformance

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	relays "github.com/rowfeed/rowfeed/cmd/relay"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// standbys collects what an instance in a process of its own says of its jobs, and how
// often it has looked at leases.
type standbys struct {
	looks atomic.Int64
	mu    sync.Mutex
	told  []rowfeed.JobEvent
}

func (s *standbys) of(kind rowfeed.JobEventKind) (all []rowfeed.JobEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.told {
		if e.Kind == kind {
			all = append(all, e)
		}
	}
	return all
}

func (x *env) standby() (*rowfeed.DB, *standbys) {
	x.Helper()
	s := &standbys{}
	rf, err := rowfeed.Open(x.ctx, x.db.OpenTapped(x.T, testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
		if ev.Kind == testdb.Query && strings.Contains(ev.SQL, "rowfeed_leases") {
			s.looks.Add(1)
		}
		return nil
	}}), x.dialect, &rowfeed.Config{Observer: &rowfeed.Observer{Job: func(e rowfeed.JobEvent) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.told = append(s.told, e)
	}}})
	if err != nil {
		x.Fatal(err)
	}
	return rf, s
}

// TestRelayOnceWaits (M56): whoever waits for what another instance has says so, once for each
// of its terms, and does not wait where it is paused.
func TestRelayOnceWaits(t *testing.T) {
	each(t, func(x *env) {
		f, l := x.addShards(64), x.sharing()
		x.insertIDs(idsOf(1, 1, 64, 0, 8)...)
		x.publish(f)
		rf, said := x.standby()
		end := func(ended chan error) error {
			x.Helper()
			deadline := time.NewTimer(patience())
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
			go func() { ended <- r.RunOnce(x.ctx) }()
			return ended
		}
		hold := func(lease string) *rowfeed.Term {
			x.Helper()
			term, err := x.rf.Lease(lease, time.Hour).TryAcquire(x.ctx)
			if err != nil {
				x.Fatal(err)
			}
			return term
		}

		term := hold(admin.JobLease(testGroup, relayShards, 1))
		ended := once("test", relayShards, nil)
		x.eventually("it says what it waits for", func() bool { return len(said.of(rowfeed.JobStandsBy)) > 0 })
		shard := 1
		if _, err := x.rf.Admin().PauseConsumer(x.ctx, rowfeed.ConsumerID{Consumer: "test", Feed: "kv", Shard: &shard}); err != nil {
			x.Fatal(err)
		}
		x.wantCode(end(ended), rowfeed.ConsumerPaused)
		if told := said.of(rowfeed.JobStandsBy); len(told) != 1 || told[0].Job != 1 || told[0].Jobs != relayShards || told[0].Owner != term.Owner() || told[0].Epoch != term.Epoch() {
			x.Errorf("said: %+v", told)
		}

		if err := end(once("alone", 1, nil)); err != nil {
			x.Fatal(err)
		}
		term = hold(relays.LeaseName("alone", "kv"))
		standing := make(chan relays.Event, 100)
		ended = once("alone", 1, func(e relays.Event) { standing <- e })
		if e := <-standing; e.Kind != relays.StandingBy || e.Owner != term.Owner() || e.Epoch != term.Epoch() {
			x.Errorf("said: %+v", e)
		}
		if _, err := x.rf.Admin().PauseConsumer(x.ctx, rowfeed.ConsumerID{Consumer: "alone", Feed: "kv"}); err != nil {
			x.Fatal(err)
		}
		x.wantCode(end(ended), rowfeed.ConsumerPaused)
		if len(standing) > 0 {
			x.Errorf("said again: %+v", <-standing)
		}
	})
}

// TestGroupBeyond (M53): a member beyond the number of jobs says that it stands by, once,
// however often it looks, and has its job when there is a seat.
func TestGroupBeyond(t *testing.T) {
	each(t, func(x *env) {
		rf, said := x.standby()
		seat, err := x.rf.Lease("standby/1/seat/0", time.Hour).TryAcquire(x.ctx)
		if err != nil {
			x.Fatal(err)
		}
		ctx, stop := context.WithCancel(x.ctx)
		defer stop()
		ended := make(chan error, 1)
		go func() {
			ended <- rf.Group("standby", 1, 400*time.Millisecond).Run(ctx, func(ctx context.Context, _ *rowfeed.Job) error {
				<-ctx.Done()
				return ctx.Err()
			})
		}()
		x.eventually("it looks again and again", func() bool { return said.looks.Load() > 5 })
		if told := said.of(rowfeed.JobStandsBy); len(told) != 1 || told[0].Job != -1 || told[0].Jobs != 1 {
			x.Errorf("said: %+v", told)
		}
		if err := seat.Release(x.ctx); err != nil {
			x.Fatal(err)
		}
		x.eventually("it has the job", func() bool { return len(said.of(rowfeed.JobBegun)) > 0 })
		stop()
		if err := <-ended; err != nil {
			x.Error(err)
		}
	})
}
