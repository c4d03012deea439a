package rowfeed

import (
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

// appending is what does not change in the statements that writers send all day, as long as the
// feed has the same record.
type appending struct {
	of     *catalog.Record
	feed   *dialect.Feed
	change string // the INSERT of a change, up to the key's values
	record string // the INSERT into an outbox
}

func (f *Feed) appending() *appending {
	r := f.catalog.Record.Load()
	if a := f.appends.Load(); a != nil && a.of == r {
		return a
	}
	d, feed := f.db.store.Dialect, r.Feed(f.db.store.Names)
	a := &appending{of: r, feed: feed,
		change: "INSERT INTO " + dialect.Qualified(d, feed.Changes()) + " (" + strings.Join(dialect.StoredRefs(d, feed, ""), ", ") + ", kind) VALUES ("}
	if feed.Outbox {
		a.record = dialect.AppendRecord(d, feed)
	}
	f.appends.Store(a)
	return a
}
