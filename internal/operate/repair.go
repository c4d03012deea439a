package operate

import (
	"context"
	"math"

	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/publish"
)

// resetRows clears impossible positions in rows of the source, so that they are published again, and returns how many.
func (f *Checker) resetRows(ctx context.Context, tx dialect.Querier) (int64, error) {
	feed := f.DialectFeed()
	if !feed.InRows() {
		return 0, nil
	}
	b := dialect.NewBuilder(f.Store.Dialect)
	return f.Store.Dialect.ResetRows(ctx, tx, feed, "t.feed_sync_id < 1 OR t.feed_sync_id > (SELECT value FROM "+
		f.Store.Table("sequences")+" WHERE name = "+b.Arg(f.Name)+
		") OR t.feed_sync_id IN (SELECT feed_sync_id FROM ("+f.sharedPositions(feed)+") shared)", b.Args())
}

// sharedPositions is a query for the positions that more than one key has.
func (f *Checker) sharedPositions(feed *dialect.Feed) string {
	from := dialect.Qualified(f.Store.Dialect, feed.Positions())
	if feed.InRows() {
		from = "(SELECT feed_sync_id FROM " + from + " UNION ALL SELECT feed_sync_id FROM " +
			dialect.Qualified(f.Store.Dialect, feed.Source) + " WHERE feed_sync_id IS NOT NULL) x"
	}
	return "SELECT feed_sync_id FROM " + from + " GROUP BY feed_sync_id HAVING count(*) > 1"
}

// Repair is admin.Checker.Repair.
func (f *Checker) Repair(ctx context.Context) (int64, error) {
	if err := f.Reload(ctx); err != nil {
		return 0, err
	}
	kind, err := kindOf(f.Record.Load())
	if err != nil {
		return 0, err
	}
	return kind.repair(ctx, f)
}

// repairKeys is Repair for a sequence feed.
func (f *Checker) repairKeys(ctx context.Context) (int64, error) {
	d, feed := f.Store.Dialect, f.DialectFeed()
	var total int64
	mend := func(doing string, fn func(dialect.Querier) error) error {
		return f.Explain(ctx, doing, f.Store.InTx(ctx, dialect.ForRepair, doing, fn))
	}
	err := mend("clear impossible positions", func(tx dialect.Querier) (err error) {
		total, err = f.resetRows(ctx, tx)
		return err
	})
	if err != nil {
		return 0, err
	}
	defer f.Wake()
	for _, rule := range rules(feed) {
		if rule.rule == admin.RuleSequence {
			continue // resetRows or the next change corrects it
		}
		side, refs := "p", dialect.StoredRefs(d, feed, "p")
		if rule.fromSource {
			side, refs = "t", dialect.KeyRefs(d, feed, "t")
		}
		b := dialect.NewBuilder(d)
		query := publish.RecordFrom(d, feed, refs, dialect.Changed, ruleFrom(f.Feed, b, rule, side)+" LIMIT "+
			b.Arg(int64(math.MaxInt64)))
		var n int64
		err := mend("record keys", func(tx dialect.Querier) (err error) {
			n, err = tx.Exec(ctx, query, b.Args()...)
			return err
		})
		if err != nil {
			return total, err
		}
		total += n
	}
	n, err := f.repairShards(ctx)
	return total + n, err
}
