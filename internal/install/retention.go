package install

import (
	"cmp"
	"context"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// none refuses any where entries are rows of the table.
func noRetention(r feedtype.Retention) error {
	if !r.ForEver() {
		return feedtype.Invalid("retain",
			"only a feed with an outbox has entries of its own to purge: here they are rows of the table")
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
	if err := f.keeps(to); err != nil {
		return err
	}
	err := f.Store.WithSchemaLock(ctx, "set the retention of "+f.Name, func(q dialect.Querier) error {
		// While this waited for the lock the feed may have become another.
		if err := f.Reload(ctx); err != nil {
			return err
		}
		r := *f.Record.Load()
		if err := f.keeps(to); err != nil {
			return err
		}
		r.Retain = to
		return f.DB.saveOptions(ctx, q, &r)
	})
	if err == nil {
		err = f.Reload(ctx)
	}
	return f.Fail("set its retention", err)
}

func (f *Feed) keeps(to feedtype.Retention) error {
	r := f.Record.Load()
	return cmp.Or(r.Unreadable, keeps(r.Mode, to))
}

// keeps refuses a retention that feeds of a mode cannot have.
func keeps(mode string, r feedtype.Retention) error {
	if mode == feedtype.ModeOutbox {
		return validRetention(r)
	}
	return noRetention(r)
}
