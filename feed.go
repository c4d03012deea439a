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

// Fetch implements Source. The page and the head it belongs to are read together:
// everything up to Page.Cursor has been shown, or is not for this consumer. Rows
// have the content they have now.
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

// catchUp publishes everything that was committed before a consistent request.
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

// Standings implements ShardSource. Waiting costs the looks that all who wait share, and no statement besides.
func (f *Feed) Standings(ctx context.Context, since string, wait time.Duration) (*feedtype.Standings, error) {
	return f.reader.Standings(ctx, since, wait)
}

// Publish gives positions to every change that is waiting, in passes of one
// transaction each, until a pass takes nothing, and answers the number of keys that
// got a position. Several publishers at once, in any number of processes, are safe:
// the feed's row of the sequences table makes them take turns.
func (f *Feed) Publish(ctx context.Context) (n int, err error) { return f.publisher.Publish(ctx) }

// RunPublisher publishes until ctx ends, and then answers nil. It survives whatever
// may pass (a database that is away, locks, a full disk), telling the Observer of
// it; it answers an error only when going on makes no sense: the feed is gone, or
// the server may forget commits.
//
// The publishers of a feed take turns, in all processes, through the lease
// "publish:<feed>" (Config.PublisherLease): one works, the others stand by. That is for
// efficiency; what makes several publishers safe is the lock of the feed's sequence.
func (f *Feed) RunPublisher(ctx context.Context) error { return f.publisher.RunPublisher(ctx) }

// Wake makes this process's publisher of the feed look at once, instead of after
// its pause. Call it after the commit of a transaction that changed the table.
func (f *Feed) Wake() { f.publisher.Wake() }

// Problems is what this process's publisher knows to be wrong with the feed; none
// when all is well. It is what readiness is about.
func (f *Feed) Problems() []string { return f.publisher.Problems() }

// Record records, inside the caller's transaction, that the keys were written: what
// triggers do, for feeds with capture "app". (With capture "column" it is for what no
// statement can say, such as the old key of a row whose key changes.) Call it in the transaction that writes
// the rows, for every key written, inserted or deleted; for a changed key with both.
func (f *Feed) Record(ctx context.Context, tx Tx, keys ...Key) error {
	return f.recorder.RecordKeys(ctx, tx, dialect.Changed, keys)
}

// Republish asks, inside the caller's transaction, for new positions for the keys:
// consumers receive them again, as they are then. Hidden keys are shown again. It
// appends change records and locks nothing.
func (f *Feed) Republish(ctx context.Context, tx Tx, keys ...Key) error {
	return f.recorder.RecordKeys(ctx, tx, dialect.Republished, keys)
}

// Unpublish hides the keys, inside the caller's transaction: once published,
// consumers get a delete, and changes of the rows stay hidden until Republish.
func (f *Feed) Unpublish(ctx context.Context, tx Tx, keys ...Key) error {
	return f.recorder.RecordKeys(ctx, tx, dialect.Unpublished, keys)
}

// InOwnTx runs fn in a transaction of its own, with retries, and wakes the publisher of this process afterwards.
func (f *Feed) InOwnTx(ctx context.Context, fn func(Tx) error) error {
	return f.recorder.InOwnTx(ctx, func(tx dialect.Querier) error { return fn(ownTx{tx}) })
}

// Delete deletes, inside the caller's transaction, the row of a key, and has the
// delete published. With capture "trigger" it is an ordinary DELETE. A key without a
// row is no error, and nothing is recorded.
func (f *Feed) Delete(ctx context.Context, tx Tx, key Key) error {
	return f.recorder.Delete(ctx, tx, key)
}

// AppendOutbox appends a record to the outbox of a feed with ModeOutbox, in the transaction that
// inserts the row. It waits for nobody.
func (f *Feed) AppendOutbox(ctx context.Context, tx Tx, record OutboxRecord) error {
	return f.recorder.AppendOutbox(ctx, tx, record)
}

// ParseKey reads a key as people write it: the bare value where the key has one
// column, else (or also) the JSON object or array that entries show, such as
// {"ns":"a","k":"b"}. Binary values are base64.
func (f *Feed) ParseKey(text string) (Key, error) { return f.recorder.ParseKey(text) }

var _ feedtype.ShardSource = (*Feed)(nil)
