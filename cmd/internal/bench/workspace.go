package bench

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
)

// sharedTable is the table that drain, pages and consume read. One after the other, they make feeds of it.
const sharedTable = "rows"

// workspace is what all measures share: the run's tables, and rowfeed on them.
type workspace struct {
	cfg      Config
	tables   *tables
	progress *progress
	library  *rowfeed.DB

	filled    bool         // the shared table
	positions atomic.Int64 // given so far
	tally     Tally        // of rows and entries
}

// openLibrary opens rowfeed on the run's tables. The measures set batch size and observer in cfg.
func (w *workspace) openLibrary(ctx context.Context, pool *sql.DB, cfg rowfeed.Config) (*rowfeed.DB, error) {
	db := w.tables.db
	cfg.Prefix, cfg.Schema, cfg.UnsafeDurability = w.tables.prefix, db.schema, w.cfg.DB.UnsafeDurability
	var published func(rowfeed.PublishEvent)
	if cfg.Observer != nil {
		published = cfg.Observer.Published
	}
	cfg.Observer = &rowfeed.Observer{Published: func(e rowfeed.PublishEvent) {
		w.positions.Add(int64(e.Keys))
		if published != nil {
			published(e)
		}
	}}
	return rowfeed.Open(ctx, pool, db.dialect, &cfg)
}

// addFeed makes a feed of one of the run's tables.
func (w *workspace) addFeed(
	ctx context.Context, db *rowfeed.DB, feed, table string, capture feedtype.Capture,
) (*rowfeed.Feed, error) {
	return db.AddFeed(ctx, rowfeed.FeedSpec{Name: feed, Table: w.tables.specName(table), Capture: capture}, nil)
}

// fill makes a table with rows of the ids from 1.
func (w *workspace) fill(ctx context.Context, table string, rows int) error {
	w.progress.begin(fmt.Sprintf("filling %s with %d rows", w.tables.name(table), rows),
		w.cfg.bulk(1)*time.Duration(rows)/time.Duration(w.cfg.Rows))
	return w.tables.fill(ctx, table, rows, w.cfg.Payload)
}

// fillShared fills the shared table once.
func (w *workspace) fillShared(ctx context.Context) error {
	if w.filled {
		return nil
	}
	w.filled = true
	return w.fill(ctx, sharedTable, w.cfg.Rows)
}

// publishedFeed is a feed of the shared table whose rows all have a position.
func (w *workspace) publishedFeed(ctx context.Context, feed string) (*rowfeed.Feed, error) {
	if err := w.fillShared(ctx); err != nil {
		return nil, err
	}
	w.progress.begin(feed+": publishing the rows", w.cfg.bulk(2))
	f, err := w.addFeed(ctx, w.library, feed, sharedTable, feedtype.CaptureTrigger)
	if err == nil {
		_, err = f.Publish(ctx)
	}
	return f, err
}
