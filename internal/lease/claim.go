package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

// lostToOthers is why a claim no longer has its row.
const lostToOthers = "it expired, another holder acquired the lease, or an operator released it"

// Claim is a holder's claim on a Lease, from its acquisition to its end. Two claims never share an owner, and a later
// claim has a higher epoch. A claim that has ended never holds again. It is safe for concurrent use.
type Claim struct {
	lease *Lease
	owner string
	epoch int64

	ctx context.Context
	end context.CancelCauseFunc

	mu       sync.Mutex
	deadline time.Time
	timer    *time.Timer
}

func newClaim(l *Lease, owner string, epoch int64) *Claim {
	c := &Claim{lease: l, owner: owner, epoch: epoch}
	c.ctx, c.end = context.WithCancelCause(context.Background())
	return c
}

// start starts the claim's local clock. Asked is a moment before the database read its clock.
func (c *Claim) start(asked time.Time) error {
	c.mu.Lock()
	c.timer = time.AfterFunc(c.lease.TTL, c.expire)
	c.mu.Unlock()
	return c.extend(asked)
}

// extend sets the local deadline. It leaves a tenth of the ttl for clocks of different speeds, and for the time between
// the holder's check of the context and its effect.
func (c *Claim) extend(asked time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = asked.Add(c.lease.TTL - c.lease.TTL/10)
	if c.ctx.Err() == nil && !time.Now().Before(c.deadline) {
		c.lose("the database answered too late")
	}
	if c.ctx.Err() != nil { // a claim that has ended never holds again
		return context.Cause(c.ctx)
	}
	c.timer.Reset(time.Until(c.deadline))
	return nil
}

// expire ends the claim at its deadline.
func (c *Claim) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if left := time.Until(c.deadline); left > 0 { // it was renewed meanwhile
		c.timer.Reset(left)
		return
	}
	c.lose("it was not renewed in time")
}

// lose ends a claim that was not released. A claim that is over stays over.
func (c *Claim) lose(why string) *feedtype.Error {
	lost := c.lost(why)
	c.end(lost)
	if context.Cause(c.ctx) == error(lost) {
		c.lease.store.Observer.Claim(feedtype.ClaimEvent{Lease: c.lease.Name, Epoch: c.epoch, Kind: feedtype.ClaimLost})
	}
	return lost
}

func (c *Claim) lost(why string) *feedtype.Error {
	return &feedtype.Error{
		Code:   feedtype.LeaseLost,
		Object: leaseObject(c.lease.Name),
		Cause:  fmt.Sprintf("the claim with epoch %d is over: %s", c.epoch, why),
		Next:   "stop the work that the lease guards, roll back its open transactions, and acquire the lease again",
	}
}

// Epoch is the claim's number: 1 for the first claim, higher for every later one.
func (c *Claim) Epoch() int64 { return c.epoch }

// Owner is unique to the claim. It begins with the host and the process id.
func (c *Claim) Owner() string { return c.owner }

// Deadline is when the claim ends unless it is renewed before, on this process's monotonic clock. It is a tenth of the
// ttl earlier than in the database.
func (c *Claim) Deadline() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.deadline
}

// halfway ends ctx when half of the time to the earliest deadline has passed. So a statement that hangs on a dead
// connection leaves time for another statement. Without claims it is ctx.
func halfway(ctx context.Context, claims ...*Claim) (context.Context, context.CancelFunc) {
	if len(claims) == 0 {
		return ctx, func() {}
	}
	left := time.Until(claims[0].Deadline())
	for _, c := range claims[1:] {
		left = min(left, time.Until(c.Deadline()))
	}
	return context.WithTimeout(ctx, left/2)
}

// Context ends with the claim: at its deadline, when a renewal finds it lost, or at its release. context.Cause then
// returns the reason, an error with the code LeaseLost.
func (c *Claim) Context() context.Context { return c.ctx }

// own is the condition that a row is this claim's.
func (c *Claim) own() dialect.Args {
	return dialect.Args{"name": c.lease.Name, "owner": c.owner, "epoch": c.epoch}
}

