package sqlite

import (
	"context"

	"github.com/rowfeed/rowfeed/dialect"
)

// SetShards finds keys by their positions. The transaction holds the only write lock, so
// there is nobody to pass over.
func (d Dialect) SetShards(ctx context.Context, tx dialect.Querier, f *dialect.Feed, rows bool, places []dialect.Sharded) (int64, error) {
	table, bucket := f.Positions(), ", bucket = "+f.Bucket("j.shard", "/")
	if rows {
		table, bucket = f.Source, ""
	}
	return tx.Exec(ctx, "UPDATE "+dialect.Qualified(d, table)+" AS p SET shard = j.shard"+bucket+
		"\nFROM (SELECT value ->> 0 AS position, value ->> 1 AS shard FROM json_each(?)) j WHERE p.feed_sync_id = j.position", dialect.ShardList(places))
}

// BucketIndex is made or removed in one transaction, which keeps other writers out.
func (d Dialect) BucketIndex(ctx context.Context, q dialect.Querier, f *dialect.Feed) ([]dialect.Step, error) {
	var there bool
	err := dialect.QueryRow(ctx, q, "SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND name = ?", []any{f.Object("bucket")}, &there)
	if err != nil || there == f.Sharded() {
		return nil, err
	}
	if f.Sharded() {
		return []dialect.Step{d.bucketIndex(f)}, nil
	}
	return []dialect.Step{{Note: "pages of parts are no more", SQL: "DROP INDEX IF EXISTS " + d.Quote(f.Object("bucket"))}}, nil
}
