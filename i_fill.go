package rowfeed

import (
	"context"
	"errors"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

// fillBatch is the number of keys that one transaction records.
const fillBatch = 2000

// errRecordChanged means that another process has done this step, or ended the work.
var errRecordChanged = errors.New("the feed's record has changed meanwhile")

// filled notes that back-fill has come to a key; nil: to the end. It holds no schema
// lock, so it must not touch the mark of a drop, nor of another `feed add` that has
// come further: the row must be as it was read.
func (f *Feed) filled(ctx context.Context, tx dialect.Querier, r *catalog.Record, to []any) error {
	b := dialect.NewBuilder(f.db.store.Dialect)
	query := "UPDATE " + f.db.store.Table("feeds") + " SET "
	if to == nil {
		query += "state = " + b.Arg(catalog.StateActive) + ", fill_after = NULL"
	} else {
		query += "fill_after = " + b.Arg(dialect.EncodeKey(to))
	}
	query += " WHERE name = " + b.Arg(f.name) + " AND generation = " + b.Arg(r.Generation) + " AND state = " + b.Arg(catalog.StateFilling)
	if r.FillMark == nil {
		query += " AND fill_after IS NULL"
	} else {
		query += " AND fill_after = " + b.Arg(*r.FillMark)
	}
	n, err := tx.Exec(ctx, query, b.Args()...)
	if err == nil && n != 1 {
		err = errRecordChanged
	}
	return err
}

// fill records the keys of the rows that were there before the triggers, or gives them places.
func (f *Feed) fill(ctx context.Context, progress func(int64)) error {
	var total int64
	for {
		r := f.catalog.Record.Load()
		if r.State != catalog.StateFilling {
			return nil
		}
		n, err := modeOf(r).backfill(ctx, f, r)
		switch {
		case errors.Is(err, errRecordChanged):
			n = 0
		case err != nil:
			return f.settle(ctx, "record the rows that are there (run the same command again to go on)", err)
		}
		f.Wake()
		if total += n; progress != nil && n > 0 {
			progress(total)
		}
		if err := f.catalog.Reload(ctx); err != nil {
			return err
		}
	}
}
