package lease

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// ending acquires a claim that is so short that it ends during the test.
func ending(x *suite.Env, rf *rowfeed.DB) (claim *rowfeed.Claim) {
	x.Helper()
	x.Eventually("a short claim begins before it ends", func() (ok bool) {
		var err error
		claim, err = rf.Lease("job", 150*time.Millisecond).TryAcquire(x.Ctx)
		if err != nil && !suite.IsCode(err, rowfeed.LeaseLost) && !suite.IsCode(err, rowfeed.LeaseTaken) {
			x.Fatal(err)
		}
		return err == nil
	})
	return claim
}

func awaitExpiry(x *suite.Env) {
	x.Helper()
	x.Eventually("the lease expires on the database's clock", func() bool {
		return job(x).State == rowfeed.LeaseExpired
	})
}

// TestWriteAfterClaimIsRefused (M54): the claim ends while a transaction of its holder is open. The holder's context
// ends by itself, and its write is refused at the end, although the transaction began in time and no other process has
// the lease.
func TestWriteAfterClaimIsRefused(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE effects (epoch BIGINT)")
		claim := ending(x, x.RF)
		tx := x.Begin(sql.LevelReadCommitted)
		x.In(tx, "INSERT INTO effects VALUES (1)")
		x.Eventually("the claim's context ends", func() bool { return claim.Context().Err() != nil })
		x.WantCode(context.Cause(claim.Context()), rowfeed.LeaseLost)
		if claim.Deadline().After(time.Now()) {
			x.Error("the context has ended before the deadline")
		}
		awaitExpiry(x)
		x.WantCode(claim.Assert(x.Ctx, rowfeed.InTx(tx)), rowfeed.LeaseLost)
		tx.Rollback()
		x.WantCode(claim.Renew(x.Ctx), rowfeed.LeaseLost)
		if s := job(x); s.State != rowfeed.LeaseExpired || s.Renewals != 0 {
			x.Errorf("a claim that was over: %+v", s)
		}
	})
}

// TestRenewalUsesTheDatabasesClock (M54): a renewal is refused after the end that the database knows, even if the
// holder still considers its claim valid.
func TestRenewalUsesTheDatabasesClock(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		claim := acquireLease(x, x.RF.Lease("job", suite.Long))
		leapClock(x, suite.Long)
		x.WantCode(claim.Renew(x.Ctx), rowfeed.LeaseLost)
		x.WantCode(context.Cause(claim.Context()), rowfeed.LeaseLost)
	})
}

// TestTakeoverWaitsForAssertedWrite (M54): between Assert and COMMIT no other process acquires the lease, although the
// claim may end meanwhile. So the next holder sees the effect of the former one.
func TestTakeoverWaitsForAssertedWrite(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE effects (epoch BIGINT)")
		var claim *rowfeed.Claim
		var tx *sql.Tx
		x.Eventually("a short claim is asserted before it ends", func() bool {
			claim = acquireSoon(x, x.RF.Lease("job", 400*time.Millisecond))
			tx = x.Begin(sql.LevelReadCommitted)
			x.In(tx, "INSERT INTO effects VALUES (1)")
			err := claim.Assert(x.Ctx, rowfeed.InTx(tx))
			if err != nil {
				x.WantCode(err, rowfeed.LeaseLost)
				tx.Rollback()
			}
			return err == nil
		})
		awaitExpiry(x)
		var committed, asks atomic.Bool
		early := make(chan bool, 1)
		other := stranger(x, testdb.Hooks{
			Before: func(_ context.Context, ev testdb.TapEvent) error {
				if ev.Kind == testdb.Begin || ev.Kind == testdb.Exec {
					asks.Store(true)
				}
				return nil
			},
			After: func(_ context.Context, ev testdb.TapEvent, err error) error {
				if ev.Kind == testdb.Exec && strings.Contains(ev.SQL, "rowfeed_leases") && err == nil {
					early <- !committed.Load()
				}
				return err
			},
		})
		type result struct {
			claim *rowfeed.Claim
			err   error
		}
		done := make(chan result, 1)
		go func() {
			claim, err := other.Lease("job", suite.Long).TryAcquire(x.Ctx)
			done <- result{claim, err}
		}()
		x.Eventually("the next holder waits", func() bool { return len(early) > 0 || asks.Load() && x.Waits() })
		committed.Store(true)
		x.Commit(tx)
		r := <-done
		if r.err != nil {
			x.Fatal(r.err)
		}
		if <-early {
			x.Error("the next holder did not wait for the COMMIT")
		}
		if n := x.Scalar("SELECT count(*) FROM effects"); n != 1 || r.claim.Epoch() != claim.Epoch()+1 {
			x.Errorf("%d effects, epoch %d", n, r.claim.Epoch())
		}
		wantOver(x, claim)
	})
}

