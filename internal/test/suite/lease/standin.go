package lease

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

func init() {
	// The publisher has a lease that does not expire. If IN_TRANSACTION is set, it blocks in its first pass, after the
	// lock of the sequence.
	testdb.RegisterChild("stalling publisher", func() {
		var locked atomic.Bool
		hooks := testdb.Hooks{Before: func(ctx context.Context, ev testdb.TapEvent) error {
			switch {
			case os.Getenv("IN_TRANSACTION") == "" || !ev.InTx:
			case strings.Contains(ev.SQL, "SELECT value, version"):
				locked.Store(true)
			case locked.Load() && strings.Contains(ev.SQL, "changes_kv"):
				fmt.Println("in transaction")
				<-ctx.Done()
			}
			return nil
		}}
		ctx := context.Background()
		pool, err := testdb.OpenURL(os.Getenv("URL"), hooks)
		if err == nil {
			err = publishFor(ctx, pool)
		}
		fmt.Println(err)
		os.Exit(1)
	})
}

func publishFor(ctx context.Context, pool *sql.DB) error {
	d, err := suite.DialectOf(os.Getenv("URL"))
	if err != nil {
		return err
	}
	rf, err := rowfeed.Open(ctx, pool, d, &rowfeed.Config{PublisherLease: suite.Long})
	if err != nil {
		return err
	}
	f, err := rf.Feed(ctx, "kv")
	if err != nil {
		return err
	}
	return f.RunPublisher(ctx)
}

// stalls returns the events that say that a holder has stalled.
func (p *turnTaker) stalls() (stalls []rowfeed.LeaseEvent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.leases {
		if e.Stalled {
			stalls = append(stalls, e)
		}
	}
	return stalls
}

// TestStandbyPublishesWhatHolderLeaves (M51): the holder of the lease does nothing. A publisher that stands by
// publishes each change that waits, and reports the holder once.
func TestStandbyPublishesWhatHolderLeaves(t *testing.T) {
	t.Parallel()
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		idle := acquireLease(x, x.RF.Lease(admin.PublisherLease("kv"), suite.Long))
		standby := takeTurns(x, suite.Long)
		for i := 1; i <= 3; i++ {
			x.Exec(fmt.Sprintf("INSERT INTO kv (id, k, v) VALUES (%d, 'k', 0)", i))
			x.Eventually("the standby publishes", func() bool { return standby.published.Load() == int64(i) })
		}
		x.Eventually("the standby reports the holder", func() bool { return len(standby.stalls()) > 0 })
		standby.end()
		e := standby.stalls()
		if len(e) != 1 || e[0].Feed != "kv" || e[0].Owner != idle.Owner() || e[0].Epoch != idle.Epoch() || e[0].Mine {
			x.Errorf("the standby reports %+v", e)
		}
		if standby.told(true) != nil {
			x.Error("the standby has the lease")
		}
		x.WantSound(f)
	})
}

// TestStandbyLeavesWorkingHolderAlone (M52, M53): a change waits each time a publisher that stands by polls, but the
// holder has published since the poll before. The standby runs no pass until the holder stops publishing.
func TestStandbyLeavesWorkingHolderAlone(t *testing.T) {
	t.Parallel()
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		acquireLease(x, x.RF.Lease(admin.PublisherLease("kv"), suite.Long))
		x.Exec("INSERT INTO kv VALUES (0, 'k', 0)")
		var polls, passes atomic.Int64
		standby := x.Tapped(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			switch {
			case ev.InTx && strings.Contains(ev.SQL, "changes_kv"):
				passes.Add(1)
			case !ev.InTx && strings.HasPrefix(ev.SQL, "SELECT value FROM") && polls.Load() < 4:
				x.Publish(f)
				x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", polls.Add(1)))
				if n := passes.Load(); n > 0 {
					x.Errorf("the standby ran %d passes beside a holder that publishes", n)
				}
			}
			return nil
		}}, &rowfeed.Config{PublisherLease: suite.Long})
		ctx, stop := context.WithCancel(x.Ctx)
		ended := make(chan error, 1)
		go func() { ended <- standby.RunPublisher(ctx) }()
		x.Eventually("the standby publishes", func() bool { return polls.Load() == 4 && x.AllPublished() })
		stop()
		if err := <-ended; err != nil {
			x.Error(err)
		}
		x.WantSound(f)
	})
}

