package lease

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
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

	store *store.Store
	Name  string
	TTL   time.Duration
	// instance, where there is one, begins the owners of all terms of one member of a
	// group: it shows whose a job is.
	instance string
}

const (
	// defaultLook is the default of Lease.LookEvery.
	defaultLook = 5 * time.Second
	// MinTTL leaves time for a round trip.
	MinTTL = 10 * time.Millisecond
	MaxTTL = 365 * 24 * time.Hour
	// PartingTimeout bounds the statements that let go of a lease after the caller's
	// context has ended.
	PartingTimeout = 2 * time.Second
)

var leaseNamePattern = regexp.MustCompile(`^[!-~]{1,100}$`)

// Lease names a lease; nothing is asked of the database yet. A name has 1 to 100
// printable ASCII characters without blanks ("publish:…", "consumer:…" and "relay:…" are
// rowfeed's own). A
// term ends ttl after the database has last heard of it: a holder that was killed is
// replaced that much later, at most; 10 s is a good choice.
func New(st *store.Store, name string, ttl time.Duration) *Lease {
	return &Lease{store: st, Name: name, TTL: ttl}
}

func leaseObject(name string) string { return fmt.Sprintf("lease %q", name) }

func (l *Lease) validate() error {
	switch {
	case !leaseNamePattern.MatchString(l.Name):
		return feedtype.Invalid("lease", "%q is no name of a lease: 1 to 100 printable ASCII characters without blanks",
			l.Name)
	case l.TTL < MinTTL || l.TTL > MaxTTL:
		return feedtype.Invalid("ttl", "%s must be from %s to %s", l.TTL, MinTTL, MaxTTL)
	case l.LookEvery < 0:
		return feedtype.Invalid("look every", "%s must not be negative", l.LookEvery)
	}
	return nil
}

// TryAcquire begins a term if nobody holds the lease. Else the error has the code
// LeaseTaken and names the holder. The same process is no exception: who holds the
// lease already is told so as well.
func (l *Lease) TryAcquire(ctx context.Context) (*Term, error) {
	t, taken, err := l.try(ctx)
	if taken != nil {
		return nil, &feedtype.Error{Code: feedtype.LeaseTaken, Object: leaseObject(l.Name),
			Cause: fmt.Sprintf("%s holds it since %s (epoch %d)",
				taken.Owner, taken.Since.Format(time.RFC3339), taken.Epoch),
			Next: "wait for its release or its end, or take another name"}
	}
	return t, err
}

// Acquire begins a term, and waits while somebody else holds the lease: it looks after
// a pause that grows, with jitter, to LookEvery, and no later than the holder's term
// would end. It has no transaction open while it waits, and answers errors of the
// database at once.
func (l *Lease) Acquire(ctx context.Context) (*Term, error) {
	longest := l.LookEvery
	if longest == 0 {
		longest = defaultLook
	}
	for wait := longest / 16; ; wait = min(2*wait, longest) {
		t, taken, err := l.try(ctx)
		if taken == nil {
			return t, err
		}
		if l.StandBy != nil {
			if err := l.StandBy(ctx, taken); err != nil {
				return nil, err
			}
		}
		look := max(0, min(wait, time.Duration(taken.ExpiresInSeconds*float64(time.Second))))
		if err := store.Pause(ctx, look+mathrand.N(look/4+20*time.Millisecond)); err != nil {
			return nil, fmt.Errorf("%s: acquire: %w", leaseObject(l.Name), err)
		}
	}
}

// try answers a term, or who holds the lease, or an error.
func (l *Lease) try(ctx context.Context) (*Term, *feedtype.LeaseStatus, error) {
	if err := l.validate(); err != nil {
		return nil, nil, err
	}
	for attempt := 1; ; attempt++ {
		seen, err := Look(ctx, l.store, l.store.On(), l.Name)
		switch {
		case err != nil:
			return nil, nil, l.store.Fail(leaseObject(l.Name), "look who holds it", err)
		case Held(seen) || attempt > store.MaxAttempts: // the latter: it was, each time, when we came to take it
			return nil, seen, nil
		}
		if t, err := l.take(ctx, seen); t != nil || err != nil {
			return t, nil, l.store.Fail(leaseObject(l.Name), "acquire it", err)
		}
	}
}

