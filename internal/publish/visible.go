package publish

import (
	"context"
	"errors"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/store"
)

// CatchUp runs passes until the changes that are visible now are published.
// Passes take changes in the order of their seq, so that however fast others write, and
// also where they write the same keys, it comes to an end: what they add stands above
// the highest seq seen here. A transaction that is open now may commit changes below
// it meanwhile; they are taken along. While it is open nobody waits for it.
func (f *Sequence) CatchUp(ctx context.Context, _ int) error {
	newest, err := f.changeSeq(ctx, "DESC")
	if err != nil {
		return err
	}
	rows := waitingRows{many: true}
	if err := f.stillWaiting(ctx, &rows); err != nil {
		return err
	}
	batch := newBatchSize(f.BatchSize)
	for idle := 0; ; {
		oldest, err := f.changeSeq(ctx, "ASC")
		f.Gaps.Expect(oldest)
		if err != nil || (oldest == 0 || oldest > newest) && rows.none() {
			return err
		}
		e, err := passOf(ctx, f.Feed, f, batch.size, true)
		if err != nil {
			return err
		}
		if e.Changes < batch.size {
			newest = 0 // all that it saw was taken. Where seqs begin anew (SQLite) this ends it.
		}
		batch.learn(e)
		if idle++; e.Changes > 0 {
			idle = 0
		} else if err := store.Pause(ctx, store.Backoff(idle)); err != nil {
			return err
		}
		if err := f.stillWaiting(ctx, &rows); err != nil {
			return err
		}
	}
}

// maxWaitingRows bounds the keys of a waitingRows.
const maxWaitingRows = 10_000

// waitingRows are rows that waited at the beginning, of a feed whose rows hold their
// positions, and may wait still: those that did so whenever it was looked at. One that
// did not has been published in between, whoever has changed it since.
type waitingRows struct {
	many bool // more than are kept; keys is empty
	keys map[string]bool
}

func (w *waitingRows) none() bool { return !w.many && len(w.keys) == 0 }

// stillWaiting takes those out that wait no longer.
func (f *Sequence) stillWaiting(ctx context.Context, rows *waitingRows) error {
	feed := f.DialectFeed()
	if rows.none() || !feed.InRows() {
		*rows = waitingRows{}
		return nil
	}
	d := f.Store.Dialect
	values := make([]string, len(feed.Key))
	for i, ref := range dialect.KeyRefs(d, feed, "t") {
		values[i] = d.Value(feed.Key[i], ref)
	}
	b := dialect.NewBuilder(d)
	where, order := dialect.WaitingRows(d, b, feed, nil)
	query := "SELECT " + strings.Join(values, ", ") + " FROM " + dialect.Qualified(d, feed.Source) + " t" + where + order + " LIMIT " + b.Arg(maxWaitingRows+1)
	var now []string
	err := f.Store.InTx(ctx, dialect.ForRead, "look for rows of "+f.Name, func(tx dialect.Querier) (err error) {
		now, err = dialect.QueryAll(ctx, tx, query, b.Args(), func(rows dialect.Rows) (string, error) {
			key, dest := make([]any, len(values)), make([]any, len(values))
			for i := range key {
				dest[i] = &key[i]
			}
			err := rows.Scan(dest...)
			return dialect.KeyIdentity(key), err
		})
		return err
	})
	if err != nil {
		return f.Explain(ctx, "publish", err)
	}
	if len(now) > maxWaitingRows {
		return nil // of those that are not shown nothing is known
	}
	left := make(map[string]bool, len(now))
	for _, key := range now {
		if rows.many || rows.keys[key] {
			left[key] = true
		}
	}
	*rows = waitingRows{keys: left}
	return nil
}

// changeSeq is the seq of the first visible change from one end, 0 when nothing waits.
// The transaction brings settings under which the primary key is what answers it.
func (f *Sequence) changeSeq(ctx context.Context, order string) (seq int64, err error) {
	err = f.Store.InTx(ctx, dialect.ForRead, "look for changes of "+f.Name, func(tx dialect.Querier) error {
		feed := f.DialectFeed()
		err := dialect.QueryRow(ctx, tx, "SELECT seq FROM "+dialect.Qualified(f.Store.Dialect, feed.Changes())+" ORDER BY seq "+order+" LIMIT 1", nil, &seq)
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
