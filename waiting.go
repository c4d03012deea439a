package rowfeed

import (
	"context"
	"slices"

	"github.com/rowfeed/rowfeed/dialect"
)

// waitingFeeds tells the watcher where something waits.
type waitingFeeds struct{ db *DB }

// FirstWaiting is a query with a row where something waits for the feed's publisher; "" where nothing
// ever does, or nothing is known of the feed.
func (w waitingFeeds) FirstWaiting(feed string) string {
	db := w.db
	db.mu.Lock()
	f := db.feeds[feed]
	db.mu.Unlock()
	if f == nil {
		return ""
	}
	return f.mode().firstWaiting(f)
}

// lookedAt is how many shards one statement looks at.
const lookedAt = 100

// Filled implements watch.Feeds. Nothing is filled where nothing may be moved.
func (w waitingFeeds) Filled(ctx context.Context, feed string, shards []int) []int {
	if w.db.publishesNothing() {
		return nil
	}
	return w.db.filled(ctx, feed, shards)
}

// filled are those of a feed's shards, of all where none are named, in whose outbox records wait. Of what cannot be asked
// (the feed may be gone by now) nothing is told: who waits has more than this to be woken by.
func (db *DB) filled(ctx context.Context, feed string, shards []int) (filled []int) {
	db.mu.Lock()
	f := db.feeds[feed]
	db.mu.Unlock()
	if f == nil || !f.catalog.DialectFeed().Outbox {
		return nil
	}
	among := f.glance().among
	if shards == nil {
		waiting, err := db.store.Dialect.HasRecords(ctx, db.store.On(), f.catalog.DialectFeed(), among)
		if err == nil && waiting {
			filled, _ = f.recordShards(ctx, among, 0)
		}
		return filled
	}
	for part := range slices.Chunk(shards, lookedAt) {
		waiting, err := db.store.Dialect.HasRecords(ctx, db.store.On(), f.catalog.DialectFeed(), among, part...)
		if err == nil && waiting && len(part) > 1 {
			err = f.reading(ctx, "look into the outbox", func(q dialect.Querier) (err error) {
				part, err = dialect.QueryAll(ctx, q, dialect.FirstRecords(db.store.Dialect, f.catalog.DialectFeed(), among, part...), nil, func(rows dialect.Rows) (shard int, err error) { return shard, rows.Scan(&shard) })
				return err
			})
		}
		if err == nil && waiting {
			filled = append(filled, part...)
		}
	}
	return filled
}
