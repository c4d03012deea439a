package publish

import (
	"context"
	"math"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// Purge deletes the tombstones that are older than the feed keeps them, in batches of PurgeBatch.
func (f *Sequence) Purge(ctx context.Context) (int, error) {
	total := 0
	for {
		n := 0
		due, err := f.oldestDue(ctx)
		if err != nil || !due {
			return total, f.Explain(ctx, "purge tombstones", err)
		}
		err = f.Store.InTx(
			ctx,
			dialect.ForPublish,
			"purge tombstones of "+f.Name,
			func(tx dialect.Querier) (err error) {
				n, err = f.purgeBatch(ctx, tx)
				return err
			},
		)
		if err != nil {
			return total, f.Explain(ctx, "purge tombstones", err)
		}
		total += n
		if n < PurgeBatch {
			return total, nil
		}
	}
}

// PurgeBatch is the number of tombstones, or entries of an outbox, that one transaction deletes.
const PurgeBatch = 500

func (f *Sequence) purgeBatch(ctx context.Context, tx dialect.Querier) (int, error) {
	d := f.Store.Dialect
	feed := f.DialectFeed()
	// The lock keeps publishers out: no key may get a row again between reading and deleting its tombstone.
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
	_, err = dialect.Exec(ctx, tx, d.Syntax, statements.For(d.Syntax, feed, "delete_tombstones"),
		dialect.Args{"positions": dialect.List(expired)})
	if err != nil {
		return 0, err
	}
	_, err = f.Store.Exec(ctx, tx, statements, "raise_tombstones_below",
		dialect.Args{"feed": f.Name, "highest": expired[len(expired)-1]})
	return len(expired), err
}

// oldestDue returns true if the oldest tombstone is due. It also stores the position at which the next call begins to
// read: the oldest tombstone's, or the head if there is none, since new tombstones get positions above the head.
// Without it, a database that has no index of tombstones by position would read the whole feed in each call.
func (f *Sequence) oldestDue(ctx context.Context) (bool, error) {
	// The highest position is read before the tombstones. So every tombstone up to it was committed before the query
	// of tombstones, which therefore finds it.
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
		f.purgeFrom = feedtype.CursorState{Generation: generation, Position: feedtype.Numbered(from), Term: seen.Term}
		f.mu.Unlock()
	}
	return len(f.expired(oldest)) > 0, nil
}

// expired returns the positions of the tombstones that were kept long enough. Publication times never fall from one
// position to a higher one, so expired stops at the first tombstone that is not due.
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

// tombstones reads the tombstones with the lowest positions. It begins above tombstones_below, up to which all were
// purged, and at purgeFrom: tombstones that were published later have higher positions.
func (f *Sequence) tombstones(ctx context.Context, q dialect.Querier, limit int) ([]tombstone, error) {
	f.mu.Lock()
	start := f.purgeFrom
	f.mu.Unlock()
	from := f.Record.Load().TombstonesBelow + 1
	if start.Generation == f.Generation() && start.Term == f.History.Highest(0).Term {
		from = max(from, start.Position.Number())
	}
	name, args := "all_tombstones", dialect.Args{"count": limit}
	if from > 1 {
		name, args["from"] = "tombstones", from
	}
	return dialect.All(ctx, q, f.Store.Dialect.Syntax, f.Statement(statements, name), args,
		func(rows dialect.Rows) (t tombstone, err error) { return t, rows.Scan(&t.position, &t.age) })
}
