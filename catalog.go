package rowfeed

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/history"
	"github.com/rowfeed/rowfeed/internal/store"
)

// Feed is one feed of a DB. It is safe for concurrent use.
type Feed struct {
	db   *DB
	name string
	wake chan struct{} // a pass is wanted

	catalog *catalog.Feed
	history *history.History

	appends atomic.Pointer[appending]
	fit     fit
	pages   store.Sharing[pageKey, reading] // of those who wait
	tail    tail
	// catchUps are the publishing that consistent requests share, of a shard where each is a feed
	// by itself.
	catchUps store.Sharing[int, struct{}]
	line     line // see outbox.pass
	unseen   unseen

	mu       sync.Mutex
	problems []string // what the last verification found
	attached attached // what the last look at its partitions found
	// barren is the place below which there is no tombstone to purge.
	barren feedtype.CursorState
	turn   turn // see placeRows
}

// Name is the feed's name.
func (f *Feed) Name() string { return f.name }

// State is creating, filling, sharding or active, as last read.
func (f *Feed) State() string { return f.catalog.Record.Load().State }

// Capture is how the feed's changes are captured.
func (f *Feed) Capture() dialect.Capture { return f.catalog.Record.Load().Capture }

// Source is the table that the feed follows.
func (f *Feed) Source() feedtype.TableName { return f.catalog.Record.Load().Source }

// Generation is the feed's generation, as last read.
func (f *Feed) Generation() int64 { return f.catalog.Record.Load().Generation }

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
		Key: l.Key, Columns: l.Columns, Base64: feedtype.BinaryColumns(l.Key, l.Columns), DataShards: r.DataShards, ShardColumn: r.ShardColumn, PositionColumn: r.PositionColumn(),
		RetainSeconds: int64(r.Retain.Age / time.Second), RetainCount: r.Retain.Count}
	if err := f.mode().head(ctx, f, info); err != nil {
		return nil, err
	}
	return info, nil
}
