package rowfeed

import (
	"context"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
)

// PurgeTombstones forgets the deletes that were published longer ago than the feed
// keeps them, in batches, and answers how many. A cursor that has not passed them
// is refused from then on, since tombstones_below rises in the same transaction.
func (f *Feed) PurgeTombstones(ctx context.Context) (int, error) {
	total := 0
	for {
		n := 0
		err := f.db.inTx(ctx, dialect.ForPublish, "purge tombstones of "+f.name, func(tx dialect.Querier) (err error) {
			n, err = f.purgeBatch(ctx, tx)
			return err
		})
		if err != nil {
			return total, f.settle(ctx, err)
		}
		total += n
		if n < purgeBatchSize {
			return total, nil
		}
	}
}

const purgeBatchSize = 500

func (f *Feed) purgeBatch(ctx context.Context, tx dialect.Querier) (int, error) {
	d, r := f.db.d, f.record.Load()
	feed := f.dialectFeed()
	positions := dialect.Qualified(d, feed.Positions())
	// Publishers are kept out, so that no key comes back to life between the two steps.
	seq, err := d.LockSequence(ctx, tx, feed)
	if err != nil {
		return 0, err
	}
	b := dialect.NewBuilder(d)
	expired, err := dialect.QueryAll(ctx, tx,
		"SELECT feed_sync_id FROM "+positions+" WHERE deleted = 1 AND hidden = 0 AND published_at < "+
			b.Arg(seq.Now-r.Tombstones.Microseconds())+" ORDER BY feed_sync_id LIMIT "+b.Arg(purgeBatchSize),
		b.Args(), func(rows dialect.Rows) (position int64, err error) { return position, rows.Scan(&position) })
	if err != nil || len(expired) == 0 {
		return 0, err
	}
	b = dialect.NewBuilder(d)
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
