package lease

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// turnTaker is a publisher of the feed kv with a database pool of its own.
type turnTaker struct {
	*suite.Env
	feed      *rowfeed.Feed
	stop      context.CancelFunc
	ended     chan error
	cut       atomic.Bool  // no statement reaches the database any more
	asked     atomic.Int64 // statements about the feed's tables
	looks     atomic.Int64 // statements that read the lease outside transactions
	published atomic.Int64 // keys

	mu     sync.Mutex
	leases []rowfeed.LeaseEvent
}

func takeTurns(x *suite.Env, ttl time.Duration) *turnTaker {
	x.Helper()
	p := &turnTaker{Env: x, ended: make(chan error, 1)}
	pool := x.DB.OpenTapped(x.T, testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
		switch {
		case p.cut.Load():
			return testdb.ErrInjected
		case strings.Contains(ev.SQL, "changes_kv") || strings.Contains(ev.SQL, "rowfeed_sequences"):
			p.asked.Add(1)
		case strings.Contains(ev.SQL, "rowfeed_leases") && !ev.InTx:
			p.looks.Add(1)
		}
		return nil
	}})
	cfg := &rowfeed.Config{PublisherLease: ttl, IdlePoll: 5 * time.Millisecond, Observer: &rowfeed.Observer{
		Published: func(e rowfeed.PublishEvent) { p.published.Add(int64(e.Keys)) },
		Lease:     func(e rowfeed.LeaseEvent) { p.mu.Lock(); defer p.mu.Unlock(); p.leases = append(p.leases, e) },
	}}
	rf, err := rowfeed.Open(x.Ctx, pool, x.Dialect, cfg)
	if err != nil {
		x.Fatal(err)
	}
	if p.feed, err = rf.Feed(x.Ctx, "kv"); err != nil {
		x.Fatal(err)
	}
	p.asked.Store(0)
	ctx, stop := context.WithCancel(x.Ctx)
	p.stop = stop
	go func() { p.ended <- p.feed.RunPublisher(ctx) }()
	x.Cleanup(stop)
	return p
}

// end stops the publisher and waits for its end.
func (p *turnTaker) end() {
	p.Helper()
	p.stop()
	if err := <-p.ended; err != nil {
		p.Errorf("RunPublisher: %v", err)
	}
}

// told returns the last lease event with this Mine.
func (p *turnTaker) told(mine bool) *rowfeed.LeaseEvent {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(p.leases) - 1; i >= 0; i-- {
		if p.leases[i].Mine == mine {
			return &p.leases[i]
		}
	}
	return nil
}

// TestOnePublisherWorksAtATime (M52, M55, M58): of two publishers of a feed one works, and the other only asks whether
// the same changes wait for long. One-shot passes work all the same. The working publisher releases its lease when it
// ends, and the other one continues.
func TestOnePublisherWorksAtATime(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		first := takeTurns(x, suite.Long)
		x.Eventually("the first has the lease", func() bool { return first.told(true) != nil })
		second := takeTurns(x, suite.Long)
		x.Eventually("the second stands by", func() bool {
			return second.told(false) != nil && second.looks.Load() >= 2
		})
		if a, b := first.told(true), second.told(false); a.Owner != b.Owner || a.Epoch != b.Epoch ||
			b.Feed != "kv" || b.Name != "publish:kv" {
			x.Errorf("the first is told %+v, the second %+v", a, b)
		}
		for i := 1; i <= 5; i++ {
			x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", i))
			second.feed.Wake()
			x.Eventually("a publisher publishes", func() bool {
				return first.published.Load()+second.published.Load() == int64(i)
			})
		}
		status, err := f.Admin().Status(x.Ctx)
		if err != nil || status.Publisher == nil || status.Publisher.Owner != first.told(true).Owner {
			x.Errorf("status: %+v, %v", status.Publisher, err)
		}
		// A publisher without a lease, and one-shot passes.
		if _, err := second.feed.Publish(x.Ctx); err != nil {
			x.Error(err)
		}
		third := takeTurns(x, rowfeed.NoLease)
		x.Eventually("the third works", func() bool { return third.asked.Load() > 2 })
		third.end()
		if third.told(true) != nil || third.looks.Load() > 0 {
			x.Error("the third had a lease")
		}

		first.end()
		x.Exec("INSERT INTO kv VALUES (6, 'k', 0)")
		x.Eventually("the second continues", func() bool { return x.AllPublished() && second.told(true) != nil })
		if e := second.told(true); e.Epoch != first.told(true).Epoch+1 {
			x.Errorf("the second is told %+v", e)
		}
		second.end()
		if status, err := f.Admin().Status(x.Ctx); err != nil || status.Publisher != nil {
			x.Errorf("status after the end: %+v, %v", status.Publisher, err)
		}
		x.WantSound(f)
	})
}

