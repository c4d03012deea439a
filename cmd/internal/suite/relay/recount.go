package relay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	relays "github.com/rowfeed/rowfeed/cmd/relay"
	"github.com/rowfeed/rowfeed/cmd/sink"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// lingering is a receiver that keeps its first batch until open is closed.
type lingering struct {
	sink.Sink
	once sync.Once
	in   chan struct{} // closed when the receiver has the batch
	open chan struct{}
}

func newLingering(to sink.Sink) *lingering {
	return &lingering{Sink: to, in: make(chan struct{}), open: make(chan struct{})}
}

func (s *lingering) Deliver(ctx context.Context, batch []sink.Entry) []sink.Result {
	s.once.Do(func() {
		close(s.in)
		<-s.open
	})
	return s.Sink.Deliver(ctx, batch)
}

// startRelaying runs a relay in the background.
func startRelaying(x *suite.Env, f rowfeed.Source, rf *rowfeed.DB, to sink.Sink, count int) (ended chan error) {
	r := &relays.Relay{
		Name:       "test",
		Source:     f,
		DB:         rf,
		Sink:       to,
		ShardCount: count,
		Lease:      suite.GroupTTL,
		Wait:       50 * time.Millisecond,
	}
	ctx, cancel := context.WithCancel(x.Ctx)
	x.Cleanup(cancel)
	ended = make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	return ended
}

// TestOldInstanceKeepsNewShardCount (M22, H2): an instance sets the shard count of a relay when it starts, and not
// again. An instance that has stood by since, or has lost its lease and returns, does not undo a later change: both end
// with a conflict.
func TestOldInstanceKeepsNewShardCount(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, l := x.AddShards(64), newSharing(x)
		x.Fill(20)
		x.Publish(f)
		slow := newLingering(newSharing(x)) // its late deliveries have a lower epoch
		worker := startRelaying(x, f, x.RF, slow, 1)
		<-slow.in
		looks := make(chan struct{})
		look := sync.OnceFunc(func() { close(looks) })
		leases := testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if strings.Contains(ev.SQL, "rowfeed_leases") {
				look()
			}
			return nil
		}}
		standby := startRelaying(x, f, x.TappedDB(leases, nil), l, 1)
		<-looks
		later := startRelaying(x, f, suite.OpenEnv(x.T, x.DB, nil).RF, l, relayShards)
		x.Eventually("the later one has divided the cursors", func() bool {
			return x.Scalar("SELECT count(*) FROM rowfeed_cursors WHERE shard_count = 4") == relayShards
		})
		// The worker was paused until its lease expired.
		x.Exec("UPDATE rowfeed_leases SET expires_at = 1, epoch = epoch + 1 WHERE name = 'relay:kv:test'")
		close(slow.open)
		for name, ended := range map[string]chan error{"the worker": worker, "the instance that stood by": standby} {
			var err error
			x.Eventually(name+" ends", func() bool {
				select {
				case err = <-ended:
					return true
				case err := <-later:
					x.Fatalf("the later one ended: %v", err)
				default:
				}
				return false
			})
			if !errors.Is(err, rowfeed.Conflict) {
				x.Errorf("%s ended with %v", name, err)
			}
		}
		x.Exec("INSERT INTO kv VALUES (1000, 'k', 1)")
		x.Publish(f)
		x.Eventually("the later instance continues", func() bool {
			return l.has(21, x.Scalar("SELECT sum(v) FROM kv"))
		})
		if got := x.Scalar("SELECT count(*) FROM rowfeed_cursors WHERE shard_count = 4"); got != relayShards {
			x.Errorf("%d of the cursors are of 4 shards: %v", got, x.Cursors("test"))
		}
		select {
		case err := <-later:
			x.Errorf("the later one ended: %v", err)
		default:
		}
	})
}

// TestShardCountChangeWaitsForDelivery (H2): an instance that changes the shard count of a relay, up or down, delivers
// nothing before the former instance has finished its batch. No version of a key arrives after a newer one.
func TestShardCountChangeWaitsForDelivery(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f := x.AddShards(64)
		version := int64(0)
		change := func() {
			version++
			x.Exec("DELETE FROM kv", fmt.Sprintf("INSERT INTO kv VALUES (1, 'k', %d)", version))
			x.Publish(f)
		}
		var mu sync.Mutex
		var got []int64
		waits := make(chan string, 100)
		tells := &rowfeed.Observer{Trouble: func(e rowfeed.TroubleEvent) {
			if errors.Is(e.Err, rowfeed.LeaseTaken) {
				waits <- e.Err.Error()
			}
		}}
		rf, err := rowfeed.Open(x.Ctx, x.Pool, x.Dialect, &rowfeed.Config{Observer: tells})
		if err != nil {
			x.Fatal(err)
		}
		// start runs an instance whose batches wait at the gate, unless it is nil.
		start := func(count int, gate chan struct{}) (under chan struct{}, end func(), result func() error) {
			under = make(chan struct{})
			once := sync.OnceFunc(func() { close(under) })
			s := &spy{Env: x, before: func(batch []sink.Entry) {
				once()
				if gate != nil {
					<-gate
				}
				mu.Lock()
				defer mu.Unlock()
				for _, e := range batch {
					if v, ok := e.Row.Get("v"); ok {
						got = append(got, v.(int64))
					}
				}
			}}
			ctx, cancel := context.WithCancel(x.Ctx)
			ended := make(chan error, 1)
			r := &relays.Relay{Name: "test", Source: f, DB: rf, Sink: s, ShardCount: count, Wait: 50 * time.Millisecond}
			go func() { ended <- r.Run(ctx) }()
			result = sync.OnceValue(func() error { return <-ended })
			x.Cleanup(func() { cancel(); _ = result() })
			return under, cancel, result
		}
		for _, counts := range [][2]int{{1, 4}, {4, 8}, {8, 1}} {
			gate := make(chan struct{})
			open := sync.OnceFunc(func() { close(gate) })
			change()
			under, _, former := start(counts[0], gate)
			x.Cleanup(open) // runs before the cleanup that waits for the instance
			x.Eventually("the former instance has a batch under way", func() bool {
				select {
				case <-under:
					return true
				default:
					return false
				}
			})
			change()
			early, end, latter := start(counts[1], nil)
			x.Cleanup(open)
			select {
			case <-early:
				x.Fatalf("%v shards: no instance waits", counts)
			case text := <-waits:
				if !strings.Contains(text, "still delivers entries of a shard of the former shard count") {
					x.Errorf("%v shards: %s", counts, text)
				}
			case <-time.After(suite.Patience()):
				x.Fatalf("%v shards: no instance waits", counts)
			}
			open()
			x.Eventually("the newest version is delivered", func() bool {
				mu.Lock()
				defer mu.Unlock()
				return len(got) > 0 && got[len(got)-1] == version
			})
			x.WantCode(former(), rowfeed.Conflict)
			end()
			if err := latter(); err != nil {
				x.Error(err)
			}
			if !slices.IsSorted(got) {
				x.Errorf("%v shards: versions %v", counts, got)
			}
		}
	})
}
