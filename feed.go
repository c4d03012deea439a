package rowfeed

import (
	"context"
	"errors"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/inspect"
	"github.com/rowfeed/rowfeed/internal/install"
	"github.com/rowfeed/rowfeed/internal/publish"
	"github.com/rowfeed/rowfeed/internal/read"
	"github.com/rowfeed/rowfeed/internal/shards"
)

// Feed is one feed of a DB. It is safe for concurrent use.
type Feed struct {
	db      *DB
	catalog *catalog.Feed

	kinds     map[string]kind // by mode
	reader    *read.Reader
	publisher *publish.Publisher
	recorder  *publish.Recorder
	shards    *shards.Shards
	locks     *shards.Locks
	installed *install.Feed
	inspector *inspect.Inspector
}

// Name is the feed's name.
func (f *Feed) Name() string { return f.catalog.Name }

// Mode is how the feed's positions are made: ModeSequence, ModeBlocking or ModeOutbox.
func (f *Feed) Mode() string { return f.catalog.Record.Load().Mode }

// State is creating, filling, sharding or active, as last read.
func (f *Feed) State() string { return f.catalog.Record.Load().State }

// Capture is how the feed's changes are captured.
func (f *Feed) Capture() feedtype.Capture { return f.catalog.Record.Load().Capture }

// Source is the table that the feed follows.
func (f *Feed) Source() feedtype.TableName { return f.catalog.Record.Load().Source }

// Generation is the feed's generation, as last read.
func (f *Feed) Generation() int64 { return f.catalog.Generation() }

// DataShards is the number of data shards, as last read.
func (f *Feed) DataShards() int { return f.catalog.Record.Load().DataShards }

// Info describes the feed to its readers.
func (f *Feed) Info(ctx context.Context) (*feedtype.Info, error) {
	if err := f.catalog.Reload(ctx); err != nil {
		return nil, err
	}
	l, err := f.catalog.Describe(ctx, f.db.store.On())
	if err != nil {
		return nil, err
	}
	r := f.catalog.Record.Load()
	info := &feedtype.Info{Name: r.Name, Mode: r.Mode, State: r.State, Generation: r.Generation,
		Key: l.Key, Columns: l.Columns, Base64: feedtype.BinaryColumns(l.Key, l.Columns), DataShards: r.DataShards,
		ShardColumn: r.ShardColumn, PositionColumn: r.PositionColumn(),
		RetainSeconds: int64(r.Retain.Age / time.Second), RetainCount: r.Retain.Count}
	part := feedtype.Shards{}
	if r.ULIDs != nil {
		only, err := f.shards.List(ctx, info)
		if err != nil {
			return nil, err
		}
		if only == nil {
			return info, nil // each shard has a head of its own
		}
		part = One(*only)
	}
	page, err := f.Fetch(ctx, Request{After: Now, Shards: part})
	if info.Head = page.Cursor; err != nil && !(r.ULIDs != nil && errors.Is(err, Filling)) { // then there is none yet
		return nil, err
	}
	return info, nil
}

// Fetch implements Source. It reads the page and the head that belongs to it together: everything up to Page.Cursor is
// on this page or an earlier one, or is not for this reader. Rows have their present content. A consistent request
// publishes what was committed before it, and then reads.
func (f *Feed) Fetch(ctx context.Context, req feedtype.Request) (page feedtype.Page, err error) {
	ctx, end := feedtype.StartSpan(ctx, f.db.store.Tracer, feedtype.Span{Op: feedtype.SpanFetch, Feed: f.Name()})
	defer func() { end(feedtype.SpanEnd{Entries: len(page.Entries), Err: err}) }()
	if req.Consistent {
		if err := f.catchUp(ctx, req); err != nil {
			return feedtype.Page{}, err
		}
		req.Wait = 0
	}
	return f.reader.Fetch(ctx, req)
}

// catchUp publishes what was committed before a consistent request.
func (f *Feed) catchUp(ctx context.Context, req feedtype.Request) error {
	if _, err := req.EffectiveLimit(); err != nil {
		return err
	}
	if err := f.publisher.MayCatchUp(); err != nil {
		return err
	}
	part, err := f.reader.SelectPart(ctx, req.Shards)
	if err != nil {
		return err
	}
	return f.publisher.CatchUp(ctx, part.Shard, req.Wait)
}

