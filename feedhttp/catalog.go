package feedhttp

import (
	"context"
	"errors"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
)

// Catalog is the set of feeds that a Handler serves.
type Catalog interface {
	// Names returns the names of the feeds, in the order in which they are shown.
	Names(ctx context.Context) ([]string, error)
	// Source returns the feed of that name, or an error with the code [rowfeed.UnknownFeed].
	Source(ctx context.Context, name string) (feedtype.Source, error)
}

// Of returns a Catalog of all feeds of a DB.
func Of(db *rowfeed.DB) Catalog { return dbCatalog{db} }

type dbCatalog struct{ db *rowfeed.DB }

func (c dbCatalog) Names(ctx context.Context) ([]string, error) {
	feeds, err := c.db.Feeds(ctx)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(feeds))
	for i, f := range feeds {
		names[i] = f.Name()
	}
	return names, nil
}

func (c dbCatalog) Source(ctx context.Context, name string) (feedtype.Source, error) {
	f, err := c.db.Feed(ctx, name)
	if errors.Is(err, feedtype.InvalidRequest) {
		// In a path, an invalid name is the name of a feed that does not exist.
		return nil, &feedtype.Error{Code: feedtype.UnknownFeed, Object: feedObject(name),
			Cause: "there is no such feed",
			Next:  "GET /_feeds lists the feeds"}
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}
