package lease

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// stranger opens rowfeed with a database pool of its own, as another process does.
func stranger(x *suite.Env, h testdb.Hooks, params ...string) *rowfeed.DB {
	x.Helper()
	rf, err := rowfeed.Open(x.Ctx, x.DB.OpenTapped(x.T, h, params...), x.Dialect, nil)
	if err != nil {
		x.Fatal(err)
	}
	return rf
}

func acquireLease(x *suite.Env, l *rowfeed.Lease) *rowfeed.Claim {
	x.Helper()
	c, err := l.TryAcquire(x.Ctx)
	if err != nil {
		x.Fatal(err)
	}
	return c
}

func wantTaken(x *suite.Env, l *rowfeed.Lease) {
	x.Helper()
	c, err := l.TryAcquire(x.Ctx)
	if c != nil || !suite.IsCode(err, rowfeed.LeaseTaken) {
		x.Fatalf("acquired %v, %v; want %s", c, err, rowfeed.LeaseTaken)
	}
}

// job returns the status of the lease "job".
func job(x *suite.Env) *rowfeed.LeaseStatus {
	x.Helper()
	all, err := x.RF.Admin().Leases(x.Ctx)
	if err != nil {
		x.Fatal(err)
	}
	for _, l := range all {
		if l.Name == "job" {
			return l
		}
	}
	return nil
}

// leapClock does to leases what a leap of the database's clock would do: it moves their expiry the other way.
func leapClock(x *suite.Env, d time.Duration) {
	x.Helper()
	x.Exec(fmt.Sprintf("UPDATE rowfeed_leases SET expires_at = expires_at - %d", d.Microseconds()))
}

// assertClaim calls Assert in a transaction, and ends the transaction.
func assertClaim(x *suite.Env, c *rowfeed.Claim) error {
	x.Helper()
	tx := x.Begin(sql.LevelReadCommitted)
	err := c.Assert(x.Ctx, rowfeed.InTx(tx))
	if err == nil {
		x.Commit(tx)
	}
	tx.Rollback()
	return err
}

// wantOver asserts that an ended claim is refused, and does not change the lease.
func wantOver(x *suite.Env, c *rowfeed.Claim) {
	x.Helper()
	before := job(x)
	x.WantCode(assertClaim(x, c), rowfeed.LeaseLost)
	x.WantCode(c.Renew(x.Ctx), rowfeed.LeaseLost)
	x.WantCode(c.Release(x.Ctx), rowfeed.LeaseLost)
	if c.Context().Err() == nil {
		x.Error("a claim is over, and its context does not tell")
	}
	after := job(x)
	if before.State != after.State || before.Owner != after.Owner || before.Epoch != after.Epoch ||
		before.Renewals != after.Renewals {
		x.Errorf("a claim that is over changed the lease from %+v to %+v", before, after)
	}
}

// TestOneHolderAtATime (M48, M49, M52, M58): a lease exists as soon as the tables exist. A second process is told who
// holds it. After the release the next process gets it at once, with a higher epoch. Leases of other names are
// independent.
func TestOneHolderAtATime(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		if job(x) != nil {
			x.Error("there is a lease before the first acquire")
		}
		other := stranger(x, testdb.Hooks{})
		first := acquireLease(x, x.RF.Lease("job", suite.Long))
		if first.Epoch() != 1 || first.Context().Err() != nil {
			x.Errorf("epoch %d, context %v", first.Epoch(), first.Context().Err())
		}
		if s := job(x); s.State != rowfeed.LeaseHeld || s.Owner != first.Owner() || s.Epoch != 1 ||
			s.ExpiresInSeconds <= 0 || s.ExpiresInSeconds > suite.Long.Seconds() {
			x.Errorf("status %+v", s)
		}
		for _, l := range []*rowfeed.Lease{other.Lease("job", suite.Long), x.RF.Lease("job", suite.Long)} {
			_, err := l.TryAcquire(x.Ctx)
			if !suite.IsCode(err, rowfeed.LeaseTaken) || !strings.Contains(err.Error(), first.Owner()) {
				x.Errorf("the second one is told %v", err)
			}
		}
		acquireLease(x, other.Lease("job2", suite.Long))
		if err := assertClaim(x, first); err != nil {
			x.Errorf("assert: %v", err)
		}
		if err := first.Renew(x.Ctx); err != nil {
			x.Errorf("renew: %v", err)
		}
		if err := first.Release(x.Ctx); err != nil {
			x.Errorf("release: %v", err)
		}
		x.WantCode(context.Cause(first.Context()), rowfeed.LeaseLost)
		if s := job(x); s.State != rowfeed.LeaseFree || s.Owner != "" || s.Epoch != 1 {
			x.Errorf("status after the release: %+v", s)
		}
		second := acquireLease(x, other.Lease("job", suite.Long))
		if second.Epoch() != 2 {
			x.Errorf("the second epoch is %d", second.Epoch())
		}
		wantOver(x, first)
		if err := assertClaim(x, second); err != nil {
			x.Errorf("the second claim: %v", err)
		}
		for _, bad := range []*rowfeed.Lease{
			x.RF.Lease("", suite.Long), x.RF.Lease("a b", suite.Long), x.RF.Lease("ü", suite.Long),
			x.RF.Lease(strings.Repeat("n", 101), suite.Long), x.RF.Lease("job", 0),
		} {
			_, err := bad.TryAcquire(x.Ctx)
			x.WantCode(err, rowfeed.InvalidRequest)
		}
	})
}

