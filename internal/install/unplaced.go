package install

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/publish"
	"github.com/rowfeed/rowfeed/internal/store"
	"github.com/rowfeed/rowfeed/internal/ulidfeed"
)

// fillBatch is the number of keys that one back-fill transaction reads.
const fillBatch = 2000

// OutboxRows handles the rows of an outbox feed that have neither a record nor a place: back-fill places them, repair
// appends records for them.
type OutboxRows struct {
	*catalog.Feed
	Recorder *publish.Recorder
	Outbox   *ulidfeed.Outbox
}

// RecordMissing appends records for rows that have neither a record nor a place, in batches in key order. On MariaDB
// one INSERT … SELECT over the whole table would block writers of the outbox while it runs.
func (f *OutboxRows) RecordMissing(ctx context.Context) (n int64, err error) {
	for after, more := []any(nil), true; more; {
		f.moveWaiting(ctx)
		var recorded int64
		var last []any
		err = f.Store.InTx(ctx, dialect.ForRepair, "append records", func(tx dialect.Querier) (err error) {
			recorded, last, err = f.recordBatch(ctx, tx, after)
			return err
		})
		if err != nil {
			return n, f.Explain(ctx, "append records", err)
		}
		n += recorded
		after, more = last, last != nil
		f.Recorder.Wake()
	}
	return n, nil
}

// recordBatch is one transaction of a repair. It locks the feed's record, as back-fill does, so that two processes
// never work on the same rows at a time. The INSERT's snapshot may lack places that were purged. The purge leaves a
// mark, so the transaction looks for the mark after the INSERT.
func (f *OutboxRows) recordBatch(ctx context.Context, tx dialect.Querier, after []any) (
	recorded int64, last []any, err error,
) {
	if err := f.lockActive(ctx, tx); err != nil {
		return 0, nil, err
	}
	rows, last, err := f.Recorder.KeyRange(ctx, tx, "", after, fillBatch)
	if err != nil {
		return 0, nil, err
	}
	if err := f.refuseUnsharded(ctx, tx, f.DialectFeed(), rows); err != nil {
		return 0, nil, err
	}
	b := dialect.NewBuilder(f.Store.Dialect.Syntax)
	recorded, err = tx.Exec(ctx, dialect.RecordUnplaced(f.Store.Dialect.Syntax, b, f.DialectFeed(), rows), b.Args()...)
	if err != nil {
		return 0, nil, err
	}
	return recorded, last, f.RefuseAfterPurge(ctx, tx, "repair")
}

// lockActive locks the feed's record. It refuses a feed that is being filled, or was dropped or added again.
func (f *OutboxRows) lockActive(ctx context.Context, tx dialect.Querier) error {
	r := f.Record.Load()
	args := dialect.Args{"feed": f.Name, "generation": r.Generation}
	if _, err := f.Store.Exec(ctx, tx, statements, "lock_record", args); err != nil {
		return err
	}
	var state string
	err := f.Store.One(ctx, tx, statements, "state", args, &state)
	switch {
	case err != nil && !errors.Is(err, store.ErrNoRows):
		return err
	case state == catalog.StateFilling:
		return feedError(feedtype.Filling, f.Name, "run `rowfeed feed backfill "+f.Name+
			"`, if it was interrupted", "back-fill is placing its rows")
	case state != catalog.StateActive:
		return feedError(feedtype.Conflict, f.Name, "run the command again", "it was dropped or added again meanwhile")
	}
	return nil
}

// refuseUnsharded refuses rows without a shard among those that are to be placed or recorded.
func (f *OutboxRows) refuseUnsharded(ctx context.Context, q dialect.Querier, feed *dialect.Feed,
	rows func(*dialect.Builder) []string) error {
	return refuseWithoutShard(ctx, f.Store.Dialect, q, feed, func(condition string) dialect.Built {
		return func(b *dialect.Builder) string {
			return dialect.Unplaced(f.Store.Dialect.Syntax, b, feed, "", append(rows(b), condition))
		}
	})
}

// RefuseAfterPurge refuses an operation that has to know which rows never had a place, if places were purged.
func (f *OutboxRows) RefuseAfterPurge(ctx context.Context, q dialect.Querier, doing string) error {
	var n int64
	err := f.Store.One(ctx, q, statements, "purged_shards", dialect.Args{"feed": f.Name}, &n)
	if err == nil && n > 0 {
		err = feedError(feedtype.Refused, f.Name, f.HowToRecord(),
			"%s: entries were purged, and purged rows look like rows that never had an entry",
			doing)
	}
	return err
}

// HowToRecord describes how an operator appends records for rows that rowfeed cannot identify.
func (f *OutboxRows) HowToRecord() string {
	feed := f.DialectFeed()
	columns := append([]string{"shard"}, feed.StoredKey()...)
	return fmt.Sprintf("Append records for the rows that you know to lack one: INSERT INTO %s (%s) SELECT … FROM %s "+
		"WHERE …; rows that still have an entry are delivered again",
		feed.Records(), strings.Join(columns, ", "), feed.Source)
}

// moveWaiting moves waiting records before a batch. The batch compares rows with all waiting records, so fewer of them
// make it faster. A failure to move them is therefore reported and otherwise ignored.
func (f *OutboxRows) moveWaiting(ctx context.Context) {
	if !f.Store.Publishes() {
		return
	}
	if _, err := f.Outbox.Pass(ctx, ulidfeed.MostMoved, false); err != nil && !errors.Is(err, publish.ErrHeld) &&
		!errors.Is(err, publish.ErrStuck) && ctx.Err() == nil {
		f.Trouble(err)
	}
}
