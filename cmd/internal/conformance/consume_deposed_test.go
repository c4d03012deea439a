package conformance

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	relays "github.com/rowfeed/rowfeed/cmd/relay"
	"github.com/rowfeed/rowfeed/cmd/sink"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestDeliveredOverReshard (H24): the feed is divided anew while one of two shards has
// a version of a key under way that is the other shard's by then. The other is refused, sets
// both back, and delivers nothing before that version has arrived.
func TestDeliveredOverReshard(t *testing.T) {
	each(t, func(x *env) {
		f, r := x.addShards(8), x.receiver()
		id := int64(1)
		for shardOfID(id, 8) >= 4 || shardOfID(id, 16) < 8 {
			id++
		}
		other := idsOf(1, 1, 8, 4, 8)[0] // gives the other shard a cursor that can be refused
		x.insertIDs(id, other)
		x.publish(f)
		waits := make(chan string, 100)
		rf := x.tappedDB(testdb.Hooks{}, &rowfeed.Config{Observer: &rowfeed.Observer{Trouble: func(e rowfeed.TroubleEvent) {
			if errors.Is(e.Err, rowfeed.LeaseTaken) {
				waits <- e.Err.Error()
			}
		}}})
		under, early, gate := make(chan struct{}), make(chan struct{}), make(chan struct{})
		first, next := sync.OnceFunc(func() { close(under); <-gate }), sync.OnceFunc(func() { close(early) })
		open := sync.OnceFunc(func() { close(gate) })
		var mu sync.Mutex
		var got []int64
		c := r.shardsOf(f, rf, 2)
		c.Handle, c.Lease = nil, stuckTTL
		c.OnRefused = func(context.Context, *sql.Tx, error) error { return nil }
		c.DeliverShard = func(shard int, _ int64) func(context.Context, []rowfeed.Entry) ([]rowfeed.Refusal, error) {
			return func(_ context.Context, batch []rowfeed.Entry) ([]rowfeed.Refusal, error) {
				if shard == 0 {
					first()
				}
				mu.Lock()
				defer mu.Unlock()
				for _, e := range batch {
					if k, _ := e.Key.Get("id"); k != id {
						continue
					}
					if shard == 1 {
						next()
					}
					v, _ := e.Row.Get("v")
					got = append(got, v.(int64))
				}
				return nil, nil
			}
		}
		ctx, stop := context.WithCancel(x.ctx)
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		end := sync.OnceValue(func() error { open(); stop(); return <-ended })
		x.Cleanup(func() { _ = end() })
		<-under
		x.eventually("the other shard is at the head", func() bool {
			return x.scalar("SELECT count(*) FROM rowfeed_cursors WHERE shard = 1 AND value = '2'") == 1
		})
		x.reshard(f, 16)
		x.exec("UPDATE kv SET v = v + 1")
		x.publish(f)
		select {
		case <-early:
			x.Fatal("the other shard delivers the key's next version before")
		case text := <-waits:
			if !strings.Contains(text, "still delivers") || !strings.Contains(text, "of a shard that was set back") || !strings.Contains(text, admin.JobLease(testGroup, 2, 0)) {
				x.Errorf("it waits: %s", text)
			}
		case <-time.After(patience()):
			x.Fatal("nobody waits")
		}
		open()
		x.eventually("the newest version is delivered", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(got) > 1 && got[len(got)-1] == 1
		})
		if err := end(); err != nil {
			x.Error(err)
		}
		if !slices.IsSorted(got) {
			x.Errorf("versions %v", got)
		}
		if len(waits) > 0 {
			x.Errorf("it is said again that somebody waits: %s", <-waits)
		}
	})
}

// TestEpochsOverReshard (M54, H24): the feed is divided anew, and data shards go from a
// shard of many terms to one of few. Their epochs grow all the same, whether the consumer is
// set back by a refusal or by an operator; one of a single shard is left its own.
func TestEpochsOverReshard(t *testing.T) {
	each(t, func(x *env) {
		f, s := x.addShards(8), &spy{env: x}
		x.fill(60)
		x.publish(f)
		highest := map[int]int64{}
		s.decide = func(e sink.Entry) sink.Result {
			if e.Epoch < highest[e.Shard] {
				x.Errorf("data shard %d: epoch %d after %d (generation %d)", e.Shard, e.Epoch, highest[e.Shard], e.Generation)
			}
			highest[e.Shard] = max(highest[e.Shard], e.Epoch)
			return sink.Accept()
		}
		once := func(name string, shards int, restart bool) {
			x.Helper()
			r := &relays.Relay{Name: name, Source: f, DB: x.rf, Sink: s, ShardCount: shards, Lease: time.Minute, Restart: restart}
			if err := r.RunOnce(x.ctx); err != nil {
				x.Fatal(err)
			}
		}
		// terms are begun and ended on a shard, and a page is delivered under the last.
		terms := func(shard int) {
			x.Helper()
			for range 5 {
				term, err := x.rf.Lease(admin.JobLease(testGroup, 2, shard), time.Minute).TryAcquire(x.ctx)
				if err != nil {
					x.Fatal(err)
				}
				if err := term.Release(x.ctx); err != nil {
					x.Fatal(err)
				}
			}
			x.exec("UPDATE kv SET v = v + 1")
			x.publish(f)
			once("test", 2, false)
		}
		once("test", 2, false)
		terms(1)
		x.reshard(f, 16) // data shards 4 to 7 are shard 0's now
		once("test", 2, true)
		if len(highest) != 16 {
			x.Fatalf("not all was delivered: %v", highest)
		}
		terms(0)
		x.reshard(f, 8) // and shard 1's again
		if n, err := x.rf.Admin().ResetConsumer(x.ctx, testConsumer); n != 2 || err != nil {
			x.Fatal(n, err)
		}
		once("test", 2, false)

		clear(highest)
		once("sole", 1, false)
		before := x.scalar("SELECT epoch FROM rowfeed_cursors WHERE consumer = 'sole'")
		if _, err := x.rf.Admin().ResetConsumer(x.ctx, rowfeed.ConsumerID{Consumer: "sole"}); err != nil {
			x.Fatal(err)
		}
		if after := x.scalar("SELECT epoch FROM rowfeed_cursors WHERE consumer = 'sole'"); before == 0 || after != before {
			x.Errorf("epoch %d after %d", after, before)
		}
	})
}
