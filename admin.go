package rowfeed

import (
	"context"

	"github.com/rowfeed/rowfeed/feedtype"
)

// Admin is what operators do.
func (db *DB) Admin() *admins {
	source := func(ctx context.Context, name string) (feedtype.Source, error) { return db.Feed(ctx, name) }
	sources := func(ctx context.Context) (all []feedtype.Source, err error) {
		feeds, err := db.Feeds(ctx)
		for _, f := range feeds {
			all = append(all, f)
		}
		return all, err
	}
	return &admins{store: db.store, source: source, sources: sources}
}
