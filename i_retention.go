package rowfeed

import (
	"context"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// none refuses any where entries are rows of the table.
func noRetention(r feedtype.Retention) error {
	if !r.ForEver() {
		return feedtype.Invalid("retain", "only a feed with an outbox has entries of its own to purge: here they are rows of the table")
	}
	return nil
}

func validRetention(r feedtype.Retention) error {
	switch {
	case r.ForEver():
	case r.Age != 0 && r.Count != 0:
		return feedtype.Invalid("retain", "by age or by number, not both")
	case r.Age != 0 && r.Age < time.Second:
		return feedtype.Invalid("retain", "%s is less than a second", r.Age)
	case r.Count < 0:
		return feedtype.Invalid("retain", "%d must be positive", r.Count)
	}
	return nil
}

// SetRetention changes how long the feed's entries are kept. Its publisher knows within a
// minute; what has been purged does not come back.
func (f *Feed) SetRetention(ctx context.Context, to feedtype.Retention) error {
	if err := f.mode().keeps(to); err != nil {
		return err
	}
	err := f.db.store.WithSchemaLock(ctx, "set the retention of "+f.name, func(q dialect.Querier) error {
		// While this waited for the lock the feed may have become another.
		if err := f.catalog.Reload(ctx); err != nil {
			return err
		}
		r := *f.catalog.Record.Load()
		if err := modeOf(&r).keeps(to); err != nil {
			return err
		}
		r.Retain = to
		return f.db.saveOptions(ctx, q, &r)
	})
	if err == nil {
		err = f.catalog.Reload(ctx)
	}
	return f.db.store.Fail(feedtype.FeedObject(f.name), "set its retention", err)
}
