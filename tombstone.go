package rowfeed

import (
	"context"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
)

// Purge forgets, in batches, the deletes that were published longer ago than the feed keeps
// them, of a feed with an outbox the entries that need not be kept any longer, and answers how
// many. A cursor that has not passed them is refused from then on (TombstonesExpired,
// EntriesExpired), since the mark that tells rises in the same transaction. A publisher does it
// every minute.
func (f *Feed) Purge(ctx context.Context) (int, error) { return f.mode().purge(ctx, f) }

func (f *Feed) purgeTombstones(ctx context.Context) (int, error) {
	total := 0
	for {
		n := 0
		due, err := f.expired(ctx, f.db.on(), 1)
		if err != nil || len(due) == 0 {
			return total, f.settle(ctx, "purge tombstones", err)
		}
		err = f.db.inTx(ctx, dialect.ForPublish, "purge tombstones of "+f.name, func(tx dialect.Querier) (err error) {
			n, err = f.purgeBatch(ctx, tx)
			return err
		})
		if err != nil {
			return total, f.settle(ctx, "purge tombstones", err)
		}
		total += n
		if n < purgeBatchSize {
			return total, nil
		}
	}
}

const purgeBatchSize = 500

func (f *Feed) purgeBatch(ctx context.Context, tx dialect.Querier) (int, error) {
	d := f.db.d
	feed := f.dialectFeed()
	positions := dialect.Qualified(d, feed.Positions())
	// Publishers are kept out, so that no key comes back to life between the two steps.
	if _, err := d.LockSequence(ctx, tx, feed); err != nil {
		return 0, err
	}
	expired, err := f.expired(ctx, tx, purgeBatchSize)
	if err != nil || len(expired) == 0 {
		return 0, err
	}
	b := dialect.NewBuilder(d)
	marks := make([]string, len(expired))
	for i, position := range expired {
		marks[i] = b.Arg(position)
	}
	if _, err := tx.Exec(ctx, "DELETE FROM "+positions+" WHERE deleted = 1 AND feed_sync_id IN ("+strings.Join(marks, ", ")+")", b.Args()...); err != nil {
		return 0, err
	}
	b = dialect.NewBuilder(d)
	highest := expired[len(expired)-1]
	_, err = tx.Exec(ctx, "UPDATE "+f.db.table("feeds")+" SET tombstones_below = "+b.Arg(highest)+
		" WHERE name = "+b.Arg(f.name)+" AND tombstones_below < "+b.Arg(highest), b.Args()...)
	return len(expired), err
}

// expired answers the positions of tombstones that are kept long enough, lowest
// first, up to limit. Publication times never fall from one position to a higher one,
// so the first tombstone that is not due ends the search: none is read in vain.
func (f *Feed) expired(ctx context.Context, q dialect.Querier, limit int) ([]int64, error) {
	d, r := f.db.d, f.record.Load()
	type tombstone struct{ position, age int64 }
	b := dialect.NewBuilder(d)
	oldest, err := dialect.QueryAll(ctx, q, "SELECT feed_sync_id, "+d.Now()+" - published_at FROM "+dialect.Qualified(d, f.dialectFeed().Positions())+
		" WHERE deleted = 1 AND hidden = 0 ORDER BY feed_sync_id LIMIT "+b.Arg(limit), b.Args(),
		func(rows dialect.Rows) (t tombstone, err error) { return t, rows.Scan(&t.position, &t.age) })
	if err != nil {
		return nil, err
	}
	var due []int64
	for _, t := range oldest {
		if t.age <= r.Tombstones.Microseconds() {
			break
		}
		due = append(due, t.position)
	}
	return due, nil
}
