package rowfeed

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/consume"
)

// Consumer reads a feed and passes its entries, page by page, to Handle. The effects of Handle in its transaction are
// committed together with the cursor behind the page. So each page takes effect exactly once, even after a crash, and
// even if other processes run the same consumer.
//
// Any number of processes may run a consumer under one name. Each compares its cursor write with the cursor that it
// read. One process succeeds with a page, and the effects of the others are rolled back. With one shard, all
// processes try every page. With several shards, each process works on its share of them, under leases. It hands a
// shard over after the transaction of its current page.
//
// Set the fields, then call Run or RunOnce, one call at a time. Set either Handle or Deliver.
type Consumer struct {
	// Name is the name of the consumer: a letter or digit, then up to 99 of letters, digits, '_', '-', '.' and ':'.
	// Consumers with the same name and the same feed share the cursor. The feed is known by its name only. If feeds
	// of two databases have the same name, give their consumers different names. Otherwise each misses what the other
	// has read.
	Name string
	// Source is the feed to read: a *Feed, or a feedhttp.Client.
	Source feedtype.Source
	// DB is the database of the cursor and of Handle's effects. It may be the feed's own database or another one.
	DB *DB
	// ShardCount is the number of shards that are read in parallel, each with a cursor of its own. 0 means the number
	// that the consumer already has, or 1 for a new consumer. The maximum is the number of the feed's data shards
	// (see FeedSpec.DataShards). Entries are in order within a shard, and a key is always in one shard. The exception
	// is capture column with a FeedSpec.ShardColumn that is not in the key: rows can move, and deletes are in all
	// shards, so an effect must not replace one of the same key with a higher position. Handle and Deliver are called
	// for several shards at the same time.
	//
	// An instance that starts with another number than the stored one changes it. Some entries then come again,
	// because each new shard begins at the lowest of the cursors that it takes over from. Instances that still work
	// with the former number end with the code Conflict.
	//
	// Each shard may have a transaction open. In a pool with a limit (sql.DB.SetMaxOpenConns), the shards leave two
	// connections for pages and leases. A pool of fewer than three connections has one transaction at a time. A shard
	// without a connection waits for the handler of another shard to end. In a pool of one connection, the renewals
	// of the leases wait as well: a handler that takes longer than Options.Lease loses its shard, is rolled back, and
	// begins again.
	ShardCount int
	// Handle applies entries, in their order, in the transaction tx. It must not end the transaction, and must return
	// the errors of its statements. On some databases DDL ends the transaction as well; the consumer then stops.
	// Handle may only do what a rollback undoes, or what may be done twice; see MarkProcessed. After a failure it is
	// called again with all or some of the same entries. A panic is a failure. On SQLite tx holds the only write
	// lock, so Handle should not wait for a network.
	Handle func(ctx context.Context, tx *sql.Tx, entries []feedtype.Entry) error
	// Deliver replaces Handle for effects outside DB, such as messages and requests. It is called outside any
	// transaction. The cursor is stored after it has returned. After a crash in between, the same entries, or newer
	// versions of their keys, are delivered again. Deliver returns the entries that the receiver refused; all others
	// count as delivered. If it returns an error, no entry counts as delivered, and it is called again without a
	// limit on the attempts.
	Deliver func(ctx context.Context, entries []feedtype.Entry) ([]feedtype.Refusal, error)
	// OnFailure says what happens when the attempts are used up. Default: Stop.
	OnFailure feedtype.OnFailure
	// Options are settings with defaults.
	Options ConsumerOptions
}

