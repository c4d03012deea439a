package rowfeed

import (
	"context"
	"errors"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// settle turns a database error into an Error. A missing table means that the feed
// was dropped or changed meanwhile, which its record tells, or that its own table was.
func (f *Feed) settle(ctx context.Context, doing string, err error) error {
	var known *feedtype.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	class := f.db.store.Dialect.Classify(err)
	if class == dialect.ClassUndefined {
		if err := f.catalog.Reload(ctx); err != nil {
			return err
		}
	}
	if class == dialect.ClassUndefined || class == dialect.ClassOther || class == dialect.ClassDuplicate {
		if because := f.notInOrder(ctx, doing, err); because != nil {
			return because
		}
	}
	return f.db.store.Fail(feedtype.FeedObject(f.name), doing, err)
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// reading runs fn in a transaction that only reads, for the settings that keep a planner to
// the indexes. Its error is the database's.
func (f *Feed) reading(ctx context.Context, doing string, fn func(dialect.Querier) error) error {
	return f.db.store.InTx(ctx, dialect.ForRead, doing+" of "+f.name, fn)
}
