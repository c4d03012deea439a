package rowfeed

import (
	"context"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/lease"
)

// Lease is a named job that one holder at a time may do, in any number of processes. A holder has a Claim, which ends
// unless it is renewed in time. The next claim has a higher epoch. A row in the database decides, on the database's
// clock.
//
// A lease spreads work and guards effects outside the database as well as an expiring claim can: a paused holder may go
// on for a moment after another one has taken over. Effects in the same database are safe if their transaction calls
// Claim.Assert. Send the epoch along with effects elsewhere, so that the receiver can refuse a lower one.
type Lease struct {
	// LookEvery is the maximum time between polls of a lease that another process holds. The first polls are closer
	// together. Default 5 s.
	LookEvery time.Duration
	// Above, if set, answers an epoch below the one of the next claim. It is for a lease that replaces another one:
	// receivers refuse lower epochs, and know no names of leases. It is called when the lease is about to be acquired.
	Above func(ctx context.Context) (int64, error)
	// StandBy, if set, is called with the holder after every poll of Acquire or Hold that found the lease held. An
	// error of StandBy ends the waiting with that error.
	StandBy func(ctx context.Context, holder *feedtype.LeaseStatus) error

	named *lease.Lease
}

// Lease names a lease, and does not ask the database yet. A name has 1 to 100 printable ASCII characters without
// blanks. Names that begin with "publish:", "consumer:" or "relay:" are rowfeed's own. A claim ends ttl after its last
// renewal: a holder that was killed is replaced that much later, at most. 10 s is a good choice.
func (db *DB) Lease(name string, ttl time.Duration) *Lease {
	return &Lease{named: lease.New(db.store, name, ttl)}
}

// asSet is the lease with the fields that the caller has set.
func (l *Lease) asSet() *lease.Lease {
	set := *l.named
	set.LookEvery, set.Above, set.StandBy = l.LookEvery, l.Above, l.StandBy
	return &set
}

// TryAcquire begins a claim if the lease is free. Otherwise the error has the code LeaseTaken and names the holder,
// which may be the calling process.
func (l *Lease) TryAcquire(ctx context.Context) (*Claim, error) {
	return claimOf(l.asSet().TryAcquire(ctx))
}

// Acquire begins a claim, and waits while the lease is held. It polls after pauses that grow, with jitter, to
// LookEvery, and at the latest when the holder's claim would end. It has no transaction open while it waits. It answers
// errors of the database at once.
func (l *Lease) Acquire(ctx context.Context) (*Claim, error) { return claimOf(l.asSet().Acquire(ctx)) }

// Hold acquires the lease (it waits, as Acquire does), runs fn, renews the claim in the background, and releases it
// when fn has returned. fn's context ends when the claim does; what fn does after that is not guarded. Hold answers
// fn's error, or one with the code LeaseLost if the claim ended before fn did.
func (l *Lease) Hold(ctx context.Context, fn func(ctx context.Context, c *Claim) error) error {
	return l.asSet().Hold(ctx, func(ctx context.Context, c *lease.Claim) error { return fn(ctx, &Claim{c}) })
}

// Claim is one holding of a Lease, from its acquisition to its end. Two claims never have the same owner, and a later
// one has a higher epoch. A claim that has ended never comes back. It is safe for concurrent use.
type Claim struct{ claim *lease.Claim }

func claimOf(c *lease.Claim, err error) (*Claim, error) {
	if err != nil {
		return nil, err
	}
	return &Claim{c}, nil
}

// Epoch is the claim's number: 1 at first, higher with every acquisition.
func (c *Claim) Epoch() int64 { return c.claim.Epoch() }

// Owner names the claim's holder. It is unlike that of any other claim, and begins with the host and the process id.
func (c *Claim) Owner() string { return c.claim.Owner() }

// Deadline is when the claim ends unless it is renewed before. It is on this process's monotonic clock, and somewhat
// earlier than in the database.
func (c *Claim) Deadline() time.Time { return c.claim.Deadline() }

// Context ends when the claim does: at its deadline, when a renewal finds it lost, or at its release. context.Cause
// then answers an error with the code LeaseLost that says which.
func (c *Claim) Context() context.Context { return c.claim.Context() }

// Renew moves the claim's end to a full ttl from now. An error with the code LeaseLost says that the claim is over.
// After any other error the old deadline holds, and Renew may be tried again.
func (c *Claim) Renew(ctx context.Context) error { return c.claim.Renew(ctx) }

// Assert asks, inside the caller's transaction, whether the claim still holds on the database's clock, and locks its
// row until the transaction ends: a process that takes over waits for the COMMIT. An error with the code LeaseLost says
// that the claim does not hold; roll back. Assert fences effects in the database that has the lease.
//
// Call it last, right before the COMMIT, since renewals wait for the row as well. It is made for READ COMMITTED. At
// stricter levels it fails with a serialization failure if the claim was renewed since the transaction began.
func (c *Claim) Assert(ctx context.Context, tx Tx) error { return c.claim.Assert(ctx, tx) }

// Release ends the claim, and the next holder acquires the lease at its next poll. The code LeaseLost says that the
// claim had ended before; Release then changes nothing.
func (c *Claim) Release(ctx context.Context) error { return c.claim.Release(ctx) }
