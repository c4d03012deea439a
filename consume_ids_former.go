package rowfeed

import (
	"context"

	"github.com/rowfeed/rowfeed/dialect"
)

// fromShards makes a consumer's cursors of one that has read a feed of this name whose shards
// were feeds by themselves. Nothing of those says anything of this feed: it refuses them, as
// cursors of another generation, until the consumer is set back.
func (d *division) fromShards(ctx context.Context, tx dialect.Querier) error {
	db, id := d.c.DB, ConsumerID{Consumer: d.c.Name, Feed: d.info.Name}
	if n, err := db.lockWhole(ctx, tx, id); err != nil || n == 0 {
		if err == nil {
			err = errOvertaken // another instance has done it
		}
		return err
	}
	rows, err := db.cursorsOf(ctx, tx, d.c.Name, d.info.Name)
	if err != nil {
		return err
	}
	next := cursorRow{shardCount: d.count, value: d.c.Start, generation: d.c.Start.Generation()}
	for i, row := range rows {
		if i == 0 || row.generation != 0 && (next.generation == 0 || row.generation < next.generation) {
			next.value, next.generation = row.value, row.generation
		}
		next.epoch, next.paused = max(next.epoch, row.epoch), next.paused || row.paused
	}
	aside, err := d.settle(ctx, tx, rows)
	if err != nil {
		return err
	}
	for _, table := range []string{"cursors", "consumers"} {
		b := dialect.NewBuilder(db.store.Dialect)
		if _, err := tx.Exec(ctx, "DELETE FROM "+db.store.Table(table)+" WHERE "+d.own(b), b.Args()...); err != nil {
			return err
		}
	}
	for next.shard = range d.count {
		next.aside = aside[next.shard]
		if _, err := d.insert(ctx, tx, &next); err != nil {
			return err
		}
	}
	return nil
}
