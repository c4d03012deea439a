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
	return f.mode().firstWaiting(f)
}

// Filled implements watch.Feeds. Nothing is filled where nothing may be moved.
func (w waitingFeeds) Filled(ctx context.Context, feed string, shards []int) []int {
	if w.db.publishesNothing() {
		return nil
	}
	return w.db.filled(ctx, feed, shards)
}
