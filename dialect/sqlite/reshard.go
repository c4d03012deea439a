package sqlite

import (
	"context"

	"github.com/rowfeed/rowfeed/dialect"
)

// SetShards implements [dialect.Publish]. It writes one key after the other, each found by its position. In a
// join with a list SQLite chooses the order. With statistics from a time when the table was small, it reads the
// list again for every key of the table. The transaction has the only write lock, so no row is locked by
// another one.
func (d Dialect) SetShards(ctx context.Context, tx dialect.Querier, f *dialect.Feed, rows bool,
	places []dialect.Sharded) (int64, error) {
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

// BucketIndex implements [dialect.Schema]. The index is made or dropped in one transaction, which keeps other
// writers out.
func (d Dialect) BucketIndex(ctx context.Context, q dialect.Querier, f *dialect.Feed) ([]dialect.Step, error) {
	var there bool
	if err := dialect.QueryRow(ctx, q, "SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND name = ?",
		[]any{f.Object("bucket")}, &there); err != nil {
		return nil, err
	}
	return dialect.BucketSteps(f, there, d.bucketIndex(f),
		dialect.Step{Note: "pages of a part of the shards are read otherwise",
			SQL: "DROP INDEX IF EXISTS " + d.Quote(f.Object("bucket"))}), nil
}
