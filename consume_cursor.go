package rowfeed

import (
	"context"
	"database/sql"
	"errors"

	"github.com/rowfeed/rowfeed/dialect"
)

// cursorRow is a row of the table of cursors.
type cursorRow struct {
	consumer, feed    string
	shard, shardCount int
	value             Cursor
	generation        int64 // of value; 0 where it has none
	epoch             int64 // of the lease under which the row is written; 0 without one
	paused            bool
	aside             int64 // dead letters of this shard
	updatedAt         int64
}

const cursorColumns = "consumer, feed, shard, shard_count, value, generation, epoch, paused, aside, updated_at"

func scanCursor(rows dialect.Rows) (*cursorRow, error) {
	r := &cursorRow{}
	var paused int
	err := rows.Scan(&r.consumer, &r.feed, &r.shard, &r.shardCount, &r.value, &r.generation, &r.epoch, &paused, &r.aside, &r.updatedAt)
	r.paused = paused != 0
	return r, err
}

// loadCursor reads a consumer's cursor, and makes it where there is none.
func (db *DB) loadCursor(ctx context.Context, consumer, feed string, start Cursor) (*cursorRow, error) {
	load := func() (*cursorRow, error) {
		b := dialect.NewBuilder(db.d)
		rows, err := dialect.QueryAll(ctx, db.on(), "SELECT "+cursorColumns+" FROM "+db.table("cursors")+
			" WHERE consumer = "+b.Arg(consumer)+" AND feed = "+b.Arg(feed)+" AND shard = 0", b.Args(), scanCursor)
		if err != nil {
			return nil, err
		}
		if len(rows) == 0 {
			return nil, sql.ErrNoRows
		}
		return rows[0], nil
	}
	row, err := load()
	if !errors.Is(err, sql.ErrNoRows) {
		return row, err
	}
	err = db.inTx(ctx, dialect.ForRecord, "make a cursor", func(tx dialect.Querier) error {
		b := dialect.NewBuilder(db.d)
		values := []string{b.Arg(consumer), b.Arg(feed), "0", "1", b.Arg(string(start)), b.Arg(start.Generation()), "0", "0", "0", "0", db.d.Now()}
		_, err := tx.Exec(ctx, db.d.InsertNew(db.table("cursors"),
			[]string{"consumer", "feed", "shard", "shard_count", "value", "generation", "epoch", "version", "paused", "aside", "updated_at"},
			values, []string{"consumer", "feed", "shard"}), b.Args()...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return load() // what counts is in the table: another instance may have been first
}

// compareAndSet writes next where the row is still as it was read, and answers the
// number of rows affected. What a row means depends on its shard_count and generation
// as much as on its value, so all of them are compared; version is counted up so that
// the row counts as affected on every database. A paused consumer is at rest.
func (db *DB) compareAndSet(ctx context.Context, tx dialect.Querier, was, next *cursorRow) (int64, error) {
	b := dialect.NewBuilder(db.d)
	return tx.Exec(ctx, "UPDATE "+db.table("cursors")+
		" SET value = "+b.Arg(string(next.value))+", generation = "+b.Arg(next.generation)+", aside = "+b.Arg(next.aside)+
		", version = version + 1, updated_at = "+db.d.Now()+
		" WHERE consumer = "+b.Arg(was.consumer)+" AND feed = "+b.Arg(was.feed)+" AND shard = "+b.Arg(was.shard)+
		" AND shard_count = "+b.Arg(was.shardCount)+
		" AND value = "+b.Arg(string(was.value))+
		" AND generation = "+b.Arg(was.generation)+
		" AND epoch = "+b.Arg(was.epoch)+
		" AND aside = "+b.Arg(was.aside)+
		" AND paused = 0", b.Args()...)
}