// Standings implements ShardSource. Waiting readers share the polls of the database.
func (f *Feed) Standings(ctx context.Context, since string, wait time.Duration) (*feedtype.Standings, error) {
	return f.reader.Standings(ctx, since, wait)
}

// Publish gives positions to the waiting changes and answers the number of keys that got one. It runs passes of one
// transaction each until a pass finds no change. Several publishers at once, in any number of processes, are safe: the
// lock of the feed's row of the sequences table orders them.
func (f *Feed) Publish(ctx context.Context) (n int, err error) { return f.publisher.Publish(ctx) }

// RunPublisher publishes until ctx ends, and then answers nil. Failures that can pass (a database that is away, locks,
// a full disk) do not end it; it tells the Observer of them. It answers an error if the feed is gone or if the server
// may lose commits.
//
// The publishers of a feed in all processes take turns by the lease "publish:<feed>" (Config.PublisherLease): one
// works, the others stand by. The lease is for efficiency; the lock of the feed's sequence makes several publishers
// safe.
func (f *Feed) RunPublisher(ctx context.Context) error { return f.publisher.RunPublisher(ctx) }

// Wake makes this process's publisher of the feed look for changes at once. Call it after the commit of a transaction
// that changed the table.
func (f *Feed) Wake() { f.publisher.Wake() }

// Problems are what this process's publisher knows to be wrong with the feed. A server is ready if there are none.
func (f *Feed) Problems() []string { return f.publisher.Problems() }

// Record records, inside the caller's transaction, that the keys were written, for feeds with capture "app". Call it in
// the transaction that writes the rows, for every key inserted, updated or deleted. If a row's key changes, name the
// old and the new one. With capture "column" it is for the old key of a row whose key changes.
func (f *Feed) Record(ctx context.Context, tx Tx, keys ...Key) error {
	return f.recorder.RecordKeys(ctx, tx, dialect.Changed, keys)
}

// Republish asks, inside the caller's transaction, for new positions for the keys. Consumers receive the rows again, as
// they are then. Hidden keys are shown again. Republish appends change records and locks nothing.
func (f *Feed) Republish(ctx context.Context, tx Tx, keys ...Key) error {
	return f.recorder.RecordKeys(ctx, tx, dialect.Republished, keys)
}

// Unpublish hides the keys, inside the caller's transaction. When that is published, consumers get a delete. Later
// changes of the rows stay hidden until Republish.
func (f *Feed) Unpublish(ctx context.Context, tx Tx, keys ...Key) error {
	return f.recorder.RecordKeys(ctx, tx, dialect.Unpublished, keys)
}

// InOwnTx runs fn in a transaction of its own and wakes this process's publisher. After a deadlock or a serialization
// failure it runs fn again.
func (f *Feed) InOwnTx(ctx context.Context, fn func(Tx) error) error {
	return f.recorder.InOwnTx(ctx, func(tx dialect.Querier) error { return fn(ownTx{tx}) })
}

// Delete deletes the row of a key, inside the caller's transaction, so that the delete is published. With capture
// "trigger" it is an ordinary DELETE. If there is no such row, it does nothing.
func (f *Feed) Delete(ctx context.Context, tx Tx, key Key) error {
	return f.recorder.Delete(ctx, tx, key)
}

// AppendOutbox appends a record to the outbox of a feed with ModeOutbox. Call it in the transaction that inserts the
// row. It waits for no lock.
func (f *Feed) AppendOutbox(ctx context.Context, tx Tx, record OutboxRecord) error {
	return f.recorder.AppendOutbox(ctx, tx, record)
}

// ParseKey reads a key as people write it: the bare value if the key has one column, or the JSON object or array that
// entries show, such as {"ns":"a","k":"b"}. Binary values are base64.
func (f *Feed) ParseKey(text string) (Key, error) { return f.recorder.ParseKey(text) }

var _ feedtype.ShardSource = (*Feed)(nil)
