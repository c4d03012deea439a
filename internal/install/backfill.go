package install

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/publish"
	"github.com/rowfeed/rowfeed/internal/ulidfeed"
)

// Filler lets the rows that a table had before its feed enter the feed.
type Filler struct {
	*catalog.Feed
	Recorder   *publish.Recorder
	Rows       *OutboxRows
	Resharding *Resharding
}

// Complete records or places the rows that the table had before the feed, and assigns keys to data shards. After an
// interruption a second call continues. progress may be nil.
func (f *Filler) Complete(ctx context.Context, progress func(rows int64)) error {
	if err := f.fill(ctx, progress); err != nil {
		return err
	}
	return f.Resharding.assignShards(ctx, f.Record.Load().DataShards, progress)
}

// fill runs back-fill, batch by batch, until the feed has left the state filling.
func (f *Filler) fill(ctx context.Context, progress func(int64)) error {
	var total int64
	for {
		r := f.Record.Load()
		if r.State != catalog.StateFilling {
			return nil
		}
		if r.Unreadable != nil {
			return r.Unreadable
		}
		batch := f.recordBatch
		if r.Outbox() {
			batch = f.placeBatch
		}
		n, err := batch(ctx, r)
		switch {
		case errors.Is(err, ErrRecordChanged):
			n = 0
		case err != nil:
			return f.Explain(ctx, "record the existing rows (run the same command again to continue)", err)
		}
		f.Recorder.Wake()
		if total += n; progress != nil && n > 0 {
			progress(total)
		}
		if err := f.Reload(ctx); err != nil {
			return err
		}
	}
}

// recordBatch records the keys of the next batch of rows as changes, and returns their number. The error is
// ErrRecordChanged if another process has done this batch.
func (f *Filler) recordBatch(ctx context.Context, r *catalog.FeedRecord) (n int64, err error) {
	err = f.Store.InTx(ctx, dialect.ForRecord, "fill "+f.Name, func(tx dialect.Querier) error {
		recorded, last, err := f.Recorder.RecordRange(ctx, tx, "", r.FillAfter, fillBatch, dialect.Changed)
		if err != nil {
			return err
		}
		n = recorded
		return f.saveMark(ctx, tx, r, last)
	})
	return n, err
}

// saveMark stores the last key that back-fill has processed; nil means that it is complete. Back-fill holds no
// schema lock, so a drop or another back-fill can have changed the record. The UPDATE therefore requires the state,
// generation and mark that were read, and the error is ErrRecordChanged if they differ.
func (f *Filler) saveMark(ctx context.Context, tx dialect.Querier, r *catalog.FeedRecord, to []any) error {
	save, args := "save_mark", dialect.Args{"unchanged": unchanged(f.Store, r, catalog.StateFilling)}
	if to == nil {
		save, args["active"] = "end_walk", catalog.StateActive
	} else {
		args["to"] = dialect.EncodeKey(to)
	}
	n, err := f.Store.Exec(ctx, tx, statements, save, args)
	if err == nil && n != 1 {
		err = ErrRecordChanged
	}
	return err
}

// BackFill places the rows of an outbox feed that have neither a record nor a place. It places them below the live part
// of their shard, where they do not disturb readers at the head. Adding a feed does this for the rows that the table
// already has. Call BackFill for rows that were imported later without records.
//
// It works in batches in key order, each in one transaction. After an interruption a second call continues. Rows that
// have a record or a place are not placed again.
//
// A row gets the time in the feed's TimeColumn if that is before the live part of its shard, and otherwise the last
// millisecond before the live part. In a shard that an earlier run has filled, all rows get that last millisecond and
// follow the rows of that run.
//
// While it runs, cursors below the live part of a shard are refused with the code Filling, the beginning too: such a
// reader would miss rows that are placed behind its cursor. Readers in the live part are not affected, and do not
// receive these rows. progress may be nil; it receives the number of rows placed so far.
func (f *Filler) BackFill(ctx context.Context, progress func(rows int64)) (placed int64, err error) {
	if !f.DialectFeed().Outbox {
		return 0, &feedtype.Error{
			Code:   feedtype.Refused,
			Object: feedtype.FeedObject(f.Name),
			Cause:  "back-fill: rowfeed does not place the rows of this feed",
			Err:    errors.ErrUnsupported,
			Next:   "`rowfeed repair " + f.Name + "` records missing keys of a feed of mode sequence",
		}
	}
	err = f.Store.WithSchemaLock(ctx, "feed backfill "+f.Name, func(q dialect.Querier) error {
		if err := f.Reload(ctx); err != nil {
			return err
		}
		err := f.Rows.RefuseAfterPurge(ctx, q, "back-fill")
		if err != nil && f.Record.Load().State == catalog.StateActive {
			return err
		}
		return f.beginBackFill(ctx, q)
	})
	if err != nil {
		return 0, f.Fail("begin back-fill", err)
	}
	if err := f.Reload(ctx); err != nil {
		return 0, err
	}
	err = f.fill(ctx, func(rows int64) {
		if placed = rows; progress != nil {
			progress(rows)
		}
	})
	return placed, err
}

