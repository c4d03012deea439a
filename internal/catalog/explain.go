package catalog

import (
	"context"
	"errors"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// Fail explains a database's error as one of the feed, by the error's class alone. See store.Store.Fail.
func (f *Feed) Fail(doing string, err error) error {
	return f.Store.Fail(feedtype.FeedObject(f.Name), doing, err)
}

// Explain is Fail for a statement that needs the feed's table, or what rowfeed has made for it. A missing table means
// that the feed was dropped or changed, which its record tells, or that its own table was, which Diagnose tells.
func (f *Feed) Explain(ctx context.Context, doing string, err error) error {
	var known *feedtype.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	class := f.Store.Dialect.Classify(err)
	if class == dialect.ClassUndefined {
		if err := f.Reload(ctx); err != nil {
			return err
		}
	}
	if class == dialect.ClassUndefined || class == dialect.ClassOther || class == dialect.ClassDuplicate {
		if because := f.Diagnose(ctx, doing, err); because != nil {
			return because
		}
	}
	return f.Fail(doing, err)
}

// Trouble tells the Observer of an error that does not end the work on the feed.
func (f *Feed) Trouble(err error) {
	f.Store.Observer.Trouble(feedtype.TroubleEvent{Feed: f.Name, Err: err})
}

// Read runs fn in a transaction that only reads. Its settings keep the planner to the indexes. The error is the
// database's.
func (f *Feed) Read(ctx context.Context, doing string, fn func(dialect.Querier) error) error {
	return f.Store.InTx(ctx, dialect.ForRead, doing+" of "+f.Name, fn)
}
