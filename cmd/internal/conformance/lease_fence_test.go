package conformance

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// ending begins a term that is so short that it ends during the test by itself.
func (x *env) ending(rf *rowfeed.DB) (term *rowfeed.Term) {
	x.Helper()
	x.eventually("a short term begins before it ends", func() (ok bool) {
		var err error
		if term, err = rf.Lease("job", 150*time.Millisecond).TryAcquire(x.ctx); err != nil && !isCode(err, rowfeed.LeaseLost) && !isCode(err, rowfeed.LeaseTaken) {
			x.Fatal(err)
		}
		return err == nil
	})
	return term
}

func (x *env) awaitExpiry() {
	x.Helper()
	x.eventually("the lease expires on the database's clock", func() bool { return x.job().State == rowfeed.LeaseExpired })
}

// TestLeaseWorkOutlivesTerm (M54): the term ends while a transaction of its holder is
// open. The holder's context ends by itself, and its write is refused at the end,
// though the transaction began in time and nobody has taken over.
func TestLeaseWorkOutlivesTerm(t *testing.T) {
	each(t, func(x *env) {
		x.exec("CREATE TABLE effects (epoch BIGINT)")
		term := x.ending(x.rf)
		tx := x.begin(sql.LevelReadCommitted)
		x.in(tx, "INSERT INTO effects VALUES (1)")
		x.eventually("the term's context ends", func() bool { return term.Context().Err() != nil })
		x.wantCode(context.Cause(term.Context()), rowfeed.LeaseLost)
		if term.Deadline().After(time.Now()) {
			x.Error("the context has ended before the deadline")
		}
		x.awaitExpiry()
		x.wantCode(term.Assert(x.ctx, rowfeed.InTx(tx)), rowfeed.LeaseLost)
		tx.Rollback()
		x.wantCode(term.Renew(x.ctx), rowfeed.LeaseLost)
		if s := x.job(); s.State != rowfeed.LeaseExpired || s.Renewals != 0 {
			x.Errorf("a term that was over: %+v", s)
		}
	})
}

// TestLeaseRenewalInTime (M54): a renewal judges by the end that the database knows,
// also when it is sent while the holder still believes in its term.
func TestLeaseRenewalInTime(t *testing.T) {
	each(t, func(x *env) {
		term := x.acquire(x.rf.Lease("job", long))
		x.leap(long)
		x.wantCode(term.Renew(x.ctx), rowfeed.LeaseLost)
		x.wantCode(context.Cause(term.Context()), rowfeed.LeaseLost)
	})
}

