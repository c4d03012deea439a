package rowfeed

import (
	"context"
	"database/sql"
	"errors"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// wholeShards are the first shards of the feed, of whom there must be one where all of it is asked for
// behind a cursor. One that was locked by itself, in a client or by a program that then had nothing to
// insert, is none beside one that has rows. A cursor of a shard whose rows are gone could be of it still: it must
// be a row's of the one that has rows, or below all of them.
func (f *Feed) wholeShards(ctx context.Context, after feedtype.Position) ([]int, error) {
	shards, err := f.shardIDs(ctx, maxShardsNamed+1)
	feed := f.catalog.DialectFeed()
	if err != nil || len(shards) < 2 || feed.Outbox { // whose shards are made by their records
		return shards, err
	}
	d := f.db.store.Dialect
	b := dialect.NewBuilder(d)
	query := "SELECT s.shard FROM " + f.db.store.Table("shards") + " s WHERE s.feed = " + b.Arg(f.name) + " AND EXISTS (SELECT 1 FROM " + dialect.Qualified(d, feed.Held()) + " g WHERE " +
		dialect.Ref(d, "g", feed.ULIDs.Shard.Name) + " = s.shard) ORDER BY s.shard LIMIT 2"
	with, err := dialect.QueryAll(ctx, f.db.store.On(), query, b.Args(), scanShardID)
	if err != nil || len(with) != 1 {
		return shards, f.db.store.Fail(feedtype.FeedObject(f.name), "look which shards have rows", err)
	}
	if !after.IsZero() && after != feedtype.LastPosition {
		b = dialect.NewBuilder(d)
		var passed dialect.ScanULID
		err := dialect.QueryRow(ctx, f.db.store.On(), dialect.PassedULID(d, b, feed, with[0], after), b.Args(), &passed)
		if errors.Is(err, sql.ErrNoRows) {
			return with, nil
		}
		if err != nil || passed.Position != after {
			return shards, f.db.store.Fail(feedtype.FeedObject(f.name), "look for the cursor's row", err)
		}
	}
	return with, nil
}
