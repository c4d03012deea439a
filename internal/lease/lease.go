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

// Lease is a named job that a single holder may do at a time, among any number of processes. A holder has a Claim,
// which ends unless it is renewed in time. The next claim has a higher epoch. The lease's row decides, on the
// database's clock.
//
// A lease spreads work and guards effects outside the database, as well as an expiring claim can. A holder that was
// paused may continue for a moment after another holder took over. Effects in the same database are safe if their
// transaction calls Claim.Assert. Send the epoch with all other effects, so that the receiver can refuse a lower epoch.
type Lease struct {
	// LookEvery is the maximum pause between two reads of a lease that another holder has. The first pauses are
	// shorter. Default 5 s.
	LookEvery time.Duration
	// Above, if set, returns an epoch that the next claim's epoch must exceed. A lease that replaces another one needs
	// it, since receivers that refuse lower epochs do not know the names of leases. It is called right before the lease
	// is acquired, after any waiting.
	Above func(ctx context.Context) (int64, error)
	// StandBy, if set, is called with the present holder each time Acquire or Hold finds the lease taken. Its error
	// ends the waiting, with that error.
	StandBy func(ctx context.Context, holder *feedtype.LeaseStatus) error

	store *store.Store
	Name  string
	TTL   time.Duration
	// instance, if set, begins the owners of all claims of a group's member, and so shows which member has a job.
	instance string
}

const (
	// defaultLookEvery is the default of Lease.LookEvery.
	defaultLookEvery = 5 * time.Second
	// MinTTL leaves time for a round trip.
	MinTTL = 10 * time.Millisecond
	MaxTTL = 365 * 24 * time.Hour
	// PartingTimeout bounds the statements that release a lease after the caller's context has ended.
	PartingTimeout = 2 * time.Second
)

var leaseNamePattern = regexp.MustCompile(`^[!-~]{1,100}$`)

// New makes a lease without asking the database. A name has 1 to 100 printable ASCII characters without blanks. The
// names "publish:…", "consumer:…" and "relay:…" are rowfeed's own. A claim ends ttl after its last renewal, so a killed
// holder is replaced at most that much later. 10 s is a good choice.
func New(st *store.Store, name string, ttl time.Duration) *Lease {
	return &Lease{store: st, Name: name, TTL: ttl}
}

func leaseObject(name string) string { return fmt.Sprintf("lease %q", name) }

func (l *Lease) validate() error {
	switch {
	case !leaseNamePattern.MatchString(l.Name):
		return feedtype.Invalid("lease",
			"%q is not a valid name: it needs 1 to 100 printable ASCII characters without blanks", l.Name)
	case l.TTL < MinTTL || l.TTL > MaxTTL:
		return feedtype.Invalid("ttl", "%s must be from %s to %s", l.TTL, MinTTL, MaxTTL)
	case l.LookEvery < 0:
		return feedtype.Invalid("look every", "%s must not be negative", l.LookEvery)
	}
	return nil
}

// TryAcquire begins a claim if the lease is free. Otherwise the error has the code LeaseTaken and names the holder,
// also if that is the same process.
func (l *Lease) TryAcquire(ctx context.Context) (*Claim, error) {
	c, taken, err := l.try(ctx)
	if taken != nil {
		return nil, &feedtype.Error{Code: feedtype.LeaseTaken, Object: leaseObject(l.Name),
			Cause: fmt.Sprintf("%s has held it since %s (epoch %d)",
				taken.Owner, taken.Since.Format(time.RFC3339), taken.Epoch),
			Next: "wait until it is released or expires, or use another name"}
	}
	return c, err
}

