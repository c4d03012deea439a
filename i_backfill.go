package rowfeed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
)

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
	if !f.catalog.DialectFeed().Outbox {
		return 0, &feedtype.Error{Code: feedtype.Refused, Object: feedtype.FeedObject(f.name), Cause: "back-fill: its rows are not placed by rowfeed", Err: errors.ErrUnsupported,
			Next: "`rowfeed repair " + f.name + "` records what is missing from a feed with positions of a sequence"}
	}
	err = f.db.store.WithSchemaLock(ctx, "feed backfill "+f.name, func(q dialect.Querier) error {
		if err := f.catalog.Reload(ctx); err != nil {
			return err
		}
		if err := f.knowsPlaces(ctx, q, "back-fill"); err != nil && f.State() == catalog.StateActive {
			return err
		}
		return f.beginBackFill(ctx, q)
	})
	if err != nil {
		return 0, f.db.store.Fail(feedtype.FeedObject(f.name), "begin back-fill", err)
	}
	if err := f.catalog.Reload(ctx); err != nil {
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
func (f *Feed) knowsPlaces(ctx context.Context, q dialect.Querier, doing string) error {
	b := dialect.NewBuilder(f.db.store.Dialect)
	var n int64
	err := dialect.QueryRow(ctx, q, "SELECT count(*) FROM "+f.db.store.Table("shards")+" WHERE feed = "+b.Arg(f.name)+" AND (below_high <> 0 OR below_low <> 0)", b.Args(), &n)
	if err == nil && n > 0 {
		err = &feedtype.Error{Code: feedtype.Refused, Object: feedtype.FeedObject(f.name), Cause: doing + ": entries of it were purged, and rows that had them cannot be told from rows that never had a place",
			Next: f.recordYourself()}
	}
	return err
}

// recordYourself is what only somebody who knows the rows can do.
func (f *Feed) recordYourself() string {
	feed := f.catalog.DialectFeed()
	columns := append([]string{"shard"}, feed.StoredKey()...)
	return fmt.Sprintf("Append records for the rows that you know to lack one: INSERT INTO %s (%s) SELECT … FROM %s WHERE …; a row whose place was kept is delivered once more",
		feed.Records(), strings.Join(columns, ", "), feed.Source)
}

// beginBackFill begins a run, or goes on with one that is under way.
func (f *Feed) beginBackFill(ctx context.Context, q dialect.Querier) error {
	r := *f.catalog.Record.Load()
	switch {
	case r.State == catalog.StateFilling:
		return nil
	case r.State != catalog.StateActive:
		return &feedtype.Error{Code: feedtype.Conflict, Object: feedtype.FeedObject(f.name), Cause: "it is " + r.State, Next: "run the `rowfeed feed add` again that makes it"}
	case r.Runs >= dialect.MaxRuns:
		return &feedtype.Error{Code: feedtype.Refused, Object: feedtype.FeedObject(f.name), Cause: "it was filled too often", Next: "`rowfeed repair " + f.name + "` appends records for rows that have none"}
	}
	r.Runs++
	b := dialect.NewBuilder(f.db.store.Dialect)
	_, err := q.Exec(ctx, "UPDATE "+f.db.store.Table("feeds")+" SET state = "+b.Arg(catalog.StateFilling)+", fill_after = NULL, options = "+b.Arg(r.OptionsText())+
		" WHERE name = "+b.Arg(f.name)+" AND generation = "+b.Arg(r.Generation)+" AND state = "+b.Arg(catalog.StateActive), b.Args()...)
	return err
}

// backfill places the next batch of rows. The feed's record is written first, and so locked, in the transaction that
// places them: of two processes that are at the same batch one finds it done. Nothing else is locked
// but the places themselves.
func (m outbox) backfill(ctx context.Context, f *Feed, r *catalog.Record) (n int64, err error) {
	m.moveFirst(ctx, f)
	l, err := f.catalog.CurrentLayout(ctx)
	if err != nil {
		return 0, err
	}
	feed, behind := f.catalog.DialectFeed(), dialect.Behind{Run: r.Runs, Batch: 1}
	if r.TimeColumn != "" {
		if problem := timeColumnProblem(f.db.store.Dialect, l.Table, r.TimeColumn); problem != nil {
			return 0, &feedtype.Error{Code: feedtype.Refused, Object: feedtype.FeedObject(f.name), Cause: "its table " + r.Source.String() + " is not as it was: " + problem.What, Next: "give the column its name and type back"}
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
	err = f.db.store.InTx(ctx, dialect.ForRecord, "fill "+f.name, func(tx dialect.Querier) (err error) {
		if behind.Rows, last, err = f.keyRange(ctx, tx, "", after, fillBatch); err != nil {
			return err
		}
		if err := f.mustHaveShards(ctx, tx, feed, behind.Rows); err != nil {
			return err
		}
		b := dialect.NewBuilder(f.db.store.Dialect)
		unready, err = dialect.QueryAll(ctx, tx, dialect.UnreadyShards(f.db.store.Dialect, b, feed, behind.Rows), b.Args(),
			func(rows dialect.Rows) (shard int, err error) { return shard, rows.Scan(&shard) })
		return err
	})
	if err != nil {
		return 0, err
	}
	for _, shard := range unready {
		err := f.db.store.InTx(ctx, dialect.ForPublish, "begin to fill a shard of "+f.name, func(tx dialect.Querier) error {
			return f.beginFilling(ctx, tx, feed, shard, behind.Run)
		})
		if err != nil {
			return 0, err
		}
	}
	var mark []any
	if last != nil {
		mark = append([]any{behind.Batch}, last...)
	}
	err = f.db.store.InTx(ctx, dialect.ForRecord, "fill "+f.name, func(tx dialect.Querier) error {
		if err := f.filled(ctx, tx, r, mark); err != nil {
			return err
		}
		n, err = f.db.store.Dialect.PlaceBehind(ctx, tx, feed, behind)
		if err == nil && r.Runs > 1 { // places that its snapshot lacks because they were purged have left their mark
			err = f.knowsPlaces(ctx, tx, "back-fill")
		}
		return err
	})
	if errors.Is(err, feedtype.Refused) { // for good: the run ends with what it has placed
		ended := f.db.store.InTx(ctx, dialect.ForRecord, "end back-fill of "+f.name, func(tx dialect.Querier) error { return f.filled(ctx, tx, r, nil) })
		return 0, errors.Join(err, ended)
	}
	return n, err
}

// moveFirst moves what waits ahead of a batch that looks for rows without a record: all records
// that wait are looked through for it. What cannot be moved only makes it slower.
func (m outbox) moveFirst(ctx context.Context, f *Feed) {
	if f.db.publishesNothing() {
		return
	}
	if _, err := m.pass(ctx, f, mostMoved, false); err != nil && !errors.Is(err, errShardHeld) && !errors.Is(err, errUnplaceable) && ctx.Err() == nil {
		f.db.cfg.Observer.Trouble(feedtype.TroubleEvent{Feed: f.name, Err: err})
	}
}

// beginFilling makes a shard ready for the run that comes to it first, under the shard's lock. Where the shard has given no ULID yet its live
// part begins at the time of the feed's making, whatever hints its records have.
func (f *Feed) beginFilling(ctx context.Context, tx dialect.Querier, feed *dialect.Feed, shard int, run int64) error {
	d := f.db.store.Dialect
	row, err := d.LockShard(ctx, tx, feed, shard, dialect.LockBounds{})
	if err != nil {
		return err
	}
	if row.ULIDState == (dialect.ULIDState{}) {
		var created int64
		b := dialect.NewBuilder(d)
		if err := dialect.QueryRow(ctx, tx, "SELECT created_at FROM "+f.db.store.Table("feeds")+" WHERE name = "+b.Arg(f.name), b.Args(), &created); err != nil {
			return err
		}
		first, next, err := row.Take(time.UnixMicro(created).UnixMilli(), newULIDRandom(), 1)
		if err != nil {
			return err
		}
		if err := d.AdvanceShard(ctx, tx, feed, row, next, row.Witness); err != nil {
			return err
		}
		if err := f.livesFrom(ctx, tx, shard, first.Position()); err != nil {
			return err
		}
	}
	b := dialect.NewBuilder(d)
	_, err = tx.Exec(ctx, "UPDATE "+f.db.store.Table("shards")+" SET filled_by = "+b.Arg(run)+" WHERE feed = "+b.Arg(f.name)+" AND shard = "+b.Arg(shard)+" AND filled_by = 0", b.Args()...)
	return err
}
