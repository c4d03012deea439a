package consume

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/lease"
)

// Consumer holds the settings of a consumer. The fields are documented at rowfeed.Consumer.
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
	DeliverShard   func(shard int, epoch int64) func(ctx context.Context, entries []feedtype.Entry) ([]feedtype.Refusal,
		error)
	Lease      time.Duration
	SoleLease  string
	Target     string
	Epoch      int64
	Retry      feedtype.Retry
	OnFailure  feedtype.OnFailure
	OnRefused  func(ctx context.Context, tx *sql.Tx, refusal error) error
	OnBegin    func(ctx context.Context, tx *sql.Tx) error
	OnComplete func(ctx context.Context, tx *sql.Tx) error
}

const (
	defaultAttempts    = 5
	defaultBackoff     = 100 * time.Millisecond
	defaultMaxBackoff  = 30 * time.Second
	defaultWait        = 10 * time.Second
	firstIdle, maxIdle = time.Millisecond, 250 * time.Millisecond
	// asideWait limits the wait of a request while keys are set aside. Releases are looked for in between.
	asideWait = time.Second
	// pausedPoll is how often a paused consumer reads its cursor, and cursorPoll how often an idle one
	// does, to notice that an operator has moved it.
	pausedPoll, cursorPoll = time.Second, time.Second
)

// defaultConsumerLease is the default of Consumer.Lease.
const defaultConsumerLease = 10 * time.Second

func (c *Consumer) validate() error {
	switch {
	case !feedtype.ValidConsumer(c.Name):
		return feedtype.Invalid("name", "%q is not a consumer name: a letter or digit, then up to 99 of letters, "+
			"digits, '_', '-', '.' and ':'", c.Name)
	case c.Source == nil:
		return feedtype.Invalid("source", "there is none: give a *Feed, or a feedhttp.Client")
	case c.DB == nil:
		return feedtype.Invalid("db", "there is none: give the database for the cursor and the effects")
	case number(c.Handle != nil)+number(c.Deliver != nil)+number(c.DeliverShard != nil) != 1:
		return feedtype.Invalid("handle", "give one function for entries: Handle or Deliver, or a RelayConsumer's "+
			"DeliverShard")
	case c.Handle == nil && (c.OnBegin != nil || c.OnComplete != nil):
		return feedtype.Invalid("deliver",
			"OnBegin and OnComplete are called in the transaction of Handle: set Handle, or omit them")
	case c.Epoch < 0:
		return feedtype.Invalid("epoch", "%d must not be negative", c.Epoch)
	case c.ShardCount > 1 && (c.OnBegin != nil || c.OnComplete != nil):
		return feedtype.Invalid("shard count", "OnBegin and OnComplete are about a pass over the whole feed: set it "+
			"to 1")
	case c.Epoch > 0 && c.ShardCount > 1:
		return feedtype.Invalid("epoch", "each of %d shards has a lease of its own: set Epoch to 0", c.ShardCount)
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

// withDefaults returns a copy of c in which unset fields have their defaults.
func (c *Consumer) withDefaults() *Consumer {
	full := *c
	full.Wait = cmp.Or(c.Wait, defaultWait)
	full.Lease = cmp.Or(c.Lease, defaultConsumerLease)
	full.Retry.MaxAttempts = cmp.Or(c.Retry.MaxAttempts, defaultAttempts)
	full.Retry.Backoff = cmp.Or(c.Retry.Backoff, defaultBackoff)
	full.Retry.MaxBackoff = cmp.Or(c.Retry.MaxBackoff, max(defaultMaxBackoff, full.Retry.Backoff))
	return &full
}

// watermarks asks the source how far each shard of a ULID feed is. A source that is no feedtype.ShardSource only lists
// its shards: their watermarks are empty then.
func (c *Consumer) watermarks(ctx context.Context, info *feedtype.Info) (*feedtype.Standings, error) {
	if source, can := c.Source.(feedtype.ShardSource); can {
		return source.Standings(ctx, "", 0)
	}
	if info.MoreShardIDs {
		return nil, &feedtype.Error{Code: feedtype.Refused, Object: feedtype.FeedObject(info.Name),
			Cause: fmt.Sprintf("it has more than %d shards, and this source does not list the others",
				feedtype.MaxShardIDs),
			Next: "read it from a source that is a rowfeed.ShardSource, as a *Feed and a feedhttp.Client are"}
	}
	now := &feedtype.Standings{Shards: make(map[int]string, len(info.ShardIDs))}
	for _, shard := range info.ShardIDs {
		now.Shards[shard] = ""
	}
	return now, nil
}

// deliverOf calls DeliverShard. A panic becomes an error, as a panic of Deliver does.
func (c *Consumer) deliverOf(shard int,
	epoch int64) (deliver func(context.Context, []feedtype.Entry) ([]feedtype.Refusal, error), err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	if deliver = c.DeliverShard(shard, epoch); deliver == nil {
		err = errors.New("it answered no function")
	}
	return deliver, err
}
