package operate

import (
	"context"

	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/install"
)

// resetRows clears impossible positions in rows of the source, so that they are published again, and returns how many.
// The positions above former, up to now, are also impossible. The former sequence may have given them after rowfeed
// took over, when readers had already passed them.
func (f *Checker) resetRows(ctx context.Context, tx dialect.Querier, former, now int64) (int64, error) {
	feed := f.DialectFeed()
	if !feed.InRows() {
		return 0, nil
	}
	b := dialect.NewBuilder(f.Store.Dialect.Syntax)
	which := b.Fill(f.Statement(statements, "impossible_rows"), dialect.Args{"feed": f.Name, "former": former,
		"now": now})
	return f.Store.Dialect.ResetRows(ctx, tx, feed, which, b.Args())
}

// Repair is admin.Checker.Repair.
func (f *Checker) Repair(ctx context.Context) (int64, error) {
	if err := f.Reload(ctx); err != nil {
		return 0, err
	}
	kind, err := kindOf(f.Record.Load())
	if err == nil {
		err = install.RefuseMoving(f.Record.Load(), "repair")
	}
	if err != nil {
		return 0, err
	}
	if f.Record.Load().PublishedElsewhere {
		return 0, &feedtype.Error{Code: feedtype.Refused, Object: feedtype.FeedObject(f.Name),
			Cause: "repair: another publisher gives its positions",
			Next: "correct its rows and its sequence by hand, or run `rowfeed feed upgrade " + f.Name +
				" --published-here`, and repair it then"}
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
	former, now, err := f.Install.Verifier.Former(ctx)
	if err != nil {
		return 0, err
	}
	err = mend("clear impossible positions", func(tx dialect.Querier) (err error) {
		total, err = f.resetRows(ctx, tx, former, now)
		return err
	})
	if err == nil && now > former {
		err = f.Install.Verifier.Repaired(ctx, now)
	}
	if err != nil {
		return 0, err
	}
	defer f.Wake()
	for _, rule := range rules(feed) {
		if rule.rule == admin.RuleSequence {
			continue // resetRows or the next change corrects it
		}
		record := "record_positions"
		if rule.fromSource {
			record = "record_rows"
		}
		var n int64
		err := mend("record keys", func(tx dialect.Querier) (err error) {
			n, err = dialect.Exec(ctx, tx, d.Syntax, statements.For(d.Syntax, feed, record),
				d.Uncut(dialect.Args{"rule": statements.For(d.Syntax, feed, rule.statement).With(nil)}))
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