// take begins the term after the one seen, by one conditional statement; it answers
// neither term nor error when somebody else was faster. Owners are never the same
// twice: after a failover that lost commits an epoch may be.
func (l *Lease) take(ctx context.Context, seen *feedtype.LeaseStatus) (*Term, error) {
	above := int64(0)
	if l.Above != nil {
		var err error
		if above, err = l.Above(ctx); err != nil {
			return nil, err
		}
	}
	t := newTerm(l, l.newOwner(), max(seen.Epoch, above)+1)
	now, ttl := l.store.Dialect.Now(), l.TTL.Microseconds()
	b := dialect.NewBuilder(l.store.Dialect)
	var query string
	if seen.Epoch == 0 { // there is no row yet; of two inserts one fails
		query = "INSERT INTO " + l.store.Table("leases") +
			" (name, owner, epoch, expires_at, acquired_at, renewals) VALUES (" +
			b.Arg(
				l.Name,
			) + ", " + b.Arg(t.owner) + ", " + b.Arg(t.epoch) + ", " + now + " + " + b.Arg(ttl) + ", " + now + ", 0)"
	} else {
		query = "UPDATE " + l.store.Table("leases") + " SET owner = " + b.Arg(t.owner) + ", epoch = " + b.Arg(t.epoch) +
			", expires_at = " + now + " + " + b.Arg(ttl) + ", acquired_at = " + now + ", renewals = 0" +
			" WHERE name = " + b.Arg(l.Name) + " AND epoch = " + b.Arg(seen.Epoch) +
			" AND (expires_at IS NULL OR expires_at <= " + now + ")"
	}
	var asked time.Time
	err := l.store.InTx(ctx, dialect.ForRecord, "acquire lease "+l.Name, func(tx dialect.Querier) error {
		asked = time.Now()
		n, err := tx.Exec(ctx, query, b.Args()...)
		if err == nil && n != 1 {
			err = store.ErrNothing
		}
		return err
	})
	switch {
	case err == nil:
	case errors.Is(err, store.ErrNothing) || l.store.Dialect.Classify(err) == dialect.ClassDuplicate:
		return nil, nil
	case ctx.Err() != nil:
		_ = t.letGo(ctx)
		return nil, err
	default:
		// The COMMIT may have taken effect all the same: only the row knows. The statement
		// that asks waits for a commit that is still under way, and renews.
		var n int64
		var unknown error
		if asked, n, unknown = l.prolong(ctx, t); unknown != nil || n != 1 {
			return nil, err
		}
	}
	if err := t.begin(asked); err != nil {
		_ = t.letGo(ctx)
		return nil, err
	}
	begun := feedtype.TermEvent{Lease: l.Name, Epoch: t.epoch}
	if seen.State == feedtype.LeaseExpired {
		begun.Kind = feedtype.TermTakenOver
	}
	l.store.Observer.Term(begun)
	return t, nil
}

// prolong sets the ends of terms anew that hold and have not expired, and answers the
// number of rows, and a moment before the database looked at its clock. renewals + 1
// makes the row another one in any case: MySQL counts the rows that have changed. More
// than one term are those of a group's member.
func (l *Lease) prolong(ctx context.Context, terms ...*Term) (asked time.Time, n int64, err error) {
	b := dialect.NewBuilder(l.store.Dialect)
	now := l.store.Dialect.Now()
	query := "UPDATE " + l.store.Table("leases") + " SET expires_at = " + now + " + " + b.Arg(l.TTL.Microseconds()) +
		", renewals = renewals + 1" +
		" WHERE " + anyOf(b, terms) + " AND expires_at > " + now
	err = l.store.InTx(ctx, dialect.ForRecord, "renew lease "+l.Name, func(tx dialect.Querier) (err error) {
		asked = time.Now()
		n, err = tx.Exec(ctx, query, b.Args()...)
		return err
	})
	return asked, n, err
}

// Hold acquires the lease (it waits, as Acquire does), runs fn, renews the term in the
// background, and releases it when fn has returned. fn's context ends when the term
// does; what fn does after that is not guarded any more. Hold answers fn's error, or one
// with the code LeaseLost when the term ended before fn did.
func (l *Lease) Hold(ctx context.Context, fn func(ctx context.Context, t *Term) error) error {
	t, err := l.Acquire(ctx)
	if err != nil {
		return err
	}
	return t.Hold(ctx, fn)
}

var unfitForOwner = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// newOwner is the owner of a new term.
func (l *Lease) newOwner() string {
	if l.instance == "" {
		return newOwner()
	}
	return l.instance + "/" + unlikeAnyOther()
}

func unlikeAnyOther() string { return strings.ToLower(rand.Text()) }

// newOwner is host/pid/random: the first two tell operators where to look, the last
// is what makes it unlike any other.
func newOwner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	host = unfitForOwner.ReplaceAllString(host, "-")
	return fmt.Sprintf("%s/%d/%s", host[:min(len(host), 60)], os.Getpid(), strings.ToLower(rand.Text()))
}
