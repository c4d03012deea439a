package publish

import (
	"context"
	"math"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

func (f *Sequence) Purge(ctx context.Context) (int, error) {
	total := 0
	for {
		n := 0
		due, err := f.oldestDue(ctx)
		if err != nil || !due {
			return total, f.Explain(ctx, "purge tombstones", err)
		}
		err = f.Store.InTx(ctx, dialect.ForPublish, "purge tombstones of "+f.Name, func(tx dialect.Querier) (err error) {
			n, err = f.purgeBatch(ctx, tx)
			return err
		})
		if err != nil {
			return total, f.Explain(ctx, "purge tombstones", err)
		}
		total += n
		if n < PurgeBatch {
			return total, nil
		}
	}
}

const PurgeBatch = 500

func (f *Sequence) purgeBatch(ctx context.Context, tx dialect.Querier) (int, error) {
	d := f.Store.Dialect
	feed := f.DialectFeed()
	positions := dialect.Qualified(d, feed.Positions())
	// Publishers are kept out, so that no key comes back to life between the two steps.
	if _, err := d.LockSequence(ctx, tx, feed); err != nil {
		return 0, err
	}
	oldest, err := f.tombstones(ctx, tx, PurgeBatch)
	if err != nil {
		return 0, err
	}
	expired := f.expired(oldest)
	if len(expired) == 0 {
		return 0, nil
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
	_, err = tx.Exec(ctx, "UPDATE "+f.Store.Table("feeds")+" SET tombstones_below = "+b.Arg(highest)+
		" WHERE name = "+b.Arg(f.Name)+" AND tombstones_below < "+b.Arg(highest), b.Args()...)
	return len(expired), err
}

// oldestDue tells whether the oldest tombstone is to be purged, and remembers where the next
// look begins: new tombstones are above all that was published before. A database without
// an index of tombstones in their order would read the whole feed to find one, or none.
func (f *Sequence) oldestDue(ctx context.Context) (bool, error) {
	// Whatever is lower was committed before this look, and so is seen by it.
	seen, generation := f.History.Highest(0), f.Generation()
	oldest, err := f.tombstones(ctx, f.Store.On(), 1)
	if err != nil {
		return false, err
	}
	if seen.Generation == generation && seen.Position.Number() < math.MaxInt64 {
		from := seen.Position.Number() + 1
		if len(oldest) > 0 {
			from = min(from, oldest[0].position)
		}
		f.mu.Lock()
		f.barren = feedtype.CursorState{Generation: generation, Position: feedtype.Numbered(from)}
		f.mu.Unlock()
	}
	return len(f.expired(oldest)) > 0, nil
}

// expired answers the positions of those tombstones that are kept long enough. Publication
// times never fall from one position to a higher one, so the first that is not due is the last
// to be looked at.
func (f *Sequence) expired(oldest []tombstone) (due []int64) {
	keep := f.Record.Load().Tombstones.Microseconds()
	for _, t := range oldest {
		if t.age <= keep {
			break
		}
		due = append(due, t.position)
	}
	return due
}

type tombstone struct{ position, age int64 }

// tombstones reads those with the lowest positions, above what is known to have none: up to
// tombstones_below, which tells a process that has not looked yet, they have all been purged, and
// whatever has become one since stands higher.
func (f *Sequence) tombstones(ctx context.Context, q dialect.Querier, limit int) ([]tombstone, error) {
	d, b := f.Store.Dialect, dialect.NewBuilder(f.Store.Dialect)
	f.mu.Lock()
	barren := f.barren
	f.mu.Unlock()
	from, above := f.Record.Load().TombstonesBelow+1, ""
	if barren.Generation == f.Generation() {
		from = max(from, barren.Position.Number())
	}
	if from > 1 {
		above = " AND feed_sync_id >= " + b.Arg(from)
	}
	return dialect.QueryAll(ctx, q, "SELECT feed_sync_id, "+d.Now()+" - published_at FROM "+dialect.Qualified(d, f.DialectFeed().Positions())+
		" WHERE deleted = 1 AND hidden = 0"+above+" ORDER BY feed_sync_id LIMIT "+b.Arg(limit), b.Args(),
		func(rows dialect.Rows) (t tombstone, err error) { return t, rows.Scan(&t.position, &t.age) })
}
