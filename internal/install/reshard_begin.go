package install

import (
	"cmp"
	"context"
	"errors"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/store"
)

// Preview returns how many rows Reshard would publish again, because they get their first data shard from a column of
// the table. The error is Reshard's, if it would refuse the number for what the table holds now.
func (f *Resharding) Preview(ctx context.Context, dataShards int) (again int64, err error) {
	if err := f.Reload(ctx); err != nil {
		return 0, err
	}
	r := f.Record.Load()
	to := *r
	to.DataShards = dataShards
	if err := f.fits(ctx, r, &to); err != nil {
		return 0, f.Fail("preview another number of data shards", err)
	}
	feed, syntax := r.Feed(f.Store.Names), f.Store.Dialect.Syntax
	if feed.OwnShard == "" {
		return 0, nil
	}
	err = dialect.One(ctx, f.Store.On(), syntax, statements.For(syntax, feed, "count_gaining_shard"),
		dialect.Args{"in_shard": inShard(syntax, to.Feed(f.Store.Names))}, &again)
	return again, f.Fail("preview another number of data shards", err)
}

// inShard is the condition that a row holds one of the feed's data shards.
func inShard(s *dialect.Syntax, feed *dialect.Feed) dialect.Built {
	return statements.For(s, feed, "in_shard").With(nil)
}

// beginSharding saves the new number of data shards, unless the record has changed since it was
// read.
func (f *Resharding) beginSharding(ctx context.Context, r *catalog.FeedRecord, dataShards int) error {
	to := *r
	to.DataShards = dataShards
	var head int64
	err := f.Store.One(ctx, f.Store.On(), statements, "sequence_value", dialect.Args{"feed": f.Name}, &head)
	if errors.Is(err, store.ErrNoRows) {
		return ErrRecordChanged // dropped
	}
	if err != nil {
		return err
	}
	if err := f.fits(ctx, r, &to); err != nil {
		return err
	}
	gain, err := f.rowsThatGain(ctx, r, &to, head)
	if err != nil {
		return err
	}
	return f.Store.InTx(ctx, dialect.ForRecord, "shard "+f.Name, func(tx dialect.Querier) error {
		_, err := f.Store.Dialect.LockSequence(ctx, tx, r.Feed(f.Store.Names))
		if errors.Is(err, store.ErrNoRows) {
			return ErrRecordChanged // dropped
		}
		if err != nil {
			return err
		}
		db := &Database{Store: f.Store}
		if err := db.fitsShards(ctx, tx, &to, dialect.Bucket(dataShards, r.DataShards), &head); err != nil {
			return err
		}
		n, err := f.Store.Exec(ctx, tx, statements, "begin_sharding", dialect.Args{"sharding": catalog.StateSharding,
			"data_shards": int64(dataShards), "feed": f.Name, "active": catalog.StateActive,
			"generation": r.Generation})
		if err != nil {
			return err
		}
		if n != 1 {
			return ErrRecordChanged
		}
		return gain(tx)
	})
}

// rowsThatGain returns a function for feeds whose rows hold their positions. The function republishes rows that get
// their first data shard by the new number of shards: the readers of every part may have passed them. rowsThatGain
// searches for such rows beforehand, so that the transaction reads only rows that were published since, above head.
func (f *Resharding) rowsThatGain(ctx context.Context, r, to *catalog.FeedRecord, head int64) (
	func(dialect.Querier) error, error) {
	d, feed, next := f.Store.Dialect, r.Feed(f.Store.Names), to.Feed(f.Store.Names)
	if feed.OwnShard == "" || !feed.InRows() {
		return func(dialect.Querier) error { return nil }, nil
	}
	db := &Database{Store: f.Store}
	outside := statements.For(d.Syntax, feed, "rows_outside_shards")
	found, err := db.namedRows(ctx, f.Store.On(), r, outside, dialect.Args{})
	if found != "" {
		head = 0
	}
	return func(tx dialect.Querier) error {
		b := dialect.NewBuilder(d.Syntax)
		where := b.Fill(statements.For(d.Syntax, feed, "gains_shard"), dialect.Args{"from": head,
			"in_shard": inShard(d.Syntax, next)})
		_, err := d.ResetRows(ctx, tx, feed, where, b.Args())
		return err
	}, err
}

// fits refuses a number of data shards that the table, or the keys, cannot have.
func (f *Resharding) fits(ctx context.Context, r, to *catalog.FeedRecord) error {
	db := &Database{Store: f.Store}
	if feed := to.Feed(f.Store.Names); feed.InRows() {
		table, err := catalog.DescribeTable(ctx, f.Store, f.Store.On(), r.Source)
		if err != nil {
			return err
		}
		if err := cmp.Or(HoldsExactKeys(to), holdsShards(to, table)); err != nil {
			return err
		}
		if r.DataShards <= 1 { // otherwise rowfeed has written the column already
			if err := leavesColumn(to, table); err != nil {
				return err
			}
		}
	}
	return db.fitsShards(ctx, f.Store.On(), to, -1, nil)
}
