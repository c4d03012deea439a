package consume

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/lease"
	"github.com/rowfeed/rowfeed/internal/store"
)

// Consumer is a Consumer with its database; see there.
type Consumer struct {
	Name           string
	Source         feedtype.Source
	DB             *Consumers
	ShardCount     int
	KeepShardCount bool
	Start          feedtype.Cursor
	Limit          int
	NoReadAhead    bool
	Wait           time.Duration
	Handle         func(ctx context.Context, tx *sql.Tx, entries []feedtype.Entry) error
	Deliver        func(ctx context.Context, entries []feedtype.Entry) ([]feedtype.Refusal, error)
	DeliverShard   func(shard int, epoch int64) func(ctx context.Context, entries []feedtype.Entry) ([]feedtype.Refusal, error)
	Lease          time.Duration
	SoleLease      string
	Epoch          int64
	Retry          feedtype.Retry
	OnFailure      feedtype.OnFailure
	OnRefused      func(ctx context.Context, tx *sql.Tx, refusal error) error
	OnBegin        func(ctx context.Context, tx *sql.Tx) error
	OnComplete     func(ctx context.Context, tx *sql.Tx) error
}

// Consumers are those of a database.
type Consumers struct {
	Store  *store.Store
	Tracer feedtype.Tracer
}

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

func consumerObject(name, feed string) string {
	return fmt.Sprintf("consumer %q of feed %q", name, feed)
}

func (c *Consumer) validate() error {
	switch {
	case !feedtype.ValidConsumer(c.Name):
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
	case c.OnFailure != feedtype.Stop && c.OnFailure != feedtype.SetAside:
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
