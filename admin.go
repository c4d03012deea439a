package rowfeed

import (
	"context"

	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/feedtype"
)

// Admin is what operators do with the feeds of this database.
func (db *DB) Admin() *admin.Admin {
	s := db.store
	return admin.New(admin.Database{SQL: s.SQL, Dialect: s.Dialect, Names: s.Names, Observer: s.Observer,
		Feed: func(ctx context.Context, name string) (admin.Feed, error) {
			f, err := db.Feed(ctx, name)
			return administered{f}, err
		},
		Feeds: func(ctx context.Context) (all []admin.Feed, err error) {
			feeds, err := db.Feeds(ctx)
			for _, f := range feeds {
				all = append(all, administered{f})
			}
			return all, err
		}})
}

// administered is a feed as package admin needs it.
type administered struct{ *Feed }

// ShardsAreFeeds implements admin.Feed.
func (f administered) ShardsAreFeeds() bool { return f.reader.ShardsAreFeeds() == nil }

// Lag implements admin.Feed.
func (f administered) Lag(ctx context.Context, cursors []*admin.ConsumerStatus) error {
	return f.inspector.Lag(ctx, cursors)
}

// Locate implements admin.Feed.
func (f administered) Locate(ctx context.Context, to feedtype.Cursor, s feedtype.Shards) (feedtype.Cursor, error) {
	if t, ok, _ := to.Time(); ok {
		pager, err := f.pager()
		if err != nil {
			return to, err
		}
		at, err := pager.At(ctx, t, s)
		if err != nil || at.Position.IsZero() {
			return to, err // below every position; written as a cursor it would be the beginning
		}
		return at.Cursor(), nil
	}
	page, err := f.Fetch(ctx, feedtype.Request{After: to, Limit: 1, Shards: s})
	if err == nil && to == feedtype.Now {
		return page.Cursor, nil
	}
	return to, err
}
