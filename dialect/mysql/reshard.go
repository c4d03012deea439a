package mysql

import (
	"context"
	"slices"

	"github.com/rowfeed/rowfeed/dialect"
)

const shardList = "JSON_TABLE(?, '$[*]' COLUMNS (position BIGINT PATH '$[0]', shard INT PATH '$[1]')) j"

// SetShards implements [dialect.Publish]. It finds keys by their positions in an index that begins with these,
// so it reads only the entries to be written. With rows, it first locks them, and skips those that other
// transactions have locked. The UPDATE then names only the locked ones.
func (d Dialect) SetShards(ctx context.Context, tx dialect.Querier, f *dialect.Feed, rows bool,
	places []dialect.Sharded) (int64, error) {
	if !rows {
		return tx.Exec(ctx, "UPDATE "+shardList+" STRAIGHT_JOIN "+dialect.Qualified(d, f.Positions())+
			" p FORCE INDEX (feed_sync_id) ON p.feed_sync_id = j.position"+
			" SET p.shard = j.shard, p.bucket = "+f.Bucket("j.shard", "DIV"), dialect.ShardList(places))
	}
	// A list in IN (…) becomes a scan of the index if it is long. MySQL has to be told not to lock the list;
	// MariaDB does not have that syntax.
	join := shardList + " STRAIGHT_JOIN " + dialect.Qualified(d, f.Source) + " t FORCE INDEX (" + d.Quote(rowIndex(f)) +
		") ON t.feed_sync_id = j.position"
	held, err := dialect.QueryAll(ctx, tx, "SELECT t.feed_sync_id FROM "+join+whole+
		" FOR UPDATE /*!80000 OF t */ SKIP LOCKED", []any{dialect.ShardList(places)},
		func(rows dialect.Rows) (position int64, err error) { return position, rows.Scan(&position) })
	if err != nil {
		return 0, err
	}
	places = slices.DeleteFunc(slices.Clone(places), func(p dialect.Sharded) bool {
		return !slices.Contains(held, p.Position)
	})
	if len(places) == 0 {
		return 0, nil
	}
	keep, update, err := d.unchanged(ctx, tx, f)
	if err != nil {
		return 0, err
	}
	return tx.Exec(ctx, update+join+" SET t.shard = j.shard"+keep, dialect.ShardList(places))
}