// beginBackFill begins a run, or continues the current one.
func (f *Filler) beginBackFill(ctx context.Context, q dialect.Querier) error {
	r := *f.Record.Load()
	switch {
	case r.State == catalog.StateFilling:
		return nil
	case r.State != catalog.StateActive:
		return feedError(feedtype.Conflict, f.Name, "complete it first: run the same `rowfeed feed add` again",
			"it is %s", r.State)
	case r.Runs >= dialect.MaxRuns:
		return feedError(feedtype.Refused, f.Name, "`rowfeed repair "+f.Name+
			"` appends records for rows that have none", "the feed has had the maximum number of back-fills")
	}
	r.Runs++
	_, err := f.Store.Exec(ctx, q, statements, "begin_filling", dialect.Args{"filling": catalog.StateFilling,
		"options": r.OptionsText(), "feed": f.Name, "generation": r.Generation, "active": catalog.StateActive})
	return err
}

// placeBatch places the next batch of an outbox feed's rows, and returns their number, as recordBatch does. The
// transaction that places them writes the feed's record first, which locks the record. So of two processes that have
// the same batch, the second finds it done. Apart from the record only the places are locked.
func (f *Filler) placeBatch(ctx context.Context, r *catalog.FeedRecord) (n int64, err error) {
	f.Rows.moveWaiting(ctx)
	l, err := f.CurrentLayout(ctx)
	if err != nil {
		return 0, err
	}
	feed, behind := f.DialectFeed(), dialect.BackfillBatch{Run: r.Runs, Batch: 1}
	if r.TimeColumn != "" {
		if problem := timeColumnProblem(f.Store.Dialect, l.Table, r.TimeColumn); problem != nil {
			return 0, feedError(feedtype.Refused, f.Name, "restore the name and type of the column",
				"its table %s has changed: %s", r.Source, problem.What)
		}
		behind.Time = l.Table.Column(r.TimeColumn)
	}
	var after []any
	if len(r.FillAfter) > 0 {
		batch, ok := r.FillAfter[0].(int64)
		if !ok {
			return 0, fmt.Errorf("the stored mark of back-fill is damaged: it begins with a %T", r.FillAfter[0])
		}
		behind.Batch, after = batch+1, r.FillAfter[1:]
	}
	var last []any
	var unready []int
	err = f.Store.InTx(ctx, dialect.ForRecord, "fill "+f.Name, func(tx dialect.Querier) (err error) {
		if behind.Rows, last, err = f.Recorder.KeyRange(ctx, tx, "", after, fillBatch); err != nil {
			return err
		}
		if err := f.Rows.refuseUnsharded(ctx, tx, feed, behind.Rows); err != nil {
			return err
		}
		b := dialect.NewBuilder(f.Store.Dialect.Syntax)
		unready, err = dialect.QueryAll(ctx, tx, dialect.UnreadyShards(f.Store.Dialect.Syntax, b, feed, behind.Rows),
			b.Args(),
			func(rows dialect.Rows) (shard int, err error) { return shard, rows.Scan(&shard) })
		return err
	})
	if err != nil {
		return 0, err
	}
	for _, shard := range unready {
		err := f.Store.InTx(ctx, dialect.ForPublish, "begin to fill a shard of "+f.Name,
			func(tx dialect.Querier) error {
				return f.fixBoundary(ctx, tx, feed, shard, behind.Run)
			})
		if err != nil {
			return 0, err
		}
	}
	var mark []any
	if last != nil {
		mark = append([]any{behind.Batch}, last...)
	}
	err = f.Store.InTx(ctx, dialect.ForRecord, "fill "+f.Name, func(tx dialect.Querier) error {
		if err := f.saveMark(ctx, tx, r, mark); err != nil {
			return err
		}
		n, err = f.Store.Dialect.PlaceBehind(ctx, tx, feed, behind)
		if err == nil && r.Runs > 1 { // the snapshot may lack places that were purged: their mark is visible
			err = f.Rows.RefuseAfterPurge(ctx, tx, "back-fill")
		}
		return err
	})
	if errors.Is(err, feedtype.Refused) { // permanent: the run ends with what it has placed
		ended := f.Store.InTx(ctx, dialect.ForRecord, "end back-fill of "+f.Name,
			func(tx dialect.Querier) error { return f.saveMark(ctx, tx, r, nil) })
		return 0, errors.Join(err, ended)
	}
	return n, err
}

// fixBoundary prepares a shard for the first run that places rows in it, under the shard's lock. If the shard has
// given no ULID yet, its live part begins at the creation time of the feed, whatever time hints its records have.
func (f *Filler) fixBoundary(ctx context.Context, tx dialect.Querier, feed *dialect.Feed, shard int,
	run int64) error {
	d := f.Store.Dialect
	row, err := d.LockShard(ctx, tx, feed, shard, dialect.LockBounds{})
	if err != nil {
		return err
	}
	if row.ULIDState == (dialect.ULIDState{}) {
		var created int64
		args := dialect.Args{"feed": f.Name}
		if err := f.Store.One(ctx, tx, statements, "created_at", args, &created); err != nil {
			return err
		}
		first, next, err := row.Take(time.UnixMicro(created).UnixMilli(), ulidfeed.NewULIDRandom(), 1)
		if err != nil {
			return err
		}
		if err := d.AdvanceShard(ctx, tx, feed, row, next, row.Nonces); err != nil {
			return err
		}
		if err := f.Rows.Outbox.LivesFrom(ctx, tx, shard, first.Position()); err != nil {
			return err
		}
	}
	_, err = f.Store.Exec(ctx, tx, statements, "set_filled_by",
		dialect.Args{"run": run, "feed": f.Name, "shard": shard})
	return err
}