// TestLeaseRowWithoutExpiryIsFree (M49, H27): a row without an expiry is free, whichever program has written it.
func TestLeaseRowWithoutExpiryIsFree(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.Exec("INSERT INTO rowfeed_leases (name, owner, epoch, expires_at, acquired_at, renewals) " +
			"VALUES ('job', 'other', 7, NULL, 0, 0)")
		if claim := acquireLease(x, x.RF.Lease("job", suite.Long)); claim.Epoch() != 8 {
			x.Errorf("epoch %d, want 8", claim.Epoch())
		}
		wantTaken(x, x.RF.Lease("job", suite.Long))
	})
}

// TestStaleReadNeverAcquires (M50): between the read that finds the lease free and the statement that acquires it,
// another process acquires it, acquires and releases it, or the expiry moves. No process gets a lease that is held, or
// an epoch that was given before.
func TestStaleReadNeverAcquires(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		type outcome struct {
			claim *rowfeed.Claim
			err   error
		}
		late := func(between func()) outcome {
			held := testdb.Hold(func(ev testdb.TapEvent) bool { return ev.Kind == testdb.Begin })
			rf := stranger(x, testdb.Hooks{Before: held.Before})
			done := make(chan outcome, 1)
			go func() {
				claim, err := rf.Lease("job", suite.Long).TryAcquire(x.Ctx)
				done <- outcome{claim, err}
			}()
			<-held.Reached
			between()
			held.Release()
			return <-done
		}
		// The lease has no row yet, so both processes insert one.
		var won *rowfeed.Claim
		o := late(func() { won = acquireLease(x, x.RF.Lease("job", suite.Long)) })
		if !suite.IsCode(o.err, rowfeed.LeaseTaken) {
			x.Errorf("the first lease twice: %+v", o)
		}
		leapClock(x, 2*suite.Long)
		o = late(func() { won = acquireLease(x, x.RF.Lease("job", suite.Long)) })
		if !suite.IsCode(o.err, rowfeed.LeaseTaken) || won.Epoch() != 2 {
			x.Errorf("an expired lease twice: %+v, and epoch %d", o, won.Epoch())
		}
		if err := assertClaim(x, won); err != nil {
			x.Errorf("the first process lost it: %v", err)
		}
		leapClock(x, 2*suite.Long)
		o = late(func() {
			if err := acquireLease(x, x.RF.Lease("job", suite.Long)).Release(x.Ctx); err != nil {
				x.Error(err)
			}
		})
		if o.err != nil || o.claim.Epoch() != 4 {
			x.Errorf("taken and released in between: %+v", o)
		}
		leapClock(x, 2*suite.Long)
		o = late(func() { leapClock(x, -2*suite.Long) })
		if !suite.IsCode(o.err, rowfeed.LeaseTaken) {
			x.Errorf("the end moved away in between: %+v", o)
		}
	})
}

// TestClaimNeedsOwnerAndEpoch (H3, H27): each acquire has a new owner and the next epoch, even in one process, and a
// claim is valid only if both are its own. The same epoch can be given again after a failover that lost commits, and
// other programs may use host names as owners.
func TestClaimNeedsOwnerAndEpoch(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		lease := x.RF.Lease("job", suite.Long)
		zombie := acquireLease(x, lease)
		leapClock(x, 2*suite.Long)
		again := acquireLease(x, lease)
		if again.Owner() == zombie.Owner() || again.Epoch() != zombie.Epoch()+1 {
			x.Errorf("the same process acquired the lease as %s, epoch %d, and then as %s, epoch %d",
				zombie.Owner(), zombie.Epoch(), again.Owner(), again.Epoch())
		}
		wantOver(x, zombie)
		if err := assertClaim(x, again); err != nil {
			x.Errorf("the second claim: %v", err)
		}
		// A failover loses the commit of epoch 2, and another process gets 2.
		x.Exec("UPDATE rowfeed_leases SET owner = 'other'")
		wantOver(x, again)
		// The same owner has the next epoch.
		leapClock(x, 2*suite.Long)
		third := acquireLease(x, lease)
		x.Exec("UPDATE rowfeed_leases SET epoch = epoch + 1")
		wantOver(x, third)
	})
}

