package postgres

import (
	"context"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// SetShards implements [dialect.Publish]. It finds keys by their positions. Under the sequence's lock, only
// writers of rows change positions: they set them to NULL. SetShards leaves out such a row, and a row that
// another transaction has locked.
//
// A row that this statement has locked keeps its ctid until the UPDATE. A row that a writer has just changed
// has another one, which is not visible to this statement. LATERAL with OFFSET 0 fixes the order of the join:
// an assignment, then its position. With the statistics of a small table, the planner would read the whole
// table for every batch.
func (d Dialect) SetShards(ctx context.Context, tx dialect.Querier, f *dialect.Feed, rows bool,
	places []dialect.Sharded) (int64, error) {
	table, bucket, lock := f.Positions(), ", bucket = "+f.Bucket("held.shard", "/"), ""
	if rows {
		table, bucket, lock = f.Source, "", " FOR NO KEY UPDATE OF t SKIP LOCKED"
	}
	name := dialect.Qualified(d, table)
	query := "WITH held AS MATERIALIZED (SELECT t.place, t.rel, j.shard FROM unnest(CAST(CAST($1 AS text) AS " +
		"bigint[]), CAST(CAST($2 AS text) AS int[])) AS j(position, shard)\n" +
		"  CROSS JOIN LATERAL (SELECT t.ctid AS place, t.tableoid AS rel FROM " + name +
		" t WHERE t.feed_sync_id = j.position OFFSET 0" + lock + ") t)\n" +
		"UPDATE " + name + " t SET shard = held.shard" + bucket +
		" FROM held WHERE t.ctid = held.place AND t.tableoid = held.rel"
	return tx.Exec(ctx, query, bigints(places, func(p dialect.Sharded) int64 { return p.Position }),
		bigints(places, func(p dialect.Sharded) int64 { return int64(p.Shard) }))
}

// BucketIndex implements [dialect.Schema]. Making the index keeps publishers out, but not readers. CONCURRENTLY
// cannot run in a transaction, and leaves an invalid index behind if it fails.
func (d Dialect) BucketIndex(ctx context.Context, q dialect.Querier, f *dialect.Feed) ([]dialect.Step, error) {
	name := dialect.Qualified(d, feedtype.TableName{Schema: f.Names.Schema, Name: f.Object("bucket")})
	var there bool
	if err := dialect.QueryRow(ctx, q, "SELECT to_regclass($1) IS NOT NULL", []any{name}, &there); err != nil {
		return nil, err
	}
	return dialect.BucketSteps(f, there, d.bucketIndex(f),
			dialect.Step{Note: "pages of a part of the shards are read otherwise",
				SQL: "DROP INDEX IF EXISTS " + name}),
		nil
}
