package consume

import (
	"context"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// fromShards makes a consumer's cursors of one that has read a feed of this name whose shards
// were feeds by themselves. Nothing of those says anything of this feed: it refuses them, as
// cursors of another generation, until the consumer is set back.
func (d *division) fromShards(ctx context.Context, tx dialect.Querier) error {
	db, id := d.c.DB, feedtype.ConsumerID{Consumer: d.c.Name, Feed: d.info.Name}
	if n, err := db.LockWhole(ctx, tx, id); err != nil || n == 0 {
		if err == nil {
			err = errOvertaken // another instance has done it
		}
		return err
	}
	rows, err := db.CursorsOf(ctx, tx, d.c.Name, d.info.Name)
	if err != nil {
		return err
	}
	next := CursorRow{ShardCount: d.count, Value: d.c.Start, Generation: d.c.Start.Generation()}
	for i, row := range rows {
		if i == 0 || row.Generation != 0 && (next.Generation == 0 || row.Generation < next.Generation) {
			next.Value, next.Generation = row.Value, row.Generation
		}
		next.Epoch, next.Paused = max(next.Epoch, row.Epoch), next.Paused || row.Paused
	}
	aside, err := d.settle(ctx, tx, rows)
	if err != nil {
		return err
	}
	for _, table := range []string{"cursors", "consumers"} {
		b := dialect.NewBuilder(db.Store.Dialect)
		if _, err := tx.Exec(ctx, "DELETE FROM "+db.Store.Table(table)+" WHERE "+d.own(b), b.Args()...); err != nil {
			return err
		}
	}
	for next.Shard = range d.count {
		next.Aside = aside[next.Shard]
		if _, err := d.insert(ctx, tx, &next); err != nil {
			return err
		}
	}
	return nil
}
