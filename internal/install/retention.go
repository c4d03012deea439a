package install

import (
	"cmp"
	"context"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

// noRetention refuses a limit for feeds whose entries are rows of the user's table.
func noRetention(r feedtype.Retention) error {
	if !r.ForEver() {
		return feedtype.Invalid("retain",
			"only feeds of mode outbox can purge entries: the entries of other feeds are rows of the table")
	}
	return nil
}

func validRetention(r feedtype.Retention) error {
	switch {
	case r.ForEver():
	case r.Age != 0 && r.Count != 0:
		return feedtype.Invalid("retain", "limit entries by age or by number, not both")
	case r.Age != 0 && r.Age < time.Second:
		return feedtype.Invalid("retain", "%s is less than a second", r.Age)
	case r.Count < 0:
		return feedtype.Invalid("retain", "%d must be positive", r.Count)
	}
	return nil
}

// SetRetention changes how long the feed keeps its entries. Publishers apply the change within a minute. It does not
// restore entries that were purged.
func (db *Database) SetRetention(ctx context.Context, f *catalog.Feed, to feedtype.Retention) error {
	if err := checkRetentionOf(f, to); err != nil {
		return err
	}
	err := f.Store.WithSchemaLock(ctx, "set the retention of "+f.Name, func(q dialect.Querier) error {
		// The feed may have been dropped and added again while this waited for the lock.
		if err := f.Reload(ctx); err != nil {
			return err
		}
		r := *f.Record.Load()
		if err := checkRetentionOf(f, to); err != nil {
			return err
		}
		r.Retain = to
		return db.saveOptions(ctx, q, &r)
	})
	if err == nil {
		err = f.Reload(ctx)
	}
	return f.Fail("set its retention", err)
}

func checkRetentionOf(f *catalog.Feed, to feedtype.Retention) error {
	r := f.Record.Load()
	return cmp.Or(r.Unreadable, checkRetention(r.Mode, to))
}

// checkRetention refuses a retention that feeds of a mode cannot have.
func checkRetention(mode string, r feedtype.Retention) error {
	if mode == feedtype.ModeOutbox {
		return validRetention(r)
	}
	return noRetention(r)
}