// Renew moves the claim's end to a full ttl from now. An error with the code LeaseLost means that the claim is over.
// After any other error the old deadline still holds, and Renew may be tried again.
func (c *Claim) Renew(ctx context.Context) error {
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	bounded, cancel := context.WithDeadline(ctx, c.Deadline())
	defer cancel()
	asked, n, err := c.lease.renewClaims(bounded, c)
	if err != nil {
		return c.lease.store.Fail(leaseObject(c.lease.Name), "renew it", err)
	}
	if n != 1 {
		c.lose(lostToOthers)
		return context.Cause(c.ctx)
	}
	return c.extend(asked)
}

// Assert checks, inside the caller's transaction, that the claim still holds on the database's clock. It keeps the
// claim's row locked until the transaction ends, so the next holder waits for the COMMIT. If the error has the code
// LeaseLost the claim does not hold, and the caller must roll back. Assert fences effects in the database that has the
// lease.
//
// Call it last, right before the COMMIT, since renewals wait for the row as well. It is made for READ COMMITTED. At
// stricter levels it fails with a serialization failure if the claim was renewed since the transaction began.
func (c *Claim) Assert(ctx context.Context, tx dialect.Querier) error {
	n, err := c.lease.store.Exec(ctx, tx, statements, "assert", c.own())
	if err != nil {
		return c.lease.store.Fail(leaseObject(c.lease.Name), "assert it", err)
	}
	if n != 1 {
		return c.lose(lostToOthers)
	}
	return nil
}

// Release ends the claim, so that the next holder can acquire the lease. If the error has the code LeaseLost the claim
// had ended before. Release never affects another claim.
func (c *Claim) Release(ctx context.Context) error {
	c.end(c.lost("it was released"))
	st, object := c.lease.store, leaseObject(c.lease.Name)
	n, err := releaseRow(ctx, st, c.own())
	if err == nil && n == 1 {
		return nil
	}
	if err == nil {
		return c.lost(lostToOthers)
	}
	// The COMMIT may have taken effect. A second try cannot release the claim of another holder.
	again, unknown := releaseRow(ctx, st, c.own())
	if unknown == nil && again == 1 {
		return nil
	}
	if unknown == nil {
		seen, failed := Read(ctx, st, st.On(), c.lease.Name)
		if failed == nil && seen.Epoch == c.epoch && seen.Owner == "" {
			return nil
		}
	}
	return st.Fail(object, "release it", err)
}

// releaseLeftover tries to release the claim, also after ctx has ended. If it fails the next holder waits for the
// claim's end.
func (c *Claim) releaseLeftover(ctx context.Context) error {
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), PartingTimeout)
	defer cancel()
	return c.Release(after)
}

// Hold runs fn under the claim; see Lease.Hold.
func (c *Claim) Hold(ctx context.Context, fn func(context.Context, *Claim) error) (err error) {
	work, stop := context.WithCancelCause(ctx)
	defer context.AfterFunc(c.ctx, func() { stop(context.Cause(c.ctx)) })()
	renewing := make(chan struct{})
	go func() {
		defer close(renewing)
		c.renewInBackground(work)
	}()
	defer func() { // also when fn panics
		stop(nil)
		<-renewing
		lost := c.ctx.Err() != nil
		released := c.releaseLeftover(ctx)
		switch {
		case lost && (err == nil || errors.Is(err, context.Canceled)):
			err = context.Cause(c.ctx)
		case err == nil && errors.Is(released, feedtype.LeaseLost):
			err = released
		}
	}()
	return fn(work, c)
}

// renewInBackground renews the claim until ctx or the claim ends.
func (c *Claim) renewInBackground(ctx context.Context) {
	failures := 0
	for {
		wait := c.lease.TTL / 3
		if failures > 0 {
			wait = min(store.Backoff(failures), wait)
		}
		if store.Pause(ctx, wait) != nil {
			return
		}
		bounded, cancel := halfway(ctx, c)
		err := c.Renew(bounded)
		cancel()
		if errors.Is(err, feedtype.LeaseLost) {
			return
		}
		failures++
		if err == nil {
			failures = 0
		}
	}
}
