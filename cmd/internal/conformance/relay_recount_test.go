package conformance

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
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// lingering is a receiver that keeps its first batch until open is closed.
type lingering struct {
	sink.Sink
	once sync.Once
	in   chan struct{} // closed when it has the batch
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

// relaying runs a relay in the background.
func (x *env) relaying(f rowfeed.Source, rf *rowfeed.DB, to sink.Sink, count int) (ended chan error) {
	r := &relays.Relay{Name: "test", Source: f, DB: rf, Sink: to, ShardCount: count, Lease: groupTTL, Wait: 50 * time.Millisecond}
	ctx, cancel := context.WithCancel(x.ctx)
	x.Cleanup(cancel)
	ended = make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	return ended
}

// TestRelayKeepsShardCount (M22, H2): an instance divides a relay's cursors when it is started,
// and not again. Neither one that has stood by since, nor one that has lost its lease and
// comes back, takes back what a later one has changed: both end with a conflict.
func TestRelayKeepsShardCount(t *testing.T) {
	each(t, func(x *env) {
		f, l := x.addShards(64), x.sharing()
		x.fill(20)
		x.publish(f)
		slow := newLingering(x.sharing()) // what it delivers late has a lower epoch
		worker := x.relaying(f, x.rf, slow, 1)
		<-slow.in
		looks := make(chan struct{})
		look := sync.OnceFunc(func() { close(looks) })
		standby := x.relaying(f, x.tappedDB(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if strings.Contains(ev.SQL, "rowfeed_leases") {
				look()
			}
			return nil
		}}, nil), l, 1)
		<-looks
		later := x.relaying(f, openEnv(x.T, x.db, nil).rf, l, relayShards)
		x.eventually("the later one has divided the cursors", func() bool {
			return x.scalar("SELECT count(*) FROM rowfeed_cursors WHERE shard_count = 4") == relayShards
		})
		x.exec("UPDATE rowfeed_leases SET expires_at = 1, epoch = epoch + 1 WHERE name = 'relay:kv:test'") // the worker was paused for long
		close(slow.open)
		for who, ended := range map[string]chan error{"the worker": worker, "the one that stood by": standby} {
			var err error
			x.eventually(who+" ends", func() bool {
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
				x.Errorf("%s ended with %v", who, err)
			}
		}
		x.exec("INSERT INTO kv VALUES (1000, 'k', 1)")
		x.publish(f)
		x.eventually("the later one goes on", func() bool { return l.has(21, x.scalar("SELECT sum(v) FROM kv")) })
		if got := x.scalar("SELECT count(*) FROM rowfeed_cursors WHERE shard_count = 4"); got != relayShards {
			x.Errorf("%d of the cursors are of 4 shards: %v", got, x.cursors("test"))
		}
		select {
		case err := <-later:
			x.Errorf("the later one ended: %v", err)
		default:
		}
	})
}

// TestDivisionWaits (H2): who divides a relay's shards anew delivers nothing before the former
// instance has brought to its end what it has under way, up and down: no version of a key
// comes after a newer one.
func TestDivisionWaits(t *testing.T) {
	each(t, func(x *env) {
		f := x.addShards(64)
		version := int64(0)
		change := func() {
			version++
			x.exec("DELETE FROM kv", fmt.Sprintf("INSERT INTO kv VALUES (1, 'k', %d)", version))
			x.publish(f)
		}
		var mu sync.Mutex
		var got []int64
		waits := make(chan string, 100)
		rf, err := rowfeed.Open(x.ctx, x.pool, x.dialect, &rowfeed.Config{Observer: &rowfeed.Observer{Trouble: func(e rowfeed.TroubleEvent) {
			if errors.Is(e.Err, rowfeed.LeaseTaken) {
				waits <- e.Err.Error()
			}
		}}})
		if err != nil {
			x.Fatal(err)
		}
		// start runs an instance whose batches wait at the gate, if there is one.
		start := func(count int, gate chan struct{}) (under chan struct{}, end func(), result func() error) {
			under = make(chan struct{})
			once := sync.OnceFunc(func() { close(under) })
			s := &spy{env: x, before: func(batch []sink.Entry) {
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
			ctx, cancel := context.WithCancel(x.ctx)
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
			x.Cleanup(open) // before it is waited for the instance
			x.eventually("the former instance has a batch under way", func() bool {
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
				x.Fatalf("%v shards: nobody waits", counts)
			case text := <-waits:
				if !strings.Contains(text, "still delivers entries of a shard of the former shard count") {
					x.Errorf("%v shards: %s", counts, text)
				}
			case <-time.After(patience()):
				x.Fatalf("%v shards: nobody waits", counts)
			}
			open()
			x.eventually("the newest version is delivered", func() bool {
				mu.Lock()
				defer mu.Unlock()
				return len(got) > 0 && got[len(got)-1] == version
			})
			x.wantCode(former(), rowfeed.Conflict)
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
