package install

import (
	"context"
	"errors"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/history"
	"github.com/rowfeed/rowfeed/internal/publish"
	"github.com/rowfeed/rowfeed/internal/read"
	"github.com/rowfeed/rowfeed/internal/store"
)

// Database makes, verifies, repairs and removes the feeds of one database.
type Database struct{ *store.Store }

// Feed completes, verifies and upgrades one feed. It is safe for concurrent use.
type Feed struct {
	*catalog.Feed
	DB         *Database
	History    *history.History
	Reader     *read.Reader
	Recorder   *publish.Recorder
	Partitions *Partitions
	Rows       *OutboxRows
	Division   *Resharding
	// SetProblems reports problems to this process's publisher of the feed.
	SetProblems func([]string)
}

// Wake makes this process's publisher poll the feed at once.
func (f *Feed) Wake() { f.Recorder.Wake() }

// fillBatch is the number of keys that one back-fill transaction reads.
const fillBatch = 2000

// ErrRecordChanged means that the feed's record is not as it was read: another process has taken this step, or has
// finished the work.
var ErrRecordChanged = errors.New("the feed's record was changed concurrently")

// saveFillMark stores the last key that back-fill has processed; nil means that it is complete. Back-fill holds no
// schema lock, so a drop or another back-fill can have changed the record. The UPDATE therefore requires the state,
// generation and mark that were read, and the error is ErrRecordChanged if they differ.
func saveFillMark(ctx context.Context, f *catalog.Feed, tx dialect.Querier, r *catalog.Record, to []any) error {
	b := dialect.NewBuilder(f.Store.Dialect)
	query := "UPDATE " + f.Store.Table("feeds") + " SET "
	if to == nil {
		query += "state = " + b.Arg(catalog.StateActive) + ", fill_after = NULL"
	} else {
		query += "fill_after = " + b.Arg(dialect.EncodeKey(to))
	}
	query += " WHERE name = " + b.Arg(f.Name) + " AND generation = " + b.Arg(r.Generation) + " AND state = " +
		b.Arg(catalog.StateFilling)
	if r.FillMark == nil {
		query += " AND fill_after IS NULL"
	} else {
		query += " AND fill_after = " + b.Arg(*r.FillMark)
	}
	n, err := tx.Exec(ctx, query, b.Args()...)
	if err == nil && n != 1 {
		err = ErrRecordChanged
	}
	return err
}

// Complete records or places the rows that the table had before the feed, and assigns keys to data shards. After an
// interruption a second call continues. progress may be nil.
func (f *Feed) Complete(ctx context.Context, progress func(rows int64)) error {
	if err := f.fill(ctx, progress); err != nil {
		return err
	}
	return f.Division.assignShards(ctx, f.Record.Load().DataShards, progress)
}

// fill runs back-fill, batch by batch, until the feed has left the state filling.
func (f *Feed) fill(ctx context.Context, progress func(int64)) error {
	var total int64
	for {
		r := f.Record.Load()
		if r.State != catalog.StateFilling {
			return nil
		}
		kind, err := kindOf(r)
		if err != nil {
			return err
		}
		n, err := kind.backfill(ctx, f, r)
		switch {
		case errors.Is(err, ErrRecordChanged):
			n = 0
		case err != nil:
			return f.Explain(ctx, "record the existing rows (run the same command again to continue)", err)
		}
		f.Wake()
		if total += n; progress != nil && n > 0 {
			progress(total)
		}
		if err := f.Reload(ctx); err != nil {
			return err
		}
	}
}

// FollowPartitions implements publish.Keeper.
func (f *Feed) FollowPartitions(ctx context.Context) { f.Partitions.FollowPartitions(ctx) }
