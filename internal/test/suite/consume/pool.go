package consume

import (
	"context"
	"database/sql"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestHangingHandlersKeepLeases (M24): handlers of as many shards as the pool has room for hang. They leave connections
// for the leases, so none is lost. The other shards wait with a page, and an instance that joins with its own pool gets
// its share and works.
func TestHangingHandlersKeepLeases(t *testing.T) {
	t.Parallel()
	testdb.Only(t, testdb.Postgres15, testdb.MariaDB) // SQLite's writers have one lock
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		// A machine that stalls for the TTL also loses leases, but not each time.
		for try := 1; ; try++ {
			x := suite.NewEnv(t, e, nil)
			x.Migrate()
			lost := hangingHandlers(x)
			if lost == 0 {
				return
			}
			if try == 4 {
				t.Fatalf("%d shards were lost", lost)
			}
		}
	})
}

// hangingHandlers returns how many leases an instance has lost while its handlers hang.
func hangingHandlers(x *suite.Env) int64 {
	x.Helper()
	f, r := x.AddShards(64), x.Receiver()
	pool := x.DB.OpenTapped(x.T, testdb.Hooks{})
	pool.SetMaxOpenConns(4)
	m := newTeammate(r, f, consumerShards)
	rf, err := rowfeed.Open(x.Ctx, pool, x.Dialect, &rowfeed.Config{Observer: m.observer()})
	if err != nil {
		x.Fatal(err)
	}
	m.rf = rf
	m.c.DB, m.c.Options.Lease = m.rf, 5*time.Second
	done := make(chan struct{})
	var hanging atomic.Int64
	handle := m.c.Handle
	m.c.Handle = func(ctx context.Context, tx *sql.Tx, entries []rowfeed.Entry) error {
		hanging.Add(1)
		defer hanging.Add(-1)
		select {
		case <-done:
		case <-ctx.Done():
		}
		return handle(ctx, tx, entries)
	}
	m.start()
	was := x.AwaitBalance(suite.TestGroup, consumerShards, 1, suite.Standing{})
	for shard := range consumerShards {
		x.InsertIDs(suite.IDsOf(1, 1, 64, shard*8, shard*8+8)...)
	}
	x.Publish(f)
	// steady waits for a condition, and asserts that two handlers hang then, unless a lease was lost.
	steady := func(what string, ok func() bool) {
		x.Helper()
		x.Eventually(what, func() bool { return m.lost.Load() > 0 || ok() })
		if n := hanging.Load(); n != 2 {
			x.Logf("%d handlers hang", n)
			x.Eventually("two handlers hang, or a lease was lost", func() bool {
				return m.lost.Load() > 0 || hanging.Load() == 2
			})
		}
	}
	x.Eventually("two handlers hang", func() bool { return hanging.Load() == 2 })
	steady("more than the TTL passes", func() bool {
		return x.Standing(suite.TestGroup, consumerShards).Beats(was) >= 5
	})
	if s := x.Standing(suite.TestGroup, consumerShards); s.TakeOver != was.TakeOver && m.lost.Load() == 0 {
		x.Errorf("epochs %v were %v, and no shard was lost", s.Epochs, was.Epochs)
	}
	n := newTeammate(r, f, consumerShards)
	n.c.Options.Lease = m.c.Options.Lease
	n.start()
	steady("the new instance has its share", func() bool {
		return x.Standing(suite.TestGroup, consumerShards).Balanced(consumerShards, 2)
	})
	steady("the new instance works on it", func() bool {
		return x.Scalar("SELECT count(*) FROM applied") == consumerShards/2
	})
	lost := m.lost.Load()
	close(done)
	x.Eventually("all is committed", func() bool { return x.Scalar("SELECT count(*) FROM applied") == consumerShards })
	m.end()
	n.end()
	return lost
}
