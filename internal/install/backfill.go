package install

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/publish"
	"github.com/rowfeed/rowfeed/internal/shards"
)

// outboxRows gives places to the rows of one feed with an outbox that have none, or records them.
type OutboxRows struct {
	*catalog.Feed
	Recorder *publish.Recorder
	Outbox   *shards.Outbox
}

// BackFill places the rows of the table that have neither a record nor a place, of a feed with ModeOutbox: behind the head, where
// it disturbs nobody who reads there. AddFeed does it for rows that were there before the feed; call it for those that were imported
// since without records. Rows get ULIDs below all that their shard has given, in batches in the order of
// their keys, each in one transaction; when it breaks off, call it again. A row that has a record or a place is left alone,
// so that nothing comes twice.
//
// Their times are those of the feed's TimeColumn, where that tells one before the live part of their shard, else the last
// millisecond before it. In a shard that was filled before they come behind all that were placed then, with that
// last millisecond.
//
// While it runs a cursor below the live part of a shard, the beginning too, is refused with the code Filling: whoever goes on
// from there would miss rows that are placed behind him. Readers in the live part notice nothing; they are not told of
// the rows. progress may be nil; it is told the number of rows placed so far.
func (f *Feed) BackFill(ctx context.Context, progress func(rows int64)) (placed int64, err error) {
	if !f.DialectFeed().Outbox {
		return 0, &feedtype.Error{
			Code:   feedtype.Refused,
			Object: feedtype.FeedObject(f.Name),
			Cause:  "back-fill: its rows are not placed by rowfeed",
			Err:    errors.ErrUnsupported,
			Next:   "`rowfeed repair " + f.Name + "` records what is missing from a feed with positions of a sequence",
		}
	}
	err = f.Store.WithSchemaLock(ctx, "feed backfill "+f.Name, func(q dialect.Querier) error {
		if err := f.Reload(ctx); err != nil {
			return err
		}
		if err := f.Rows.KnowsPlaces(ctx, q, "back-fill"); err != nil && f.Record.Load().State == catalog.StateActive {
			return err
		}
		return f.Rows.beginBackFill(ctx, q)
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

// knowsPlaces refuses what needs to know which rows never had a place, where places were purged.
func (f *OutboxRows) KnowsPlaces(ctx context.Context, q dialect.Querier, doing string) error {
	b := dialect.NewBuilder(f.Store.Dialect)
	var n int64
	err := dialect.QueryRow(ctx, q, "SELECT count(*) FROM "+f.Store.Table("shards")+" WHERE feed = "+b.Arg(f.Name)+
		" AND (below_high <> 0 OR below_low <> 0)", b.Args(), &n)
	if err == nil && n > 0 {
		err = feedError(feedtype.Refused, f.Name, f.RecordYourself(),
			"%s: entries of it were purged, and rows that had them cannot be told from rows that never had a place",
			doing)
	}
	return err
}

// recordYourself is what only somebody who knows the rows can do.
func (f *OutboxRows) RecordYourself() string {
	feed := f.DialectFeed()
	columns := append([]string{"shard"}, feed.StoredKey()...)
	return fmt.Sprintf("Append records for the rows that you know to lack one: INSERT INTO %s (%s) SELECT … FROM %s "+
		"WHERE …; a row whose place was kept is delivered once more",
		feed.Records(), strings.Join(columns, ", "), feed.Source)
}

// beginBackFill begins a run, or goes on with one that is under way.
func (f *OutboxRows) beginBackFill(ctx context.Context, q dialect.Querier) error {
	r := *f.Record.Load()
	switch {
	case r.State == catalog.StateFilling:
		return nil
	case r.State != catalog.StateActive:
		return feedError(feedtype.Conflict, f.Name, "run the `rowfeed feed add` again that makes it",
			"it is %s", r.State)
	case r.Runs >= dialect.MaxRuns:
		return feedError(feedtype.Refused, f.Name, "`rowfeed repair "+f.Name+
			"` appends records for rows that have none", "it was filled too often")
	}
	r.Runs++
	b := dialect.NewBuilder(f.Store.Dialect)
	_, err := q.Exec(ctx, "UPDATE "+f.Store.Table("feeds")+" SET state = "+b.Arg(catalog.StateFilling)+
		", fill_after = NULL, options = "+b.Arg(r.OptionsText())+
		" WHERE name = "+b.Arg(f.Name)+" AND generation = "+b.Arg(r.Generation)+" AND state = "+
		b.Arg(catalog.StateActive), b.Args()...)
	return err
}

// backfill places the next batch of rows. The feed's record is written first, and so locked, in the transaction that
// places them: of two processes that are at the same batch one finds it done. Nothing else is locked
// but the places themselves.
func (m outbox) backfill(ctx context.Context, f *Feed, r *catalog.Record) (n int64, err error) {
	f.Rows.moveFirst(ctx)
	l, err := f.CurrentLayout(ctx)
	if err != nil {
		return 0, err
	}
	feed, behind := f.DialectFeed(), dialect.Behind{Run: r.Runs, Batch: 1}
	if r.TimeColumn != "" {
		if problem := timeColumnProblem(f.Store.Dialect, l.Table, r.TimeColumn); problem != nil {
			return 0, feedError(feedtype.Refused, f.Name, "give the column its name and type back",
				"its table %s is not as it was: %s", r.Source, problem.What)
		}
		behind.Time = l.Table.Column(r.TimeColumn)
	}
	var after []any
	if len(r.FillAfter) > 0 {
		batch, ok := r.FillAfter[0].(int64)
		if !ok {
			return 0, fmt.Errorf("the mark of back-fill is damaged: it begins with a %T", r.FillAfter[0])
		}
		behind.Batch, after = batch+1, r.FillAfter[1:]
	}
	var last []any
	var unready []int
	err = f.Store.InTx(ctx, dialect.ForRecord, "fill "+f.Name, func(tx dialect.Querier) (err error) {
		if behind.Rows, last, err = f.Recorder.KeyRange(ctx, tx, "", after, fillBatch); err != nil {
			return err
		}
		if err := f.Rows.mustHaveShards(ctx, tx, feed, behind.Rows); err != nil {
			return err
		}
		b := dialect.NewBuilder(f.Store.Dialect)
		unready, err = dialect.QueryAll(ctx, tx, dialect.UnreadyShards(f.Store.Dialect, b, feed, behind.Rows), b.Args(),
			func(rows dialect.Rows) (shard int, err error) { return shard, rows.Scan(&shard) })
		return err
	})
	if err != nil {
		return 0, err
	}
	for _, shard := range unready {
		err := f.Store.InTx(ctx, dialect.ForPublish, "begin to fill a shard of "+f.Name,
			func(tx dialect.Querier) error {
				return f.Rows.beginFilling(ctx, tx, feed, shard, behind.Run)
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
		if err := filled(ctx, f.Feed, tx, r, mark); err != nil {
			return err
		}
		n, err = f.Store.Dialect.PlaceBehind(ctx, tx, feed, behind)
		if err == nil && r.Runs > 1 { // places that its snapshot lacks because they were purged have left their mark
			err = f.Rows.KnowsPlaces(ctx, tx, "back-fill")
		}
		return err
	})
	if errors.Is(err, feedtype.Refused) { // for good: the run ends with what it has placed
		ended := f.Store.InTx(ctx, dialect.ForRecord, "end back-fill of "+f.Name,
			func(tx dialect.Querier) error { return filled(ctx, f.Feed, tx, r, nil) })
		return 0, errors.Join(err, ended)
	}
	return n, err
}

// moveFirst moves what waits ahead of a batch that looks for rows without a record: all records
// that wait are looked through for it. What cannot be moved only makes it slower.
func (f *OutboxRows) moveFirst(ctx context.Context) {
	if !f.Store.Publishes() {
		return
	}
	if _, err := f.Outbox.Pass(ctx, shards.MostMoved, false); err != nil && !errors.Is(err, publish.ErrHeld) &&
		!errors.Is(err, publish.ErrStuck) && ctx.Err() == nil {
		f.Trouble(err)
	}
}

// beginFilling makes a shard ready for the run that comes to it first, under the shard's lock. Where the shard has given no ULID yet its live
// part begins at the time of the feed's making, whatever hints its records have.
func (f *OutboxRows) beginFilling(ctx context.Context, tx dialect.Querier, feed *dialect.Feed, shard int,
	run int64) error {
	d := f.Store.Dialect
	row, err := d.LockShard(ctx, tx, feed, shard, dialect.LockBounds{})
	if err != nil {
		return err
	}
	if row.ULIDState == (dialect.ULIDState{}) {
		var created int64
		b := dialect.NewBuilder(d)
		query := "SELECT created_at FROM " + f.Store.Table("feeds") + " WHERE name = " + b.Arg(f.Name)
		if err := dialect.QueryRow(ctx, tx, query, b.Args(), &created); err != nil {
			return err
		}
		first, next, err := row.Take(time.UnixMicro(created).UnixMilli(), shards.NewULIDRandom(), 1)
		if err != nil {
			return err
		}
		if err := d.AdvanceShard(ctx, tx, feed, row, next, row.Witness); err != nil {
			return err
		}
		if err := f.Outbox.LivesFrom(ctx, tx, shard, first.Position()); err != nil {
			return err
		}
	}
	b := dialect.NewBuilder(d)
	_, err = tx.Exec(ctx, "UPDATE "+f.Store.Table("shards")+" SET filled_by = "+b.Arg(run)+" WHERE feed = "+
		b.Arg(f.Name)+" AND shard = "+b.Arg(shard)+" AND filled_by = 0", b.Args()...)
	return err
}