// TestStandbyWaitsForLongPass (M53): a pass of the holder takes longer than several polls of a publisher that stands
// by. The standby does not queue for the lock of the sequence, and publishes when the lock is free.
func TestStandbyWaitsForLongPass(t *testing.T) {
	t.Parallel()
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		acquireLease(x, x.RF.Lease(admin.PublisherLease("kv"), suite.Long))
		x.Exec("INSERT INTO kv VALUES (1, 'k', 0)")
		pass, err := x.DB.Admin().BeginTx(x.Ctx, nil)
		if err != nil {
			x.Fatal(err)
		}
		defer func() { _ = pass.Rollback() }()
		if _, err := pass.ExecContext(x.Ctx, "UPDATE rowfeed_sequences SET version = version"); err != nil {
			x.Fatal(err)
		}
		var polls, queued atomic.Int64
		standby := x.Tapped(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			switch {
			case !ev.InTx && strings.HasPrefix(ev.SQL, "SELECT value FROM"):
				polls.Add(1)
			case ev.InTx && strings.Contains(ev.SQL, "SELECT value, version"):
				queued.Add(1)
			}
			return nil
		}}, &rowfeed.Config{PublisherLease: suite.Long})
		ctx, stop := context.WithCancel(x.Ctx)
		ended := make(chan error, 1)
		go func() { ended <- standby.RunPublisher(ctx) }()
		x.Eventually("the standby has polled several times", func() bool { return polls.Load() == 4 })
		if n := queued.Load(); n > 0 {
			x.Errorf("the standby has queued %d times for the lock", n)
		}
		if err := pass.Rollback(); err != nil {
			x.Error(err)
		}
		x.Eventually("the standby publishes", x.AllPublished)
		stop()
		if err := <-ended; err != nil {
			x.Error(err)
		}
		x.WantSound(f)
	})
}

// TestStandbyPublishesForKilledHolder (M51): the holder's process is killed long before its claim ends.
func TestStandbyPublishesForKilledHolder(t *testing.T) {
	t.Parallel()
	suite.Each(t, func(x *suite.Env) {
		standInFor(x, "", func(holder *suite.Program) { holder.Kill() })
	})
}

// TestStandbyPublishesForStoppedHolder (M51): the holder's process is stopped with SIGSTOP between its transactions.
func TestStandbyPublishesForStoppedHolder(t *testing.T) {
	testdb.Quick(t)
	t.Parallel()
	suite.Each(t, func(x *suite.Env) {
		standInFor(x, "", func(holder *suite.Program) { suspend(x, holder) })
	})
}

// TestStandbyPublishesAfterStoppedTransaction (M51, H18): the holder's process is stopped with SIGSTOP in the
// transaction of a pass. The database ends the transaction, if it has a bound for that.
func TestStandbyPublishesAfterStoppedTransaction(t *testing.T) {
	testdb.Quick(t)
	t.Parallel()
	suite.Each(t, func(x *suite.Env) {
		if !x.Has.EndsIdle {
			return
		}
		standInFor(x, "1", func(holder *suite.Program) {
			x.Exec("INSERT INTO kv VALUES (1, 'k', 0)")
			x.WaitFor(holder, regexp.MustCompile("in transaction"))
			suspend(x, holder)
		})
	})
}

func suspend(x *suite.Env, p *suite.Program) {
	x.Helper()
	if err := syscall.Kill(p.PID(), syscall.SIGSTOP); err != nil {
		x.Fatal(err)
	}
}

// standInFor asserts that a standby publishes after the process that holds the lease has stalled.
func standInFor(x *suite.Env, inTransaction string, stall func(*suite.Program)) {
	x.Helper()
	f := x.AddKV()
	child := testdb.CrashChild(x.T, "stalling publisher", "URL="+x.DB.URL, "IN_TRANSACTION="+inTransaction)
	holder := &suite.Program{Child: child, Args: []string{"", "stalling publisher"}}
	x.Eventually("the process has the lease", func() bool {
		x.WantAlive(holder)
		status, err := f.Admin().Status(x.Ctx)
		return err == nil && status.Publisher != nil
	})
	standby := takeTurns(x, suite.Long)
	x.Eventually("the standby knows the holder", func() bool { return standby.told(false) != nil })
	stall(holder)
	x.Exec("INSERT INTO kv VALUES (2, 'k', 0)")
	x.Eventually("the standby publishes", x.AllPublished)
	x.Eventually("the standby reports the holder", func() bool { return len(standby.stalls()) > 0 })
	standby.end()
	if n := len(standby.stalls()); n != 1 {
		x.Errorf("the standby reports %d stalls", n)
	}
	x.WantSound(f)
}
