package sqlite

import (
	"context"

	"github.com/rowfeed/rowfeed/dialect"
)

// SetShards writes one key after the other, each found by its position: in a join with a
// list SQLite chooses the order, and by statistics of when the table was small it reads the
// list again for every key of the table. The transaction holds the only write lock, so
// there is nobody to pass over.
func (d Dialect) SetShards(ctx context.Context, tx dialect.Querier, f *dialect.Feed, rows bool, places []dialect.Sharded) (int64, error) {
	table, bucket := f.Positions(), ", bucket = ?"
	if rows {
		table, bucket = f.Source, ""
	}
	query := "UPDATE " + dialect.Qualified(d, table) + " SET shard = ?" + bucket + " WHERE feed_sync_id = ?"
	var written int64
	for _, p := range places {
		args := []any{p.Shard, p.Position}
		if !rows {
			args = []any{p.Shard, dialect.Bucket(p.Shard, f.DataShards), p.Position}
		}
		n, err := tx.Exec(ctx, query, args...)
		if err != nil {
			return 0, err
		}
		written += n
	}
	return written, nil
}

// BucketIndex is made or removed in one transaction, which keeps other writers out.
func (d Dialect) BucketIndex(ctx context.Context, q dialect.Querier, f *dialect.Feed) ([]dialect.Step, error) {
	var there bool
	if err := dialect.QueryRow(ctx, q, "SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND name = ?", []any{f.Object("bucket")}, &there); err != nil {
		return nil, err
	}
	return dialect.BucketSteps(f, there, d.bucketIndex(f),
		dialect.Step{Note: "pages of a part of the shards are read otherwise", SQL: "DROP INDEX IF EXISTS " + d.Quote(f.Object("bucket"))}), nil
}