// ConsumerOptions are settings of a Consumer. The zero value has all defaults.
type ConsumerOptions struct {
	// Start is where a consumer without a cursor begins: Beginning (the default), Now, or At a time. The position is
	// determined once, when the consumer first reaches the feed. Everything that is published after that comes. On a
	// feed without entries, Now and At mean the beginning. In a ULID feed the position is determined for every shard
	// before the first entry is read, with one fetch per shard. A shard that appears later is read from its
	// beginning.
	Start feedtype.Cursor
	// Limit is the maximum number of entries per call of Handle or Deliver, up to MaxLimit of package feedtype. 0
	// means that it adapts between DefaultLimit (100) and 5000. It doubles while more entries wait and a batch takes
	// less than 100 ms, including its transaction. It halves after a batch of more than 500 ms. After a failure it is
	// DefaultLimit again.
	Limit int
	// NoReadAhead delays the read of a page until the batch before it is done. By default the page is read while that
	// batch is handled, unless batches take a second or longer. Its rows may then be older than the handler's own
	// writes, so set it if Handle changes rows of the feed. Nothing is lost either way: changed rows come again.
	NoReadAhead bool
	// Wait is the maximum time that the source may hold a request while it has no entry. An idle consumer notices a
	// seek or reset after that time. Default 10 s.
	Wait time.Duration
	// Lease is the time to live of the leases by which instances share several shards. After an instance was killed,
	// its shards rest for at most that time. Default 10 s.
	Lease time.Duration
	// Retry says how failures of Handle, and refused entries, are retried.
	Retry feedtype.Retry
	// OnRefused, if set, lets the consumer restart at the beginning if the source refuses its cursor (codes
	// CursorAhead, HistoryLost, GenerationChanged, TombstonesExpired, EntriesExpired). Otherwise the consumer stops
	// with that error, but see Stop for consumers with several shards. OnRefused is called in the transaction that
	// resets the cursor. When the new pass is complete, remove the rows that it did not bring: see OnComplete. After
	// EntriesExpired the new pass begins with the oldest kept entry: the purged entries never come.
	//
	// If a consumer has several shards, all of them restart together. With TombstonesExpired and EntriesExpired only
	// the refused shard restarts. Then only keys of that shard can have rows to remove, and no function reports that
	// its pass is complete. To remove such rows, store the generation and position of each row's last entry, or use
	// one shard. A shard of a ULID feed always restarts alone.
	OnRefused func(ctx context.Context, tx *sql.Tx, refusal error) error
	// OnBegin is called first in a transaction of Handle whose cursor is at the beginning. A pass begins, and
	// everything that the receiver has is of an earlier pass. OnBegin may be called more than once until the first
	// entry is handled. OnBegin and OnComplete need Handle and one shard, and a feed that is not a ULID feed.
	OnBegin func(ctx context.Context, tx *sql.Tx) error
	// OnComplete is called in the transaction whose page completes a pass from the beginning: everything that the
	// feed had when the pass began has been handled. A feed without entries may complete its pass more than once.
	OnComplete func(ctx context.Context, tx *sql.Tx) error
}

// settings returns the settings for package consume.
func (c *Consumer) settings() *consume.Consumer {
	o := &c.Options
	set := &consume.Consumer{Name: c.Name, Source: c.Source, ShardCount: c.ShardCount,
		Handle: c.Handle, Deliver: c.Deliver, OnFailure: c.OnFailure,
		Start: o.Start, Limit: o.Limit, NoReadAhead: o.NoReadAhead, Wait: o.Wait, Lease: o.Lease, Retry: o.Retry,
		OnRefused: o.OnRefused, OnBegin: o.OnBegin, OnComplete: o.OnComplete}
	if c.DB != nil {
		set.DB = c.DB.consumers
	}
	return set
}

// Run handles entries until ctx ends, and then returns nil. It survives databases and servers that cannot be reached.
// It returns an error if the cursor is refused (see ConsumerOptions.OnRefused), if an entry cannot be handled (see
// Stop), or if it cannot work at all, for example without rowfeed's tables.
func (c *Consumer) Run(ctx context.Context) error { return run(ctx, c.settings()) }

// RunOnce handles entries up to the head of the feed at that time. A paused consumer is refused with the code
// ConsumerPaused. Unlike Run, it does not wait for a database or server that cannot be reached.
func (c *Consumer) RunOnce(ctx context.Context) error { return c.settings().Consume(ctx, true) }

func run(ctx context.Context, c *consume.Consumer) error {
	err := c.Consume(ctx, false)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// MarkProcessed stores, in the transaction of a receiver's effects, that an entry was processed. first tells whether
// it was processed for the first time. It is for receivers that get entries at least once, from a relay or by
// fetching them, and whose effects must happen once. Skip the effects if first is false. If two receivers process one
// entry at the same time, the second waits for the first.
//
// consumer is the name of the receiver, with the syntax of Consumer.Name. The entry is identified by feed,
// generation, shard and position. A Consumer with Handle does not need MarkProcessed for effects in its transaction.
func (db *DB) MarkProcessed(
	ctx context.Context,
	tx Tx,
	consumer, feed string,
	e feedtype.Entry,
) (first bool, err error) {
	return db.consumers.MarkProcessed(ctx, tx, consumer, feed, e)
}
