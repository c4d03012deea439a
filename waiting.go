package rowfeed

import (
	"context"
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
	p, err := f.positioner()
	if err != nil {
		return ""
	}
	return p.Pending()
}

// Filled implements watch.Feeds. Nothing is filled where nothing may be moved.
func (w waitingFeeds) Filled(ctx context.Context, feed string, shards []int) []int {
	w.db.mu.Lock()
	f := w.db.feeds[feed]
	w.db.mu.Unlock()
	if f == nil || !w.db.store.Publishes() {
		return nil
	}
	return f.shards.Filled(ctx, shards)
}
