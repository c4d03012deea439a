package rowfeed

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/lease"
	"github.com/rowfeed/rowfeed/internal/store"
)

// consumer is a Consumer with its database; see there.
type consumer struct {
	Name           string
	Source         feedtype.Source
	DB             *consumers
	ShardCount     int
	KeepShardCount bool
	Start          feedtype.Cursor
	Limit          int
	NoReadAhead    bool
	Wait           time.Duration
	Handle         func(ctx context.Context, tx *sql.Tx, entries []feedtype.Entry) error
	Deliver        func(ctx context.Context, entries []feedtype.Entry) ([]Refusal, error)
	DeliverShard   func(shard int, epoch int64) func(ctx context.Context, entries []feedtype.Entry) ([]Refusal, error)
	Lease          time.Duration
	SoleLease      string
	Epoch          int64
	Retry          Retry
	OnFailure      OnFailure
	OnRefused      func(ctx context.Context, tx *sql.Tx, refusal error) error
	OnBegin        func(ctx context.Context, tx *sql.Tx) error
	OnComplete     func(ctx context.Context, tx *sql.Tx) error
}

// consumers are those of a database.
type consumers struct {
	store  *store.Store
	tracer feedtype.Tracer
}

// Retry is how often and how quickly a failed page is tried again.
type Retry struct {
	// MaxAttempts of a page. After them its entries are tried one by one, so that the
	// key at fault is known and the others get through. Default 5.
	MaxAttempts int
	// Backoff is the pause after the first failure; it doubles up to MaxBackoff, with
	// jitter. Defaults 100 ms and 30 s.
	Backoff, MaxBackoff time.Duration
}

// OnFailure is what a consumer does with an entry that cannot be handled.
type OnFailure int

const (
	// Stop ends Run with the handler's error. Nothing is passed over. With several shards, and
	// where each is a feed by itself, be there one, Run goes on with the others: the shard of the entry rests, says so (Observer.Trouble,
	// ConsumerStatus.Failure), and is tried again after Retry.MaxBackoff, or when an operator has
	// moved it, here or wherever it is handed over to. So it is with a shard that is refused with TombstonesExpired
	// or EntriesExpired.
	Stop OnFailure = iota
	// SetAside makes the key a dead letter and goes on with the others. Later versions
	// of the key join it, so that none overtakes it, until it is retried or dropped.
	SetAside
)

const (
	defaultAttempts    = 5
	defaultBackoff     = 100 * time.Millisecond
	defaultMaxBackoff  = 30 * time.Second
	defaultWait        = 10 * time.Second
	firstIdle, maxIdle = time.Millisecond, 250 * time.Millisecond
	// asideWait is how long a request may wait while keys are set aside: their release
	// is asked for in between.
	asideWait = time.Second
	// pausedPoll is how often a paused consumer looks whether it may go on, and
	// cursorPoll how often one without work looks whether its cursor was moved.
	pausedPoll, cursorPoll = time.Second, time.Second
)

var consumerNamePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}$`)

func consumerObject(name, feed string) string {
	return fmt.Sprintf("consumer %q of feed %q", name, feed)
}

func (c *consumer) validate() error {
	switch {
	case !consumerNamePattern.MatchString(c.Name):
		return feedtype.Invalid("name", "%q is no name of a consumer: a letter or digit, then up to 99 of letters, digits, '_', '-', '.' and ':'", c.Name)
	case c.Source == nil:
		return feedtype.Invalid("source", "there is none: give a *Feed, or a feedhttp.Client")
	case c.DB == nil:
		return feedtype.Invalid("db", "there is none: give the database for the cursor and the effects")
	case !exactlyOne(c.Handle != nil, c.Deliver != nil, c.DeliverShard != nil):
		return feedtype.Invalid("handle", "give one function for entries: Handle, Deliver or DeliverShard")
	case c.Handle == nil && (c.OnBegin != nil || c.OnComplete != nil):
		return feedtype.Invalid("deliver", "OnBegin and OnComplete belong to Handle's transaction")
	case c.Epoch < 0:
		return feedtype.Invalid("epoch", "%d must not be negative", c.Epoch)
	case c.ShardCount > 1 && (c.OnBegin != nil || c.OnComplete != nil):
		return feedtype.Invalid("shard count", "OnBegin and OnComplete are about a pass over the whole feed: set it to 1")
	case c.Epoch > 0 && c.ShardCount > 1:
		return feedtype.Invalid("epoch", "each of %d shards has a lease of its own: leave it at 0", c.ShardCount)
	case c.Lease != 0 && (c.Lease < lease.MinTTL || c.Lease > lease.MaxTTL):
		return feedtype.Invalid("lease", "%s must be from %s to %s", c.Lease, lease.MinTTL, lease.MaxTTL)
	case c.ShardCount < 0 || c.ShardCount > feedtype.MaxDataShards:
		return feedtype.Invalid("shard count", "%d must be between 1 and %d", c.ShardCount, feedtype.MaxDataShards)
	case c.Limit < 0 || c.Limit > feedtype.MaxLimit:
		return feedtype.Invalid("limit", "%d must be between 1 and %d", c.Limit, feedtype.MaxLimit)
	case c.Wait < 0 || c.Retry.MaxAttempts < 0 || c.Retry.Backoff < 0 || c.Retry.MaxBackoff < 0:
		return feedtype.Invalid("retry", "wait, attempts and backoff must not be negative")
	case c.Start.Check() != nil:
		return c.Start.Check()
	case c.OnFailure != Stop && c.OnFailure != SetAside:
		return feedtype.Invalid("on failure", "%d is neither Stop nor SetAside", c.OnFailure)
	}
	return nil
}

func exactlyOne(all ...bool) bool {
	n := 0
	for _, is := range all {
		if is {
			n++
		}
	}
	return n == 1
}

// Later wraps an error of Handle that is no fault of the entries: something that they
// need is away. The page is then tried again, with backoff, for as long as it takes,
// and no key is set aside for it.
func Later(err error) error {
	if err == nil {
		return nil
	}
	return &laterError{err}
}

type laterError struct{ err error }

func (e *laterError) Error() string { return e.err.Error() }
func (e *laterError) Unwrap() error { return e.err }
