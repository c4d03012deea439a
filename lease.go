package rowfeed

import (
	"context"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/lease"
)

// Lease is a named job that one holder at a time may do, in any number of processes.
// Whoever gets it has a Term, which ends unless it is renewed in time; the next term
// has a higher epoch. The row in the database decides, on the database's own clock.
//
// A lease spreads work and guards effects outside the database, as well as an expiring
// claim can: a holder that is paused may go on for a moment after another has taken
// over. Effects in the same database are safe when their transaction calls Term.Assert;
// send the epoch along with all others, so that the receiver can refuse a lower one.
type Lease struct {
	// LookEvery is the longest pause between two looks at a lease that somebody else
	// holds; the first ones are shorter. Default 5 s.
	LookEvery time.Duration
	// Above, where it is set, answers an epoch that the next term's is greater than, for a
	// lease that goes on where another one was: receivers that refuse lower epochs know no
	// names of leases. It is asked when the lease is about to be taken, after any waiting.
	Above func(ctx context.Context) (int64, error)
	// StandBy, where it is set, is told who has the lease, after every look of Acquire or
	// Hold that found it taken. An error of it ends the waiting, with that error.
	StandBy func(ctx context.Context, holder *feedtype.LeaseStatus) error

	named *lease.Lease
}

// Lease names a lease; nothing is asked of the database yet. A name has 1 to 100
// printable ASCII characters without blanks ("publish:…", "consumer:…" and "relay:…" are
// rowfeed's own). A
// term ends ttl after the database has last heard of it: a holder that was killed is
// replaced that much later, at most; 10 s is a good choice.
func (db *DB) Lease(name string, ttl time.Duration) *Lease {
	return &Lease{named: lease.New(db.store, name, ttl)}
}

// asSet is the lease with the fields that the caller has set.
func (l *Lease) asSet() *lease.Lease {
	set := *l.named
	set.LookEvery, set.Above, set.StandBy = l.LookEvery, l.Above, l.StandBy
	return &set
}

// TryAcquire begins a term if nobody holds the lease. Else the error has the code
// LeaseTaken and names the holder. The same process is no exception: who holds the
// lease already is told so as well.
func (l *Lease) TryAcquire(ctx context.Context) (*Term, error) {
	return termOf(l.asSet().TryAcquire(ctx))
}

// Acquire begins a term, and waits while somebody else holds the lease: it looks after
// a pause that grows, with jitter, to LookEvery, and no later than the holder's term
// would end. It has no transaction open while it waits, and answers errors of the
// database at once.
func (l *Lease) Acquire(ctx context.Context) (*Term, error) { return termOf(l.asSet().Acquire(ctx)) }

// Hold acquires the lease (it waits, as Acquire does), runs fn, renews the term in the
// background, and releases it when fn has returned. fn's context ends when the term
// does; what fn does after that is not guarded any more. Hold answers fn's error, or one
// with the code LeaseLost when the term ended before fn did.
func (l *Lease) Hold(ctx context.Context, fn func(ctx context.Context, t *Term) error) error {
	return l.asSet().Hold(ctx, func(ctx context.Context, t *lease.Term) error { return fn(ctx, &Term{t}) })
}

// Term is one holding of a Lease, from an acquire to its end. Two terms never share an
// owner, and a later one has a higher epoch; a term that has ended never comes back.
// It is safe for concurrent use.
type Term struct{ term *lease.Term }

func termOf(t *lease.Term, err error) (*Term, error) {
	if err != nil {
		return nil, err
	}
	return &Term{t}, nil
}

// Epoch is the term's number: 1 at first, higher with every acquire.
func (t *Term) Epoch() int64 { return t.term.Epoch() }

// Owner is unlike that of any other term. It begins with the host and the process id.
func (t *Term) Owner() string { return t.term.Owner() }

// Deadline is when the term ends unless it is renewed before, on this process's
// monotonic clock and somewhat earlier than in the database.
func (t *Term) Deadline() time.Time { return t.term.Deadline() }

// Context ends when the term does: at its deadline, when a renewal finds it lost, at
// its release. context.Cause then tells which, as an error with the code LeaseLost.
func (t *Term) Context() context.Context { return t.term.Context() }

// Renew moves the term's end to a full ttl from now. An error with the code LeaseLost
// says that the term is over; after any other the old deadline stands, and it may be
// tried again.
func (t *Term) Renew(ctx context.Context) error { return t.term.Renew(ctx) }

// Assert asks, inside the caller's transaction, whether the term still holds on the
// database's clock, and keeps its row locked until the transaction ends: whoever takes
// over waits for the COMMIT. An error with the code LeaseLost says that it does not
// hold; roll back. This is what fences effects in the leases' own database.
//
// Call it last, right before the COMMIT: renewals wait for the row as well. It is made
// for READ COMMITTED; at stricter levels it fails with a serialization failure when the
// term was renewed since the transaction began.
func (t *Term) Assert(ctx context.Context, tx Tx) error { return t.term.Assert(ctx, tx) }

// Release ends the term and lets the next holder in at its next look. The code
// LeaseLost says that it had ended before; nothing of another term is touched.
func (t *Term) Release(ctx context.Context) error { return t.term.Release(ctx) }
