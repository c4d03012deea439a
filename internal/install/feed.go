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

// installer makes, verifies, mends and removes what rowfeed needs in one database.
type Database struct{ *store.Store }

// installed is what rowfeed has made for one feed. It is safe for concurrent use.
type Feed struct {
	*catalog.Feed
	DB       *Database
	History  *history.History
	Reader   *read.Reader
	Recorder *publish.Recorder
	// Partitions, Rows and Division are further things that are done to the feed.
	Partitions *Partitions
	Rows       *OutboxRows
	Division   *Resharding
	// SetProblems tells this process's publisher of the feed what is wrong.
	SetProblems func([]string)
}

// Wake has this process's publisher of the feed look at once.
func (f *Feed) Wake() { f.Recorder.Wake() }

// fillBatch is the number of keys that one transaction records.
const fillBatch = 2000

// errRecordChanged means that another process has done this step, or ended the work.
var ErrRecordChanged = errors.New("the feed's record has changed meanwhile")

// filled notes that back-fill has come to a key; nil: to the end. It holds no schema
// lock, so it must not touch the mark of a drop, nor of another `feed add` that has
// come further: the row must be as it was read.
func filled(ctx context.Context, f *catalog.Feed, tx dialect.Querier, r *catalog.Record, to []any) error {
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

// Complete records, or places, the rows that were there before the feed, and gives keys their data shards. It goes on where
// it broke off when it is called again. progress may be nil.
func (f *Feed) Complete(ctx context.Context, progress func(rows int64)) error {
	if err := f.fill(ctx, progress); err != nil {
		return err
	}
	return f.Division.giveShards(ctx, f.Record.Load().DataShards, progress)
}

// fill records the keys of the rows that were there before the triggers, or gives them places.
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
			return f.Explain(ctx, "record the rows that are there (run the same command again to go on)", err)
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