// acquireSoon waits until it has acquired the lease.
func acquireSoon(x *suite.Env, l *rowfeed.Lease) *rowfeed.Claim {
	x.Helper()
	l.LookEvery = 20 * time.Millisecond
	c, err := l.Acquire(x.Ctx)
	if err != nil {
		x.Fatal(err)
	}
	return c
}

// TestUnknownCommitReadsTheRow (H27): a COMMIT fails before or after it took effect. Acquire, Renew and Release then
// answer what is in the row. If the read of the row fails, too, they return an error, and the claim in the row expires.
func TestUnknownCommitReadsTheRow(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		var failing atomic.Int64 // COMMITs to fail
		var effective atomic.Bool
		fail := func(ev testdb.TapEvent) error {
			if ev.Kind == testdb.Commit && failing.Add(-1) >= 0 {
				return testdb.ErrInjected
			}
			return nil
		}
		rf := stranger(x, testdb.Hooks{
			Before: func(_ context.Context, ev testdb.TapEvent) error {
				if effective.Load() {
					return nil
				}
				return fail(ev)
			},
			After: func(_ context.Context, ev testdb.TapEvent, err error) error {
				if !effective.Load() {
					return err
				}
				return errors.Join(err, fail(ev))
			},
		})
		lease := rf.Lease("job", suite.Long)
		held := func() bool { s := job(x); return s != nil && s.State == rowfeed.LeaseHeld }
		for _, took := range []bool{false, true} {
			effective.Store(took)
			failing.Store(1)
			claim, err := lease.TryAcquire(x.Ctx)
			failing.Store(0)
			if took != held() || took != (err == nil) {
				x.Errorf("COMMIT took effect: %v; acquired: %v, %v; the row: %+v", took, claim, err, job(x))
			}
			if !took {
				if !errors.Is(err, testdb.ErrInjected) {
					x.Errorf("error %v", err)
				}
				claim = acquireLease(x, lease)
			}
			if err := assertClaim(x, claim); err != nil {
				x.Errorf("assert: %v", err)
			}

			failing.Store(1)
			before := claim.Deadline()
			err = claim.Renew(x.Ctx)
			ended, moved := claim.Context().Err(), claim.Deadline().Sub(before)
			if !errors.Is(err, testdb.ErrInjected) || ended != nil || moved != 0 {
				x.Errorf("a renewal without an answer: %v, context %v, deadline moved by %s", err, ended, moved)
			}
			failing.Store(0)
			if err := claim.Renew(x.Ctx); err != nil {
				x.Errorf("the next renewal: %v", err)
			}

			failing.Store(1)
			if err := claim.Release(x.Ctx); err != nil {
				x.Errorf("release: %v", err)
			}
			failing.Store(0)
			if held() {
				x.Errorf("after the release: %+v", job(x))
			}
		}
		// The read of the row fails, too.
		effective.Store(true)
		failing.Store(2)
		epoch := job(x).Epoch
		if claim, err := lease.TryAcquire(x.Ctx); claim != nil || !errors.Is(err, testdb.ErrInjected) {
			x.Errorf("acquired %v, %v", claim, err)
		}
		failing.Store(0)
		wantTaken(x, lease)
		leapClock(x, 2*suite.Long)
		if claim := acquireLease(x, lease); claim.Epoch() != epoch+2 {
			x.Errorf("epoch %d after an epoch that no process has got, %d", claim.Epoch(), epoch+1)
		}
	})
}

// TestCancelledAcquireLeavesNoClaim (H27): when a caller cancels Acquire before the answer arrives, no claim is left
// that would have to expire before another process gets the lease.
func TestCancelledAcquireLeavesNoClaim(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		ctx, cancel := context.WithCancel(x.Ctx)
		rf := stranger(x, testdb.Hooks{After: func(_ context.Context, ev testdb.TapEvent, err error) error {
			if ev.Kind == testdb.Commit && ctx.Err() == nil {
				cancel()
				return testdb.ErrInjected // the error of a driver whose context has ended
			}
			return err
		}})
		if claim, err := rf.Lease("job", suite.Long).TryAcquire(ctx); err == nil {
			x.Errorf("acquired %v", claim)
		}
		if s := job(x); s.State != rowfeed.LeaseFree || s.Epoch != 1 {
			x.Errorf("left behind: %+v", s)
		}
	})
}

