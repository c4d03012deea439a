package catalog

import (
	"context"
	"errors"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// Fail turns a database's error into a feedtype.Error about the feed, by the error's class. See store.Store.Fail.
func (f *Feed) Fail(doing string, err error) error {
	return f.Store.Fail(feedtype.FeedObject(f.Name), doing, err)
}

// Explain is Fail for a statement that needs the feed's table or rowfeed's objects for it. If one of them is missing,
// Explain reads whether the feed was dropped or changed, and asks Diagnose about the table.
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

// Trouble reports an error to the Observer that does not end the work on the feed.
func (f *Feed) Trouble(err error) {
	f.Store.Observer.Trouble(feedtype.TroubleEvent{Feed: f.Name, Err: err})
}

// Read runs fn in a read-only transaction, whose settings make the planner use the indexes. Its error is the
// database's.
func (f *Feed) Read(ctx context.Context, doing string, fn func(dialect.Querier) error) error {
	return f.Store.InTx(ctx, dialect.ForRead, doing+" of "+f.Name, fn)
}
