package console

import (
	"context"
	"errors"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
)

// Of returns the Data of a DB.
func Of(db *rowfeed.DB) Data {
	d := database{db, db.Admin()}
	return Data{d, d, d}
}

type database struct {
	*rowfeed.DB
	*admin.Admin
}

func (d database) FeedNames(ctx context.Context) ([]string, error) {
	feeds, err := d.Feeds(ctx)
	names := make([]string, len(feeds))
	for i, f := range feeds {
		names[i] = f.Name()
	}
	return names, err
}

// feed returns a feed. A name that no feed can have is reported as an unknown feed: it comes from the URL of a page.
func (d database) feed(ctx context.Context, name string) (*rowfeed.Feed, error) {
	f, err := d.Feed(ctx, name)
	if errors.Is(err, rowfeed.InvalidRequest) {
		return nil, &rowfeed.Error{Code: rowfeed.UnknownFeed, Object: "feed \"" + shorten(name) + "\"",
			Cause: "there is no such feed", Next: "the feeds are on the first page"}
	}
	return f, err
}

func (d database) Info(ctx context.Context, feed string) (*rowfeed.Info, error) {
	f, err := d.feed(ctx, feed)
	if err != nil {
		return nil, err
	}
	return f.Info(ctx)
}

func (d database) Backlog(ctx context.Context, feed string, limit int) (admin.Backlog, error) {
	f, err := d.feed(ctx, feed)
	if err != nil {
		return admin.Backlog{}, err
	}
	return f.Admin().Backlog(ctx, limit)
}

func (d database) Blocked(ctx context.Context, feed string) (b Blocked, err error) {
	f, err := d.feed(ctx, feed)
	if err == nil {
		b.Blockers, b.Unseen, err = f.Admin().Blockers(ctx)
	}
	if err == nil {
		b.Shards, b.Told, err = f.Admin().Shards(ctx)
	}
	return b, err
}

func (d database) Republish(ctx context.Context, feed, text string) error {
	f, err := d.feed(ctx, feed)
	if err != nil {
		return err
	}
	key, err := f.ParseKey(text)
	if err != nil {
		return err
	}
	unknown, err := f.Admin().UnknownKeys(ctx, key)
	if err != nil {
		return err
	}
	if len(unknown) > 0 {
		return &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: "key", Object: "feed \"" + feed + "\"",
			Cause: "it has neither a row nor a delete of key " + shorten(text),
			Next:  "write the key as entries show it"}
	}
	return f.InOwnTx(ctx, func(tx rowfeed.Tx) error { return f.Republish(ctx, tx, key) })
}
