package relay

import (
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	relays "github.com/rowfeed/rowfeed/cmd/relay"
	"github.com/rowfeed/rowfeed/cmd/sink"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// shelf is a receiver of the feed events. It asserts that the epochs and positions of a shard never decrease, unless a
// lease was lost, which can happen on a slow machine. Receivers that cannot accept this refuse lower epochs.
type shelf struct {
	testing.TB
	lost   atomic.Int64
	doubts []string
	mu     sync.Mutex
	epochs map[int]int64
	last   map[int]string // position, by shard
	taken  map[string]int // deliveries, by idempotency key
}

func newShelf(t testing.TB) *shelf {
	return &shelf{TB: t, epochs: map[int]int64{}, last: map[int]string{}, taken: map[string]int{}}
}

func (s *shelf) Deliver(_ context.Context, batch []sink.Entry) []sink.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range batch {
		if e.Epoch < s.epochs[e.Shard] {
			s.doubts = append(s.doubts, fmt.Sprintf("shard %d: epoch %d after %d", e.Shard, e.Epoch, s.epochs[e.Shard]))
		}
		if s.taken[e.ID()] == 0 && e.Position <= s.last[e.Shard] {
			s.doubts = append(s.doubts, fmt.Sprintf("shard %d: %s after %s", e.Shard, e.Position, s.last[e.Shard]))
		}
		s.epochs[e.Shard], s.last[e.Shard] = max(s.epochs[e.Shard], e.Epoch), max(s.last[e.Shard], e.Position)
		s.taken[e.ID()]++
	}
	return sink.All(batch, sink.Accept())
}

func (s *shelf) Close() error { return nil }

func (s *shelf) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.taken)
}

// TestRelayDeliversULIDShardsInOrder (M56): a relay delivers every shard of a ULID feed in order, for any number of
// workers. Instances share the shards, and the epochs of a shard only grow.
func TestRelayDeliversULIDShardsInOrder(t *testing.T) {
	suite.EachKind(t, func(r *suite.Taker) {
		server := httptest.NewServer(feedhttp.NewHandler(feedhttp.Of(r.RF), nil))
		t.Cleanup(server.Close)
		s := newShelf(t)
		rf := r.TappedDB(testdb.Hooks{}, &rowfeed.Config{Observer: &rowfeed.Observer{Job: func(e rowfeed.JobEvent) {
			if e.Kind == rowfeed.JobLost {
				s.lost.Add(1)
			}
		}}})
		relay := func(source rowfeed.Source, n int, lease time.Duration) *relays.Relay {
			return &relays.Relay{Name: "test", Source: source, DB: rf, Sink: s, ShardCount: n, Lease: lease}
		}
		id := 0
		for i, n := range []int{1, 3, 2, 0, 1} {
			for _, shard := range []int{-5, 1, 2, 77 + i} {
				r.Add(shard, id+1, id+2)
				id += 2
			}
			before := map[int]int64{}
			for shard, epoch := range s.epochs {
				before[shard] = epoch
			}
			if err := relay(r.Feed, n, time.Minute).RunOnce(r.Ctx); err != nil {
				t.Fatal(err)
			}
			for shard, epoch := range before {
				if slices.Contains([]int{-5, 1, 2}, shard) && s.epochs[shard] <= epoch {
					t.Errorf("%d workers: shard %d is delivered under epoch %d again", n, shard, epoch)
				}
			}
			if s.size() != id {
				t.Fatalf("%d workers: %d of %d rows were delivered", n, s.size(), id)
			}
		}
		run := func(source rowfeed.Source) (stop func()) {
			ctx, cancel := context.WithCancel(r.Ctx)
			ended := make(chan error, 1)
			go func() { ended <- relay(source, 3, suite.GroupTTL).Run(ctx) }()
			return func() {
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
		}
		first := run(r.Feed)
		r.Eventually("one has all workers", func() bool { return r.Standing(suite.EventsGroup, 3).Balanced(3, 1) })
		second := run(&feedhttp.Client{URL: server.URL, Feed: "events"})
		r.Eventually("two share them", func() bool {
			id++
			r.Add(id%7, id, id)
			return r.Standing(suite.EventsGroup, 3).Balanced(3, 2)
		})
		first()
		r.Eventually("the other has all", func() bool {
			id++
			r.Add(id%7, id, id)
			return r.Standing(suite.EventsGroup, 3).Balanced(3, 1)
		})
		r.Eventually("everything is delivered", func() bool { return s.size() == id })
		second()
		for _, doubt := range s.doubts {
			if s.lost.Load() == 0 {
				t.Error(doubt)
			}
		}
	})
}

// TestMirrorFollowsAllULIDShards (M56, M57): a mirror of a ULID feed follows all shards with one worker, and has each
// row once. If its cursor is refused, the mirror ends, because it cannot know which rows the feed has lost.
func TestMirrorFollowsAllULIDShards(t *testing.T) {
	suite.EachKind(t, func(r *suite.Taker) {
		var columns []string
		for _, c := range r.Info(r.Feed).Columns {
			columns = append(columns, c.Name)
		}
		table := "relay.empty_copy"
		if slices.Contains(columns, "ulid") {
			table = "relay.empty_copy_with_ulid"
		}
		r.Exec(r.Statements(table)...)
		once := func() error {
			m := &relays.Relay{Name: "test", Source: r.Feed, Sink: mirrorSink(r.Events.Env, "mirrored"), Restart: true}
			return m.RunOnce(r.Ctx)
		}
		r.Add(-5, 1, 3)
		r.Add(77, 11, 12)
		if err := once(); err != nil {
			t.Fatal(err)
		}
		r.Add(3, 21, 22)
		if err := once(); err != nil {
			t.Fatal(err)
		}
		same := func() {
			t.Helper()
			of := func(table string) []string {
				return r.List(fmt.Sprintf("SELECT id, data FROM %s ORDER BY id", table))
			}
			if got, want := of("mirrored"), of("events"); !slices.Equal(got, want) {
				t.Fatalf("the mirror has %q, want %q", got, want)
			}
		}
		same()
		if _, err := r.Feed.Admin().Bump(r.Ctx); err != nil {
			t.Fatal(err)
		}
		r.WantCode(once(), rowfeed.GenerationChanged)
		same()
		r.Exec("DELETE FROM mirrored")
		if _, err := r.RF.Admin().ResetConsumer(r.Ctx, rowfeed.ConsumerID{Consumer: "test"}); err != nil {
			t.Fatal(err)
		}
		if err := once(); err != nil {
			t.Fatal(err)
		}
		same()
	})
}
