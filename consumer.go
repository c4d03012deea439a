package rowfeed

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/consume"
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
	// NoReadAhead delays the read of a page until the batch before it is done. By default the page is read while that
	// batch is handled, unless batches take a second or longer. Its rows may then be as they were before the handler's
	// own writes, so set it if Handle changes rows of the feed. Nothing is lost either way: changed rows come again.
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
	Deliver func(ctx context.Context, entries []feedtype.Entry) ([]feedtype.Refusal, error)
	// DeliverShard takes Deliver's place where that has something of its own for each shard,
	// or is to know the epoch. It is called whenever this instance begins with a shard, with
	// the epoch of its lease (Epoch, where there is but one shard), and answers what takes
	// that shard's entries. If it answers nothing, or panics, Run and RunOnce end.
	DeliverShard func(shard int, epoch int64) func(ctx context.Context, entries []feedtype.Entry) ([]feedtype.Refusal, error)
	// Lease is the ttl of the leases through which instances share more than one shard: for
	// so long a shard rests, at most, after the instance that had it was killed. Default 10 s.
	Lease time.Duration
	// SoleLease is the name of the lease under which an instance works that has the
	// consumer's only shard; it goes with Epoch. With Deliver, one that begins with several
	// shards waits until nobody holds it, and for leases of another number of shards anyway:
	// else what a former instance has under way would come after what is newer.
	SoleLease string
	// Epoch is that of the lease (Claim.Epoch) under which the consumer works; 0 for none.
	// The cursor cannot be written any more under an earlier one. A consumer that finds a
	// later one there ends with code LeaseLost.
	Epoch int64
	// Retry says how failures of Handle, and refusals, are retried.
	Retry feedtype.Retry
	// OnFailure says what happens when the attempts are used up. Default: Stop.
	OnFailure feedtype.OnFailure
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

// set is the consumer as it is set.
func (c *Consumer) set() *consume.Consumer {
	set := &consume.Consumer{Name: c.Name, Source: c.Source, ShardCount: c.ShardCount, KeepShardCount: c.KeepShardCount,
		Start: c.Start, Limit: c.Limit, NoReadAhead: c.NoReadAhead, Wait: c.Wait, Handle: c.Handle,
		Deliver: c.Deliver, DeliverShard: c.DeliverShard, Lease: c.Lease, SoleLease: c.SoleLease, Epoch: c.Epoch, Retry: c.Retry,
		OnFailure: c.OnFailure, OnRefused: c.OnRefused, OnBegin: c.OnBegin, OnComplete: c.OnComplete}
	if c.DB != nil {
		set.DB = c.DB.consumers
	}
	return set
}

// Run handles entries until ctx ends, then answers nil. It outlives databases and
// servers that go away. It ends with an error when the cursor is refused (see
// OnRefused), when an entry cannot be handled (see Stop), or when it cannot work
// at all, such as without rowfeed's tables.
func (c *Consumer) Run(ctx context.Context) error {
	err := c.set().Consume(ctx, false)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// RunOnce handles entries until the feed's head is reached, the head of the moment.
// A paused consumer is refused with code ConsumerPaused. Unlike Run it does not wait
// for a database or server that cannot be reached.
func (c *Consumer) RunOnce(ctx context.Context) error { return c.set().Consume(ctx, true) }

// Divide sees to it that the consumer has a cursor for each of its ShardCount shards, as Run
// and RunOnce do when they begin, and changes their number where it is another. It is for
// those who wait for a lease before they call Run: see KeepShardCount. Like RunOnce it does
// not wait for a database or server that cannot be reached.
func (c *Consumer) Divide(ctx context.Context) error { return c.set().Divide(ctx) }

// MarkProcessed notes, in the transaction of a receiver's effects, that an entry has
// been processed, and answers whether it is the first time. It is for receivers that
// get entries at least once, from a relay or by their own fetching, and whose effects
// must not happen twice: skip the effects when it is not the first time. Two receivers
// of one entry at once take turns.
//
// consumer is any name for who processes, as in Consumer.Name. The entry is told by
// feed, generation, shard and position. A Consumer needs none of this for what its
// Handle does in its transaction.
func (db *DB) MarkProcessed(
	ctx context.Context,
	tx Tx,
	consumer, feed string,
	e feedtype.Entry,
) (first bool, err error) {
	return db.consumers.MarkProcessed(ctx, tx, consumer, feed, e)
}
