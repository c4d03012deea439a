package publish

import (
	"context"
	"errors"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

// CatchUp is PublishVisible. It refuses to while positions are being moved out of rows: rows may wait whose change is
// not recorded yet.
func (f *Sequence) CatchUp(ctx context.Context, _ int) error {
	err := f.PublishVisible(ctx)
	if err == nil && f.DialectFeed().Moving {
		err = f.Reload(ctx) // the record in memory may be old
	}
	if err == nil && f.DialectFeed().Moving {
		err = &feedtype.Error{Code: feedtype.NotConsistent, Object: feedtype.FeedObject(f.Name),
			Cause: "its positions are being moved out of the rows",
			Next: "try again after `rowfeed feed upgrade " + f.Name + " --capture trigger`; if that was interrupted, " +
				"run it again"}
	}
	return err
}

// PublishVisible runs passes until the changes that are visible now are published. It ends however fast others write:
// passes read changes in the order of their numbers, and new changes have higher numbers than newest. A transaction
// that is open now may still commit lower numbers. PublishVisible publishes them along with the others, and does not
// wait for them.
func (f *Sequence) PublishVisible(ctx context.Context) error {
	newest, err := f.endSeq(ctx, "highest_change")
	if err != nil {
		return err
	}
	rows := pendingRows{tooMany: true}
	if err := f.keepPending(ctx, &rows); err != nil {
		return err
	}
	batch := newBatchSize(f.BatchSize)
	for idle := 0; ; {
		oldest, err := f.endSeq(ctx, "lowest_change")
		f.Gaps.Expect(oldest)
		if err != nil || (oldest == 0 || oldest > newest) && rows.empty() {
			return err
		}
		e, err := passOfCurrentFeed(f.Feed, func() (feedtype.PublishEvent, error) {
			return f.Pass(ctx, batch.size, true)
		})
		if err != nil {
			return err
		}
		if e.Changes < batch.size {
			newest = 0 // The pass took all that it saw. Numbers that begin anew (SQLite) are above 0 again.
		}
		batch.adapt(e)
		if idle++; e.Changes > 0 {
			idle = 0
		} else if err := store.Pause(ctx, store.Backoff(idle)); err != nil {
			return err
		}
		if err := f.keepPending(ctx, &rows); err != nil {
			return err
		}
	}
}

// maxPendingRows bounds the keys of a pendingRows.
const maxPendingRows = 10_000

// pendingRows are the rows of a feed with capture "column" that have been pending in every reading since the first one.
// A row that was not pending in one of them was published in between, even if it was written again since.
type pendingRows struct {
	tooMany bool // more than maxPendingRows; keys is empty
	keys    map[string]bool
}

func (p *pendingRows) empty() bool { return !p.tooMany && len(p.keys) == 0 }

// keepPending reads the pending rows again, and removes from rows those that are not among them.
func (f *Sequence) keepPending(ctx context.Context, rows *pendingRows) error {
	feed := f.DialectFeed()
	if rows.empty() || !feed.InRows() {
		*rows = pendingRows{}
		return nil
	}
	d := f.Store.Dialect
	var now []string
	err := f.Store.InTx(ctx, dialect.ForRead, "look for rows of "+f.Name, func(tx dialect.Querier) error {
		now = nil
		args := dialect.Args{"count": maxPendingRows + 1}
		return dialect.EachKey(ctx, tx, d.Syntax, feed, statements.For(d.Syntax, feed, "waiting_rows"), args, 0,
			func(_ []string, key []any) error {
				now = append(now, dialect.KeyIdentity(key))
				return nil
			})
	})
	if err != nil {
		return f.Explain(ctx, "publish", err)
	}
	if len(now) > maxPendingRows {
		return nil // The keys beyond the limit are unknown, so no key can be removed.
	}
	left := make(map[string]bool, len(now))
	for _, key := range now {
		if rows.tooMany || rows.keys[key] {
			left[key] = true
		}
	}
	*rows = pendingRows{keys: left}
	return nil
}

// endSeq returns the lowest or highest number of the visible changes, 0 if there is none. It opens a transaction for
// its settings, under which the database uses the primary key.
func (f *Sequence) endSeq(ctx context.Context, statement string) (seq int64, err error) {
	err = f.Store.InTx(ctx, dialect.ForRead, "look for changes of "+f.Name, func(tx dialect.Querier) error {
		err := dialect.One(ctx, tx, f.Store.Dialect.Syntax, f.Statement(statements, statement), nil, &seq)
		if errors.Is(err, store.ErrNoRows) {
			seq, err = 0, nil
		}
		return err
	})
	if err != nil {
		return 0, f.Explain(ctx, "publish", err)
	}
	return seq, nil
}
