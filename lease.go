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
// A lease spreads work. It guards effects outside the database as well as an expiring claim can: a paused holder may
// continue for a moment after another process has taken over. Effects in the same database are safe if their
// transaction calls Claim.Assert. Send the epoch along with effects elsewhere, so that the receiver can refuse a
// lower epoch.
type Lease struct {
	// LookEvery is the maximum time between polls of a lease that another process holds. The first polls are closer
	// together. Default 5 s.
	LookEvery time.Duration
	// Above, if set, returns an epoch below that of the next claim. It is called before the lease is acquired. Use it
	// for a lease that replaces another lease: receivers refuse lower epochs, whatever the name of the lease.
	Above func(ctx context.Context) (int64, error)
	// StandBy, if set, is called with the holder after every poll of Acquire or Hold that found the lease held. If it
	// returns an error, the wait ends with that error.
	StandBy func(ctx context.Context, holder *feedtype.LeaseStatus) error

	named *lease.Lease
}

// Lease returns a lease, without asking the database. A name has 1 to 100 printable ASCII characters without blanks.
// Names that begin with "publish:", "consumer:" or "relay:" are reserved for rowfeed. A claim ends ttl after its last
// renewal: a holder that was killed is replaced after at most that time. A good ttl is 10 s.
func (db *DB) Lease(name string, ttl time.Duration) *Lease {
	return &Lease{named: lease.New(db.store, name, ttl)}
}

// asSet returns the lease with the fields that the caller has set.
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

// Acquire begins a claim, and waits while the lease is held. It polls after pauses that grow up to LookEvery, with
// jitter, and at the latest when the holder's claim would end. It keeps no transaction open while it waits. It
// returns errors of the database at once.
func (l *Lease) Acquire(ctx context.Context) (*Claim, error) { return claimOf(l.asSet().Acquire(ctx)) }

// Hold acquires the lease (it waits like Acquire), runs fn, renews the claim in the background, and releases it when
// fn has returned. The context of fn ends with the claim. What fn does after that is not guarded. Hold returns the
// error of fn, or an error with the code LeaseLost if the claim ended before fn did.
func (l *Lease) Hold(ctx context.Context, fn func(ctx context.Context, c *Claim) error) error {
	return l.asSet().Hold(ctx, func(ctx context.Context, c *lease.Claim) error { return fn(ctx, &Claim{c}) })
}

// Claim is one holding of a Lease, from its acquisition to its end. Two claims never have the same owner, and a later
// claim has a higher epoch. A claim that has ended never becomes valid again. It is safe for concurrent use.
type Claim struct{ claim *lease.Claim }

func claimOf(c *lease.Claim, err error) (*Claim, error) {
	if err != nil {
		return nil, err
	}
	return &Claim{c}, nil
}

// Epoch returns the claim's number: 1 at first, and higher with every acquisition.
func (c *Claim) Epoch() int64 { return c.claim.Epoch() }

// Owner returns the name of the claim's holder. It differs from that of any other claim, and begins with the host and
// the process id.
func (c *Claim) Owner() string { return c.claim.Owner() }

// Deadline returns when the claim ends unless it is renewed. It is on this process's monotonic clock, and somewhat
// earlier than in the database.
func (c *Claim) Deadline() time.Time { return c.claim.Deadline() }

// Context returns a context that ends with the claim: at its deadline, when a renewal finds it lost, or at its
// release. context.Cause then returns an error with the code LeaseLost and the reason.
func (c *Claim) Context() context.Context { return c.claim.Context() }

// Renew moves the claim's end to a full ttl from now. The code LeaseLost means that the claim has ended. After any
// other error the old deadline still holds, and Renew may be tried again.
func (c *Claim) Renew(ctx context.Context) error { return c.claim.Renew(ctx) }

// Assert checks, inside the caller's transaction, that the claim still holds on the database's clock. It locks the
// claim's row until the transaction ends: a process that takes over waits for the COMMIT. The code LeaseLost means
// that the claim does not hold; roll back. Assert fences effects in the database that has the lease.
//
// Call it last, right before the COMMIT, since renewals wait for the row as well. It is made for READ COMMITTED. At
// stricter levels it fails with a serialization failure if the claim was renewed since the transaction began.
func (c *Claim) Assert(ctx context.Context, tx Tx) error { return c.claim.Assert(ctx, orNoTx(tx)) }

// Release ends the claim. The next holder acquires the lease at its next poll. The code LeaseLost means that the
// claim had already ended; Release then changes nothing.
func (c *Claim) Release(ctx context.Context) error { return c.claim.Release(ctx) }
