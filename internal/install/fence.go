package install

import (
	"context"
	"errors"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

// AddFence notes that a feed has a fence. Upgrade then makes its triggers. Publishers that run read the record again
// when the fence refuses them.
func (db *Database) AddFence(ctx context.Context, f *catalog.Feed) error {
	return db.addFence(ctx, f, false)
}

func (db *Database) addFence(ctx context.Context, f *catalog.Feed, takeOver bool) error {
	err := f.Store.WithSchemaLock(ctx, "add a fence to "+f.Name, func(q dialect.Querier) error {
		if err := f.Reload(ctx); err != nil {
			return err
		}
		r := *f.Record.Load()
		switch {
		case r.Unreadable != nil:
			return r.Unreadable
		case r.Capture != feedtype.CaptureColumn:
			return feedError(feedtype.Refused, f.Name, "omit --fence",
				"a fence needs capture column, which keeps the positions in the rows of your table")
		case r.PublishedElsewhere && !takeOver:
			return feedError(feedtype.Refused, f.Name, "take the feed over with --published-here --fence",
				"another publisher gives its positions, and a fence would refuse them")
		case !db.Dialect.Fences:
			return noFences(f.Name)
		}
		r.Fence = true
		return db.saveOptions(ctx, q, &r)
	})
	if err == nil {
		err = f.Reload(ctx)
	}
	return f.Fail("add a fence", err)
}

// noFences is the error of a database that cannot refuse positions.
func noFences(feed string) error {
	return &feedtype.Error{
		Code:   feedtype.Refused,
		Object: feedtype.FeedObject(feed),
		Cause:  "this database cannot refuse the positions of other programs (--fence)",
		Err:    errors.ErrUnsupported,
		Next:   "leave --fence out, and make sure that no other program writes " + dialect.PositionColumn,
	}
}
