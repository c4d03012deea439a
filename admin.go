package rowfeed

import (
	"context"

	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/feedtype"
)

// Admin is what operators do with the feeds of this database.
func (db *DB) Admin() *admin.Admin {
	source := func(ctx context.Context, name string) (feedtype.Source, error) { return db.Feed(ctx, name) }
	sources := func(ctx context.Context) (all []feedtype.Source, err error) {
		feeds, err := db.Feeds(ctx)
		for _, f := range feeds {
			all = append(all, f)
		}
		return all, err
	}
	s := db.store
	return admin.New(admin.Database{SQL: s.SQL, Dialect: s.Dialect, Names: s.Names, Observer: s.Observer, Source: source, Sources: sources})
}