// TestHoldRenewsAndReleases (M54, M58): Hold renews while the work runs, longer than the TTL by the database's clock,
// and releases the lease. It reports a lost claim to the work and to its caller, and passes on errors and panics.
func TestHoldRenewsAndReleases(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		const ttl = 600 * time.Millisecond
		lease := x.RF.Lease("job", ttl)
		x.Eventually("work runs for longer than the TTL", func() bool {
			err := lease.Hold(x.Ctx, func(ctx context.Context, claim *rowfeed.Claim) error {
				x.Eventually("the claim is renewed beyond its first end", func() bool {
					s := job(x)
					held := x.Scalar("SELECT " + x.Dialect.Now + " - acquired_at FROM rowfeed_leases")
					return ctx.Err() != nil || s.Renewals > 0 && s.ExpiresInSeconds > 0 && held > ttl.Microseconds()
				})
				return assertClaim(x, claim)
			})
			if err != nil { // the machine was too slow for so short a claim
				x.WantCode(err, rowfeed.LeaseLost)
			}
			return err == nil
		})
		if s := job(x); s.State != rowfeed.LeaseFree {
			x.Errorf("after Hold: %+v", s)
		}
		lease = x.RF.Lease("job", suite.Long)
		fails := func(context.Context, *rowfeed.Claim) error { return testdb.ErrInjected }
		if err := lease.Hold(x.Ctx, fails); !errors.Is(err, testdb.ErrInjected) {
			x.Errorf("the work's error becomes %v", err)
		}
		func() {
			defer func() {
				if recover() == nil {
					x.Error("the panic is gone")
				}
			}()
			_ = lease.Hold(x.Ctx, func(context.Context, *rowfeed.Claim) error { panic("work") })
		}()
		ctx, cancel := context.WithCancel(x.Ctx)
		err := lease.Hold(ctx, func(ctx context.Context, _ *rowfeed.Claim) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, context.Canceled) {
			x.Errorf("cancelled: %v", err)
		}
		if s := job(x); s.State != rowfeed.LeaseFree {
			x.Errorf("after an error, a panic and a cancelled context: %+v", s)
		}
		// The clock leaps, and a renewal finds the claim lost.
		err = x.RF.Lease("job", 2*time.Second).Hold(x.Ctx, func(ctx context.Context, claim *rowfeed.Claim) error {
			leapClock(x, suite.Long)
			<-ctx.Done()
			x.WantCode(context.Cause(ctx), rowfeed.LeaseLost)
			return ctx.Err()
		})
		x.WantCode(err, rowfeed.LeaseLost)
	})
}

// TestOperatorReleasesClaim (M52): an operator ends the current claim, or only the one that the operator has seen. The
// holder is notified, and a free lease stays free.
func TestOperatorReleasesClaim(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		_, err := x.RF.Admin().ReleaseLease(x.Ctx, "job", 0)
		x.WantCode(err, rowfeed.UnknownLease)
		first := acquireLease(x, x.RF.Lease("job", suite.Long))
		_, err = x.RF.Admin().ReleaseLease(x.Ctx, "job", 2)
		x.WantCode(err, rowfeed.Conflict)
		was, err := x.RF.Admin().ReleaseLease(x.Ctx, "job", 1)
		if err != nil || was.Owner != first.Owner() || was.State != rowfeed.LeaseHeld {
			x.Errorf("released %+v, %v", was, err)
		}
		wantOver(x, first)
		if was, err := x.RF.Admin().ReleaseLease(x.Ctx, "job", 0); err != nil || was.State != rowfeed.LeaseFree {
			x.Errorf("a free one: %+v, %v", was, err)
		}
		// Between the operator's read and the release another process acquires the lease.
		second := acquireLease(x, x.RF.Lease("job", suite.Long))
		held := testdb.Hold(func(ev testdb.TapEvent) bool { return ev.Kind == testdb.Begin })
		operator := stranger(x, testdb.Hooks{Before: held.Before})
		done := make(chan error, 1)
		go func() {
			_, err := operator.Admin().ReleaseLease(x.Ctx, "job", 0)
			done <- err
		}()
		<-held.Reached
		leapClock(x, 2*suite.Long)
		third := acquireLease(x, x.RF.Lease("job", suite.Long))
		held.Release()
		x.WantCode(<-done, rowfeed.Conflict)
		if err := assertClaim(x, third); err != nil {
			x.Errorf("the holder of another claim: %v", err)
		}
		wantOver(x, second)
	})
}
