package consume

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
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestReshardWaitsForDelivery (H24): the feed is resharded while one of two shards delivers a version of a key that
// belongs to the other shard afterwards. The other shard is refused, both restart, and nothing is delivered before that
// version has arrived.
func TestReshardWaitsForDelivery(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddShards(8), x.Receiver()
		id := int64(1)
		for suite.ShardOfID(id, 8) >= 4 || suite.ShardOfID(id, 16) < 8 {
			id++
		}
		other := suite.IDsOf(1, 1, 8, 4, 8)[0] // gives the other shard a cursor that can be refused
		x.InsertIDs(id, other)
		x.Publish(f)
		waits := make(chan string, 100)
		rf := x.TappedDB(testdb.Hooks{}, &rowfeed.Config{Observer: &rowfeed.Observer{
			Trouble: func(e rowfeed.TroubleEvent) {
				if errors.Is(e.Err, rowfeed.LeaseTaken) {
					waits <- e.Err.Error()
				}
			},
		}})
		under, early, gate := make(chan struct{}), make(chan struct{}), make(chan struct{})
		first, next := sync.OnceFunc(func() { close(under); <-gate }), sync.OnceFunc(func() { close(early) })
		open := sync.OnceFunc(func() { close(gate) })
		var mu sync.Mutex
		var got []int64
		c := &rowfeed.RelayConsumer{Consumer: *r.ShardsOf(f, rf, 2)}
		c.Handle, c.Options.Lease = nil, suite.StuckTTL
		c.Options.OnRefused = func(context.Context, *sql.Tx, error) error { return nil }
		c.DeliverShard = func(shard int, _ int64) deliver {
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
		ctx, stop := context.WithCancel(x.Ctx)
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		end := sync.OnceValue(func() error { open(); stop(); return <-ended })
		x.Cleanup(func() { _ = end() })
		<-under
		x.Eventually("the other shard is at the head", func() bool {
			return x.Scalar("SELECT count(*) FROM rowfeed_cursors WHERE shard = 1 AND value LIKE '2.%'") == 1
		})
		x.Reshard(f, 16)
		x.Exec("UPDATE kv SET v = v + 1")
		x.Publish(f)
		select {
		case <-early:
			x.Fatal("the other shard delivers the key's next version before")
		case text := <-waits:
			if !strings.Contains(text, "still delivers") || !strings.Contains(text, "of a shard that was set back") ||
				!strings.Contains(text, admin.JobLease(suite.TestGroup, 2, 0)) {
				x.Errorf("it waits: %s", text)
			}
		case <-time.After(suite.Patience()):
			x.Fatal("no shard waits")
		}
		open()
		x.Eventually("the newest version is delivered", func() bool {
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
			x.Errorf("the wait is reported again: %s", <-waits)
		}
	})
}
