package rowfeed

import (
	"context"
	"errors"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/install"
	"github.com/rowfeed/rowfeed/internal/operate"
	"github.com/rowfeed/rowfeed/internal/publish"
	"github.com/rowfeed/rowfeed/internal/read"
	"github.com/rowfeed/rowfeed/internal/ulidfeed"
)

// Feed is one feed of a DB. It is safe for concurrent use.
type Feed struct {
	db      *DB
	catalog *catalog.Feed

	kinds     map[string]kind // by mode
	elsewhere kind            // of a feed whose positions another publisher gives
	reader    *read.Reader
	publisher *publish.Publisher
	recorder  *publish.Recorder
	shards    *ulidfeed.Shards
	locks     *ulidfeed.Locks
	installed *install.Feed
	inspector *operate.Inspector
}

// Name returns the feed's name.
func (f *Feed) Name() string { return f.catalog.Name }

// Mode returns how the feed's positions are assigned: ModeSequence, ModeBlocking or ModeOutbox.
func (f *Feed) Mode() string { return f.catalog.Record.Load().Mode }

// State returns "creating", "filling", "sharding" or "active", as last read; "elsewhere" if the feed is active and
// another publisher gives its positions.
func (f *Feed) State() string { return f.catalog.Record.Load().State }

// Capture returns how the feed's changes are captured.
func (f *Feed) Capture() feedtype.Capture { return f.catalog.Record.Load().Capture }

// Source returns the table that the feed follows.
func (f *Feed) Source() feedtype.TableName { return f.catalog.Record.Load().Source }

// Generation returns the feed's generation, as last read.
func (f *Feed) Generation() int64 { return f.catalog.Generation() }

// DataShards returns the number of data shards, as last read.
func (f *Feed) DataShards() int { return f.catalog.Record.Load().DataShards }

// Info returns a description of the feed for its readers.
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
	if info.Head = page.Cursor; err != nil && !(r.ULIDs != nil && errors.Is(err, Filling)) { // no head yet
		return nil, err
	}
	return info, nil
}

// Fetch implements Source. It reads the page together with the head of the feed. Every entry up to Page.Cursor is on
// this page, on an earlier page, or not in this reader's part of the feed. Rows have the content that they have at
// the time of the fetch. A consistent request first publishes the changes that were committed before it.
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

// catchUp publishes the changes that were committed before a consistent request.
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

// Publish assigns positions to the pending changes. It returns the number of keys that got one. It runs passes of one
// transaction each until a pass finds no change. Several publishers at the same time, in any number of processes, are
// safe: the lock of the feed's row in the sequences table orders them.
func (f *Feed) Publish(ctx context.Context) (n int, err error) { return f.publisher.Publish(ctx) }

// RunPublisher publishes until ctx ends, and then returns nil. Temporary failures, such as an unreachable database, a
// lock or a full disk, do not end it; it reports them to Observer.Trouble. It returns an error if the feed no longer
// exists, or if the server may lose commits.
//
// The publishers of a feed, in all processes, take turns by the lease "publish:<feed>" (Config.PublisherLease): one
// publishes, the others stand by. The lease saves work. Several publishers are safe without it, by the lock of the
// feed's sequence. A publisher that stands by also publishes changes that have waited for more than a second, because
// the holder of the lease may have been killed or stopped.
func (f *Feed) RunPublisher(ctx context.Context) error { return f.publisher.RunPublisher(ctx) }

// Wake makes this process's publisher of the feed poll for changes at once. Call it after the commit of a transaction
// that changed the table.
func (f *Feed) Wake() { f.publisher.Wake() }

// Problems returns what this process's publisher and readers know to be wrong with the feed. A server is ready if no
// feed has problems.
func (f *Feed) Problems() []string {
	all := f.publisher.Problems()
	if f.reader.Quota.Locked() != nil && len(all) == 0 {
		return []string{
			"pages cannot be read: another session has locked the table; `rowfeed status` names the session"}
	}
	return all
}

// Record records, inside the caller's transaction, that the keys were written. It is for feeds with capture "app".
// Call it in the transaction that writes the rows, for every key inserted, updated or deleted. If a row's key
// changes, name the old and the new key. With capture "column", call it for the old key of a row whose key changes.
func (f *Feed) Record(ctx context.Context, tx Tx, keys ...Key) error {
	return f.recorder.RecordKeys(ctx, orNoTx(tx), dialect.Changed, keys)
}

// Republish requests new positions for the keys, inside the caller's transaction. Consumers then receive the rows
// again, with their content at that time. Keys that were hidden by Unpublish are visible again. Republish appends
// change records, and locks nothing.
func (f *Feed) Republish(ctx context.Context, tx Tx, keys ...Key) error {
	return f.recorder.RecordKeys(ctx, orNoTx(tx), dialect.Republished, keys)
}

// Unpublish hides the keys, inside the caller's transaction. Once that is published, consumers get a delete. Later
// changes of the rows stay hidden until Republish.
func (f *Feed) Unpublish(ctx context.Context, tx Tx, keys ...Key) error {
	return f.recorder.RecordKeys(ctx, orNoTx(tx), dialect.Unpublished, keys)
}

// InOwnTx runs fn in a new transaction, and then wakes this process's publisher. It runs fn again after a deadlock or
// a serialization failure.
func (f *Feed) InOwnTx(ctx context.Context, fn func(Tx) error) error {
	return f.recorder.InOwnTx(ctx, func(tx dialect.Querier) error { return fn(ownTx{tx}) })
}

// Delete deletes the row of a key, inside the caller's transaction, in a way that publishes the delete. With capture
// "trigger" it is an ordinary DELETE. If the row does not exist, Delete does nothing.
func (f *Feed) Delete(ctx context.Context, tx Tx, key Key) error {
	return f.recorder.Delete(ctx, orNoTx(tx), key)
}

// AppendOutbox appends a record to the outbox of a feed with ModeOutbox. Call it in the transaction that inserts the
// row. It does not wait for locks.
func (f *Feed) AppendOutbox(ctx context.Context, tx Tx, record OutboxRecord) error {
	return f.recorder.AppendOutbox(ctx, orNoTx(tx), record)
}

// ParseKey parses a key as text: the bare value if the key has one column, or the JSON object or array that entries
// show, such as {"ns":"a","k":"b"}. Binary values are base64.
func (f *Feed) ParseKey(text string) (Key, error) { return f.recorder.ParseKey(text) }

var _ feedtype.ShardSource = (*Feed)(nil)
