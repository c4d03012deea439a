package rowfeed

import (
	"fmt"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// noULIDs is a query, from its FROM on, for the rows (t) of a feed's table that hold no ULID, or
// no shard; empty where the types of the columns allow no other.
func noULIDs(d dialect.Dialect, feed *dialect.Feed) string {
	if where := d.NoULID(feed.ULIDs, "t"); where != "" && !feed.Outbox {
		return " FROM " + dialect.Qualified(d, feed.Source) + " t WHERE " + where
	}
	return ""
}

// findThem is the next step for whoever has such rows.
func findThem(d dialect.Dialect, feed *dialect.Feed) string {
	where := d.NoULID(feed.ULIDs, "")
	return "find such rows with SELECT * FROM " + dialect.Qualified(d, feed.Source) + " WHERE " + where +
		", give them what they lack or delete them, and keep others out with a CHECK: docs/ULIDS.md has it"
}

// holdsNone is the error of a page, or a lock, that has come upon such a row.
func (f *Feed) holdsNone(shard int, err error) error {
	feed := f.catalog.DialectFeed()
	return &feedtype.Error{Code: feedtype.Failed, Object: fmt.Sprintf("feed %q, shard %d", f.name, shard), Cause: fmt.Sprintf("a row of table %s holds no ULID in %q", feed.Source, feed.ULIDs.Position.Name), Err: err,
		Next: findThem(f.db.store.Dialect, feed) + "; `rowfeed check " + f.name + "` names their keys"}
}