// TestRenewalWithoutChangeCounts (H27): a renewal that leaves the expiry unchanged, because the clock has not moved,
// counts all the same. Some databases count only the rows that have changed.
func TestRenewalWithoutChangeCounts(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		rf := x.RF
		if x.Has.SessionClock {
			now := x.Scalar(x.Text("lease.now_in_seconds"))
			rf = stranger(x, testdb.Hooks{}, x.Text("lease.stopped_clock", now))
		}
		claim := acquireLease(x, rf.Lease("job", suite.Long))
		for range 5 {
			if err := claim.Renew(x.Ctx); err != nil {
				x.Fatal(err)
			}
		}
		if s := job(x); s.Renewals != 5 {
			x.Errorf("%d renewals, want 5", s.Renewals)
		}
	})
}

// TestContendersGetDistinctEpochs (M49, M50): of many contenders exactly one has each claim, whatever the server's
// default isolation level is.
func TestContendersGetDistinctEpochs(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		levels := []string{"default"}
		if e.HasServer() {
			levels = []string{"read-committed", "repeatable-read", "serializable"}
		}
		for _, level := range levels {
			t.Run(level, func(t *testing.T) {
				x := suite.NewEnv(t, e, nil)
				x.Migrate()
				var params []string
				switch {
				case x.Has.DatabaseSettings:
					x.Exec(x.Text("lease.default_isolation", x.DB.Name, strings.ReplaceAll(level, "-", " ")))
				case !x.Has.OneWriter:
					params = []string{x.Text("lease.isolation", strings.ToUpper(level))}
				}
				contend(x, params)
			})
		}
	})
}

func contend(x *suite.Env, params []string) {
	const contenders, rounds = 6, 15
	var mu sync.Mutex
	holders := map[int64]string{} // by epoch
	inside := 0
	var group sync.WaitGroup
	for range contenders {
		lease := stranger(x, testdb.Hooks{}, params...).Lease("job", suite.Long)
		lease.LookEvery = time.Millisecond
		group.Go(func() {
			for range rounds {
				claim, err := lease.Acquire(x.Ctx)
				if err != nil {
					x.Errorf("acquire: %v", err)
					return
				}
				mu.Lock()
				inside++
				if other, twice := holders[claim.Epoch()]; twice || inside != 1 {
					x.Errorf("epoch %d: %d holders at once, %s and %s", claim.Epoch(), inside, claim.Owner(), other)
				}
				holders[claim.Epoch()] = claim.Owner()
				mu.Unlock()
				if err := assertClaim(x, claim); err != nil {
					x.Errorf("assert: %v", err)
				}
				mu.Lock()
				inside--
				mu.Unlock()
				if err := claim.Release(x.Ctx); err != nil {
					x.Errorf("release: %v", err)
				}
			}
		})
	}
	group.Wait()
	if s := job(x); s.State != rowfeed.LeaseFree || s.Epoch != contenders*rounds || len(holders) != contenders*rounds {
		x.Errorf("%d claims for %d acquires; %+v", len(holders), contenders*rounds, s)
	}
}

// TestWaiterPollsWithOneStatement (M53): a process that waits for a lease polls with one statement, outside any
// transaction, at pauses that grow to LookEvery. A synthetic clock measures them.
func TestWaiterPollsWithOneStatement(t *testing.T) {
	testdb.SQLite.Require(t)
	x := suite.NewEnv(t, testdb.SQLite, nil)
	x.Migrate()
	holder := acquireLease(x, x.RF.Lease("job", 24*time.Hour))
	synctest.Test(t, func(t *testing.T) {
		var looks []time.Time
		pool, err := testdb.OpenURL(x.DB.URL, testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if ev.InTx || ev.Kind != testdb.Query {
				t.Errorf("while it waits: %s %s", ev.Kind, ev.SQL)
			}
			looks = append(looks, time.Now())
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
		looks = nil
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		if _, err := rf.Lease("job", suite.Long).Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("acquired: %v", err)
		}
		if n := len(looks); n < 10*60/7 || n > 10*60/5+6 {
			t.Errorf("%d looks in ten minutes", n)
		}
		pauses := map[time.Duration]bool{}
		for i := 1; i < len(looks); i++ {
			d := looks[i].Sub(looks[i-1])
			pauses[d] = true
			if least := 5 * time.Second / 16 << min(i-1, 4); d < least || d > least+least/4+20*time.Millisecond {
				t.Errorf("pause %d is %s", i, d)
			}
		}
		if len(pauses) < len(looks)/2 {
			t.Errorf("%d pauses of %d lengths: no jitter", len(looks)-1, len(pauses))
		}
	})
	if err := holder.Release(x.Ctx); err != nil {
		t.Error(err)
	}
}