// TestLeaseTakeOverWaits (M54): between Assert and COMMIT nobody takes over, though the
// term may end meanwhile: the next holder sees the effect of the one before.
func TestLeaseTakeOverWaits(t *testing.T) {
	each(t, func(x *env) {
		x.exec("CREATE TABLE effects (epoch BIGINT)")
		var term *rowfeed.Term
		var tx *sql.Tx
		x.eventually("a short term is asserted before it ends", func() bool {
			term = x.acquireSoon(x.rf.Lease("job", 400*time.Millisecond))
			tx = x.begin(sql.LevelReadCommitted)
			x.in(tx, "INSERT INTO effects VALUES (1)")
			err := term.Assert(x.ctx, rowfeed.InTx(tx))
			if err != nil {
				x.wantCode(err, rowfeed.LeaseLost)
				tx.Rollback()
			}
			return err == nil
		})
		x.awaitExpiry()
		var committed, asks atomic.Bool
		early := make(chan bool, 1)
		other := x.stranger(testdb.Hooks{
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
			term *rowfeed.Term
			err  error
		}
		done := make(chan result, 1)
		go func() {
			term, err := other.Lease("job", long).TryAcquire(x.ctx)
			done <- result{term, err}
		}()
		x.eventually("the next holder waits", func() bool { return len(early) > 0 || asks.Load() && x.waits() })
		committed.Store(true)
		x.commit(tx)
		r := <-done
		if r.err != nil {
			x.Fatal(r.err)
		}
		if <-early {
			x.Error("the next holder did not wait for the COMMIT")
		}
		if n := x.scalar("SELECT count(*) FROM effects"); n != 1 || r.term.Epoch() != term.Epoch()+1 {
			x.Errorf("%d effects, epoch %d", n, r.term.Epoch())
		}
		x.wantOver(term)
	})
}

// acquireSoon waits for the lease.
func (x *env) acquireSoon(l *rowfeed.Lease) *rowfeed.Term {
	x.Helper()
	l.LookEvery = 20 * time.Millisecond
	t, err := l.Acquire(x.ctx)
	if err != nil {
		x.Fatal(err)
	}
	return t
}

// TestLeaseCommitUnknown (H27): a COMMIT fails, before or after it took effect.
// Acquire, Renew and Release answer what is in the row, not what they remember; a
// second failure on the way to find out is an error, and the row's term runs out.
func TestLeaseCommitUnknown(t *testing.T) {
	each(t, func(x *env) {
		var failing atomic.Int64 // COMMITs to fail
		var effective atomic.Bool
		fail := func(ev testdb.TapEvent) error {
			if ev.Kind == testdb.Commit && failing.Add(-1) >= 0 {
				return testdb.ErrInjected
			}
			return nil
		}
		rf := x.stranger(testdb.Hooks{
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
		lease := rf.Lease("job", long)
		held := func() bool { s := x.job(); return s != nil && s.State == rowfeed.LeaseHeld }
		for _, took := range []bool{false, true} {
			effective.Store(took)
			failing.Store(1)
			term, err := lease.TryAcquire(x.ctx)
			failing.Store(0)
			if took != held() || took != (err == nil) {
				x.Errorf("COMMIT took effect: %v; acquired: %v, %v; the row: %+v", took, term, err, x.job())
			}
			if !took {
				if !errors.Is(err, testdb.ErrInjected) {
					x.Errorf("error %v", err)
				}
				term = x.acquire(lease)
			}
			if err := x.assert(term); err != nil {
				x.Errorf("assert: %v", err)
			}

			failing.Store(1)
			before := term.Deadline()
			if err := term.Renew(x.ctx); !errors.Is(err, testdb.ErrInjected) || term.Context().Err() != nil || !term.Deadline().Equal(before) {
				x.Errorf("a renewal that is not sure: %v, context %v, deadline moved by %s", err, term.Context().Err(), term.Deadline().Sub(before))
			}
			failing.Store(0)
			if err := term.Renew(x.ctx); err != nil {
				x.Errorf("the next renewal: %v", err)
			}

			failing.Store(1)
			if err := term.Release(x.ctx); err != nil {
				x.Errorf("release: %v", err)
			}
			failing.Store(0)
			if held() {
				x.Errorf("after the release: %+v", x.job())
			}
		}
		// The way to find out fails, too.
		effective.Store(true)
		failing.Store(2)
		epoch := x.job().Epoch
		if term, err := lease.TryAcquire(x.ctx); term != nil || !errors.Is(err, testdb.ErrInjected) {
			x.Errorf("acquired %v, %v", term, err)
		}
		failing.Store(0)
		x.wantTaken(lease)
		x.leap(2 * long)
		if term := x.acquire(lease); term.Epoch() != epoch+2 {
			x.Errorf("epoch %d after one that nobody knew to have, %d", term.Epoch(), epoch+1)
		}
	})
}

// TestLeaseGivenUp (H27): when a caller cancels Acquire before the answer arrives, no lease is left that would have to
// expire before another member gets it.
func TestLeaseGivenUp(t *testing.T) {
	each(t, func(x *env) {
		ctx, cancel := context.WithCancel(x.ctx)
		rf := x.stranger(testdb.Hooks{After: func(_ context.Context, ev testdb.TapEvent, err error) error {
			if ev.Kind == testdb.Commit && ctx.Err() == nil {
				cancel()
				return testdb.ErrInjected // as a driver does whose context has ended
			}
			return err
		}})
		if term, err := rf.Lease("job", long).TryAcquire(ctx); err == nil {
			x.Errorf("acquired %v", term)
		}
		if s := x.job(); s.State != rowfeed.LeaseFree || s.Epoch != 1 {
			x.Errorf("left behind: %+v", s)
		}
	})
}

// TestLeaseHold (M54, M58): Hold renews while the work runs, longer than a term by the
// database's clock, and releases; it tells the work, and its caller, when the term is
// lost, and passes on errors and panics.
func TestLeaseHold(t *testing.T) {
	each(t, func(x *env) {
		const ttl = 600 * time.Millisecond
		lease := x.rf.Lease("job", ttl)
		x.eventually("work runs for longer than a term", func() bool {
			err := lease.Hold(x.ctx, func(ctx context.Context, term *rowfeed.Term) error {
				x.eventually("the term is renewed beyond its first end", func() bool {
					s := x.job()
					return ctx.Err() != nil || s.Renewals > 0 && s.ExpiresInSeconds > 0 && x.scalar("SELECT "+x.dialect.Now()+" - acquired_at FROM rowfeed_leases") > ttl.Microseconds()
				})
				return x.assert(term)
			})
			if err != nil { // this machine was too slow for so short a term
				x.wantCode(err, rowfeed.LeaseLost)
			}
			return err == nil
		})
		if s := x.job(); s.State != rowfeed.LeaseFree {
			x.Errorf("after Hold: %+v", s)
		}
		lease = x.rf.Lease("job", long)
		if err := lease.Hold(x.ctx, func(context.Context, *rowfeed.Term) error { return testdb.ErrInjected }); !errors.Is(err, testdb.ErrInjected) {
			x.Errorf("the work's error becomes %v", err)
		}
		func() {
			defer func() {
				if recover() == nil {
					x.Error("the panic is gone")
				}
			}()
			_ = lease.Hold(x.ctx, func(context.Context, *rowfeed.Term) error { panic("work") })
		}()
		ctx, cancel := context.WithCancel(x.ctx)
		err := lease.Hold(ctx, func(ctx context.Context, _ *rowfeed.Term) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, context.Canceled) {
			x.Errorf("cancelled: %v", err)
		}
		if s := x.job(); s.State != rowfeed.LeaseFree {
			x.Errorf("after an error, a panic and a cancelled context: %+v", s)
		}
		// The clock leaps; a renewal finds the term lost.
		err = x.rf.Lease("job", 2*time.Second).Hold(x.ctx, func(ctx context.Context, term *rowfeed.Term) error {
			x.leap(long)
			<-ctx.Done()
			x.wantCode(context.Cause(ctx), rowfeed.LeaseLost)
			return ctx.Err()
		})
		x.wantCode(err, rowfeed.LeaseLost)
	})
}

// TestReleaseLease (M52): an operator ends the term that there is, or only the one that
// was seen; the holder learns of it, and a free lease stays free.
func TestReleaseLease(t *testing.T) {
	each(t, func(x *env) {
		_, err := x.rf.Admin().ReleaseLease(x.ctx, "job", 0)
		x.wantCode(err, rowfeed.UnknownLease)
		first := x.acquire(x.rf.Lease("job", long))
		_, err = x.rf.Admin().ReleaseLease(x.ctx, "job", 2)
		x.wantCode(err, rowfeed.Conflict)
		was, err := x.rf.Admin().ReleaseLease(x.ctx, "job", 1)
		if err != nil || was.Owner != first.Owner() || was.State != rowfeed.LeaseHeld {
			x.Errorf("released %+v, %v", was, err)
		}
		x.wantOver(first)
		if was, err := x.rf.Admin().ReleaseLease(x.ctx, "job", 0); err != nil || was.State != rowfeed.LeaseFree {
			x.Errorf("a free one: %+v, %v", was, err)
		}
		// Between the operator's look and the release the lease changes hands.
		second := x.acquire(x.rf.Lease("job", long))
		held := testdb.Hold(func(ev testdb.TapEvent) bool { return ev.Kind == testdb.Begin })
		operator := x.stranger(testdb.Hooks{Before: held.Before})
		done := make(chan error, 1)
		go func() {
			_, err := operator.Admin().ReleaseLease(x.ctx, "job", 0)
			done <- err
		}()
		<-held.Reached
		x.leap(2 * long)
		third := x.acquire(x.rf.Lease("job", long))
		held.Release()
		x.wantCode(<-done, rowfeed.Conflict)
		if err := x.assert(third); err != nil {
			x.Errorf("the holder that nobody meant: %v", err)
		}
		x.wantOver(second)
	})
}