// TestStandbyPublisherTakesOver (M51): the working publisher loses the database. The standby takes over when the claim
// has ended. The first one returns and stands by.
func TestStandbyPublisherTakesOver(t *testing.T) {
	t.Parallel()
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		first := takeTurns(x, 2*time.Second)
		x.Eventually("the first has the lease", func() bool { return first.told(true) != nil })
		second := takeTurns(x, 2*time.Second)
		x.Eventually("one publisher stands by", func() bool {
			return first.told(false) != nil || second.told(false) != nil
		})
		first.cut.Store(true)
		x.Exec("INSERT INTO kv VALUES (1, 'k', 0)")
		x.Eventually("the second publishes", func() bool {
			return second.published.Load() == 1 && second.told(true) != nil
		})
		first.cut.Store(false)
		x.Eventually("the first stands by behind the second", func() bool {
			e, mine := first.told(false), second.told(true)
			return e != nil && e.Owner == mine.Owner
		})
		x.Exec("INSERT INTO kv VALUES (2, 'k', 0)")
		x.Eventually("all is published", x.AllPublished)
		first.end()
		second.end()
		x.WantDrain(f, "", suite.KV(1, "k", 0), suite.KV(2, "k", 0))
		x.WantSound(f)
	})
}

// TestIdlePublisherRenewsOnly (M53, M55): a working publisher renews its lease after a third of the TTL. A standby
// reads the lease every five seconds, and polls for waiting changes every 800 ms. A synthetic clock runs through ten
// idle minutes.
func TestIdlePublisherRenewsOnly(t *testing.T) {
	testdb.SQLite.Require(t)
	x := suite.NewEnv(t, testdb.SQLite, nil)
	x.Migrate()
	x.AddKV()
	idle := func(t *testing.T) (leases, others int) {
		watching := false
		pool, err := testdb.OpenURL(x.DB.URL, testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			switch {
			case !watching || ev.SQL == "": // BEGIN and COMMIT are sent with their statement
			case strings.Contains(ev.SQL, "rowfeed_leases"):
				leases++
			default:
				others++
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		rf, err := rowfeed.Open(t.Context(), pool, x.Dialect, nil)
		if err != nil {
			t.Fatal(err)
		}
		f, err := rf.Feed(t.Context(), "kv")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		watching = true
		if err := f.RunPublisher(ctx); err != nil {
			t.Error(err)
		}
		return leases, others
	}
	synctest.Test(t, func(t *testing.T) {
		if leases, _ := idle(t); leases < 170 || leases > 190 {
			t.Errorf("the holder sent %d statements about its lease in ten minutes", leases)
		}
	})
	holder := acquireLease(x, x.RF.Lease(admin.PublisherLease("kv"), 24*time.Hour))
	synctest.Test(t, func(t *testing.T) {
		if leases, others := idle(t); leases < 90 || leases > 130 || others < 730 || others > 770 {
			t.Errorf("a standby read the lease %d times, and sent %d other statements in ten minutes", leases, others)
		}
	})
	if err := holder.Release(x.Ctx); err != nil {
		t.Error(err)
	}
}
