package rowfeed

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/lease"
)

// Consumer reads a feed and hands its entries, page by page, to Handle. What Handle
// does in the transaction that it is given, and the cursor behind the page, are
// committed together: whatever crashes, and whoever else runs under the same name,
// each page takes effect exactly once.
//
// Any number of processes may run a consumer under one name. Their cursor writes are
// compared with what they read: one of them gets a page through, the others' effects
// are rolled back. With one shard they all try; of more each has its share, through
// leases, and hands over what others are to have when the page in hand is committed.
//
// Set the fields, then call Run or RunOnce, one at a time.
type Consumer struct {
	// Name of the consumer: a letter or digit, then up to 99 of letters, digits, '_',
	// '-', '.' and ':'. Whoever has the same name and the same feed shares the cursor.
	// The feed is known by its name alone: feeds of one name in two databases need
	// consumers of two names, or each loses what the other has read.
	Name string
	// Source is what is read: a *Feed, or a feedhttp.Client.
	Source feedtype.Source
	// DB is where the cursor is, and where the effects go: the feed's own database or
	// another one.
	DB *DB
	// ShardCount is the number of shards, each with a cursor of its own, that work at the
	// same time; 0 means as many as the consumer has, which is one where it is new. It is at
	// most the number of the feed's data shards (see FeedSpec.DataShards). Entries come in
	// order within a shard, and a key is always in one shard; Handle and Deliver are called
	// for several shards at once. Whoever starts with another number than the consumer had
	// changes it: entries come again then, from the lowest of the cursors that a new shard
	// takes over from, and instances that are still at work with the former number end with
	// the code Conflict. Each shard at work may have a transaction open: of a pool that is
	// bounded (sql.DB.SetMaxOpenConns) they leave two connections for pages and leases, and
	// a pool of fewer than three has one transaction at a time. Shards for which there is no
	// room wait for others' handlers to end. In a pool of one so do the leases: a handler
	// that takes longer than Lease loses its shard there, is rolled back, and begins again.
	ShardCount int
	// KeepShardCount makes Run and RunOnce end with the code Conflict where the consumer's
	// cursors are of another number of shards, instead of changing it. It is for an instance
	// that has divided them when it was started (see Divide) and has waited since, or runs
	// again: it must not take back what a later one has changed.
	KeepShardCount bool
	// Start is where a consumer without a cursor begins: Beginning (the default), Now,
	// or At a time. The place is looked up once, when the consumer first reaches the feed,
	// and everything that is published after that moment comes, be it after seconds or
	// months. On a feed without any entry Now and At are the beginning, which there is the
	// same. Of shards that are feeds by themselves that is looked up for each, before any is
	// read, a page for each of them; one that comes later begins at its beginning.
	Start feedtype.Cursor
	// Limit is the greatest number of entries handed over at once. Default: it adapts between
	// DefaultLimit and 5000, and doubles while more waits and a batch is through, transaction and
	// all, within a tenth of a second. After a failure it begins anew.
	Limit int
	// NoReadAhead has each page read when the batch before it is through. By default it is read
	// while that is handled, unless batches take a second or longer, so that its rows may be as they were before the handler's own
	// writes: whoever changes in Handle the rows that he is handed may want it. Nothing is lost
	// either way, since what has changed comes again.
	NoReadAhead bool
	// Wait is how long the source may keep a request waiting for an entry; a consumer
	// without work learns of a seek or reset after it. Default 10 s.
	Wait time.Duration
	// Handle applies entries, in their order, in the transaction. It must not end the
	// transaction, which some databases' DDL does too (the consumer then stops), and
	// answers the errors of its statements. It does nothing that a rollback does not
	// undo, or something that may be done twice; see MarkProcessed. It is called again
	// with the same entries, or some of them, after a failure; its panics are failures.
	// On SQLite it holds the only write lock: it should not wait for a network.
	Handle func(ctx context.Context, tx *sql.Tx, entries []feedtype.Entry) error
	// Deliver takes Handle's place where effects go elsewhere than into DB: a message, a
	// request. It is called outside any transaction, and when it has answered the cursor is
	// stored: a crash in between hands the same entries, or newer ones of their keys, over
	// again. It answers the entries that the receiver does not take; all others are
	// delivered. With an error nothing is: it is called again, for as long as it takes.
	Deliver func(ctx context.Context, entries []feedtype.Entry) ([]Refusal, error)
	// DeliverShard takes Deliver's place where that has something of its own for each shard,
	// or is to know the epoch. It is called whenever this instance begins with a shard, with
	// the epoch of its lease (Epoch, where there is but one shard), and answers what takes
	// that shard's entries. If it answers nothing, or panics, Run and RunOnce end.
	DeliverShard func(shard int, epoch int64) func(ctx context.Context, entries []feedtype.Entry) ([]Refusal, error)
	// Lease is the term of the leases through which instances share more than one shard: for
	// so long a shard rests, at most, after the instance that had it was killed. Default 10 s.
	Lease time.Duration
	// SoleLease is the name of the lease under which an instance works that has the
	// consumer's only shard; it goes with Epoch. With Deliver, one that begins with several
	// shards waits until nobody holds it, and for leases of another number of shards anyway:
	// else what a former instance has under way would come after what is newer.
	SoleLease string
	// Epoch is that of the lease (Term.Epoch) under which the consumer works; 0 for none.
	// The cursor cannot be written any more under an earlier one. A consumer that finds a
	// later one there ends with code LeaseLost.
	Epoch int64
	// Retry says how failures of Handle, and refusals, are retried.
	Retry Retry
	// OnFailure says what happens when the attempts are used up. Default: Stop.
	OnFailure OnFailure
	// OnRefused makes the consumer begin again at the beginning when the source refuses
	// its cursor (codes CursorAhead, GenerationChanged, TombstonesExpired, EntriesExpired), instead of
	// stopping with that error. It is called in the transaction that sets the cursor
	// back; rows that the new pass does not bring are to be removed when it is complete,
	// see OnComplete. With EntriesExpired the beginning is that of what is kept: the
	// entries in between never come. Of several shards all begin again at once, but for these
	// two, which concern only the one that was refused: the rows that it is not brought any more
	// are then among those of its keys, and no function tells when the pass is complete. Whoever
	// has to remove them notes the generation and position of each row's last entry, or has
	// one shard. A shard that is a feed by itself begins again by itself, whatever the code.
	OnRefused func(ctx context.Context, tx *sql.Tx, refusal error) error
	// OnBegin is called before anything else in a transaction of Handle whose cursor is at
	// the beginning: a pass begins, and whatever the receiver has is of an older one. It
	// may be called more than once until the first entry was handled.
	OnBegin func(ctx context.Context, tx *sql.Tx) error
	// OnComplete is called in the transaction whose page completes a pass from the
	// beginning: all that the feed had when the pass began has been handed over. A feed
	// without any entry may complete its pass more than once.
	OnComplete func(ctx context.Context, tx *sql.Tx) error
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

// Run handles entries until ctx ends, then answers nil. It outlives databases and
// servers that go away. It ends with an error when the cursor is refused (see
// OnRefused), when an entry cannot be handled (see Stop), or when it cannot work
// at all, such as without rowfeed's tables.
func (c *Consumer) Run(ctx context.Context) error {
	err := c.consume(ctx, false)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// RunOnce handles entries until the feed's head is reached, the head of the moment.
// A paused consumer is refused with code ConsumerPaused. Unlike Run it does not wait
// for a database or server that cannot be reached.
func (c *Consumer) RunOnce(ctx context.Context) error { return c.consume(ctx, true) }

func (c *Consumer) validate() error {
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