// Acquire begins a claim, and waits while another holder has the lease. It reads the lease after a pause that grows,
// with jitter, to LookEvery, and no later than the holder's claim would end. It has no transaction open while it waits.
// Errors of the database end the waiting.
func (l *Lease) Acquire(ctx context.Context) (*Claim, error) {
	longest := l.LookEvery
	if longest == 0 {
		longest = defaultLookEvery
	}
	for wait := longest / 16; ; wait = min(2*wait, longest) {
		c, taken, err := l.try(ctx)
		if taken == nil {
			return c, err
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

// try returns a claim, or the present holder, or an error.
func (l *Lease) try(ctx context.Context) (*Claim, *feedtype.LeaseStatus, error) {
	if err := l.validate(); err != nil {
		return nil, nil, err
	}
	for attempt := 1; ; attempt++ {
		seen, err := Read(ctx, l.store, l.store.On(), l.Name)
		switch {
		case err != nil:
			return nil, nil, l.store.Fail(leaseObject(l.Name), "read its holder", err)
		case Held(seen) || attempt > store.MaxAttempts: // the latter: another holder was faster each time
			return nil, seen, nil
		}
		if c, err := l.acquire(ctx, seen); c != nil || err != nil {
			return c, nil, l.store.Fail(leaseObject(l.Name), "acquire it", err)
		}
	}
}

// acquire begins the claim after the one seen, by one conditional statement. It returns neither claim nor error if
// another holder was faster. Each claim has a new owner, because an epoch can come again after a failover that lost
// commits.
func (l *Lease) acquire(ctx context.Context, seen *feedtype.LeaseStatus) (*Claim, error) {
	above := int64(0)
	if l.Above != nil {
		var err error
		if above, err = l.Above(ctx); err != nil {
			return nil, err
		}
	}
	c := newClaim(l, l.newOwner(), max(seen.Epoch, above)+1)
	name, args := "acquire_first", c.own()
	args["ttl"] = l.TTL.Microseconds()
	if seen.Epoch > 0 {
		name, args["seen"] = "acquire", seen.Epoch
	}
	var asked time.Time
	err := l.store.InTx(ctx, dialect.ForRecord, "acquire lease "+l.Name, func(tx dialect.Querier) error {
		asked = time.Now()
		n, err := l.store.Exec(ctx, tx, statements, name, args)
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
		_ = c.releaseLeftover(ctx)
		return nil, err
	default:
		// The COMMIT may have taken effect. A renewal tells: it waits for a commit that is still under way, and affects
		// the row only if this claim has it.
		var n int64
		var unknown error
		if asked, n, unknown = l.renewClaims(ctx, c); unknown != nil || n != 1 {
			return nil, err
		}
	}
	if err := c.start(asked); err != nil {
		_ = c.releaseLeftover(ctx)
		return nil, err
	}
	begun := feedtype.ClaimEvent{Lease: l.Name, Epoch: c.epoch}
	if seen.State == feedtype.LeaseExpired {
		begun.Kind = feedtype.ClaimTakenOver
	}
	l.store.Observer.Claim(begun)
	return c, nil
}

// renewClaims gives a full ttl to the claims that still hold, and returns how many. A group's member has several
// claims. Asked is a moment before the database read its clock.
func (l *Lease) renewClaims(ctx context.Context, claims ...*Claim) (asked time.Time, n int64, err error) {
	one := l.store.Statement(statements, "claim")
	names, all := make([]string, len(claims)), make([]dialect.Built, len(claims))
	for i, c := range claims {
		names[i], all[i] = c.lease.Name, one.With(c.own())
	}
	args := dialect.Args{"ttl": l.TTL.Microseconds(), "names": dialect.List(names),
		"claims": dialect.Joined(" OR ", all)}
	err = l.store.InTx(ctx, dialect.ForRecord, "renew lease "+l.Name, func(tx dialect.Querier) (err error) {
		asked = time.Now()
		n, err = l.store.Exec(ctx, tx, statements, "renew", args)
		return err
	})
	return asked, n, err
}

// Hold acquires the lease (it waits, as Acquire does), runs fn, renews the claim in the background, and releases it
// when fn has returned. The context of fn ends with the claim. What fn does after that is not guarded. Hold returns
// fn's error, or an error with the code LeaseLost if the claim ended before fn did.
func (l *Lease) Hold(ctx context.Context, fn func(ctx context.Context, c *Claim) error) error {
	c, err := l.Acquire(ctx)
	if err != nil {
		return err
	}
	return c.Hold(ctx, fn)
}

var notInOwner = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// newOwner is the owner of a new claim.
func (l *Lease) newOwner() string {
	if l.instance == "" {
		return newOwner()
	}
	return l.instance + "/" + randomText()
}

func randomText() string { return strings.ToLower(rand.Text()) }

// newOwner is host/pid/random. Host and pid show operators where the holder runs, and the random text makes it unique.
func newOwner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	host = notInOwner.ReplaceAllString(host, "-")
	return fmt.Sprintf("%s/%d/%s", host[:min(len(host), 60)], os.Getpid(), randomText())
}
