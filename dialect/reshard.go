package dialect

import (
	"context"
	"strconv"
	"strings"

	"github.com/rowfeed/rowfeed/feedtype"
)

// Placing changes the positions that rows hold, and the data shards of keys.
type Placing interface {
	// PlaceRows gives positions to up to limit rows whose position is NULL: base + 1, base + 2 and so on, in
	// key order. If after is not nil, it begins above that key. It skips rows that other transactions have
	// locked, and changes nothing else of a row. It deletes the entries of these keys in the feed's table of
	// positions, except those of hidden keys. If the feed is sharded, shard returns the data shard of a row's
	// key, which the same statement writes.
	//
	// PlaceRows returns the number of rows, and the key of the last one. For a feed that is not [Feed.InRows]
	// it returns 0.
	PlaceRows(ctx context.Context, tx Querier, f *Feed, after []any, limit int, base int64,
		shard func(key []any) (int, error)) (n int, last []any, err error)
	// ResetRows sets the position of each row (alias t) that satisfies a condition to NULL, and changes nothing
	// else of the row. It returns the number of rows.
	ResetRows(ctx context.Context, tx Querier, f *Feed, where string, args []any) (int64, error)
	// SetShards writes the data shards of the keys that have these positions, and returns how many it has
	// written. Without rows it writes into the feed's table of positions, with the buckets. With rows it writes
	// into the source, and skips rows that other transactions have locked. Each given shard must differ from
	// the present one.
	SetShards(ctx context.Context, tx Querier, f *Feed, rows bool, places []Sharded) (int64, error)
	// CloseChanges keeps writers and publishers out of the feed's table of changes until FeedDown has removed it, and
	// returns the name that the table has now. It waits for transactions that have written to the table. It can be
	// repeated.
	CloseChanges(ctx context.Context, q Querier, f *Feed) (feedtype.TableName, error)
	// BucketIndex returns the statements that make the index by bucket on the feed's table of positions if the
	// feed needs it ([Feed.ByBucket]), or remove it if the feed does not. There are none if nothing is to be
	// changed.
	BucketIndex(ctx context.Context, q Querier, f *Feed) ([]Step, error)
}

// Sharded is a position, and the data shard that its key gets.
type Sharded struct {
	Position int64
	Shard    int
}

// PlaceKey is a key and its position, as [WalkKeys] reads them.
type PlaceKey struct {
	Key      []any  // in the raw form that [Syntax].Param takes back
	Position *int64 // nil for a row that waits for a position
	Shard    *int64
	Bucket   *int64 // nil for a row of the source, which has no bucket
	// Own is the data shard that the key's row holds in [Feed].OwnShard, or NoShard. It is nil without such a row or
	// column.
	Own *int64
}

// WalkKeys reads up to limit keys of a feed, in key order, with their positions. It begins above the key after,
// or at the first key if after is nil. It reads the feed's table of positions or, with rows, the source. It
// locks nothing.
func WalkKeys(ctx context.Context, q Querier, s *Syntax, f *Feed, rows bool, after []any,
	limit int) ([]PlaceKey, error) {
	walked, shard, bucket, own := *f, "t."+ShardColumn, "NULL", "NULL"
	switch {
	case f.OwnShard != "" && rows:
		shard = f.shardOfRow(s, "t")
		own = shard
	case f.OwnShard != "":
		own = "(SELECT min(" + f.shardOfRow(s, "r") + ") FROM " + Qualified(s, f.Source) + " r WHERE " +
			SourceJoin(s, f, "r", "t") + ")"
	}
	if !rows {
		bucket = "t.bucket"
		walked.Source, walked.Key = f.Positions(), make([]Column, len(f.Key))
		for i, c := range f.Key {
			walked.Key[i] = c
			walked.Key[i].Name = c.Stored
		}
	}
	b := NewBuilder(s)
	ordered := OrderedKey(s, &walked, "t")
	query := "SELECT t." + PositionColumn + ", " + shard + ", " + bucket + ", "
	if f.OwnShard != "" {
		query += own + ", "
	}
	query += strings.Join(keyValues(s, walked.Key, KeyRefs(s, &walked, "t")), ", ") +
		" FROM " + Qualified(s, walked.Source) + " t"
	if after != nil {
		query += " WHERE " + CompareKey(s, b, &walked, ordered, after, ">", ">")
	}
	query += " ORDER BY " + strings.Join(ordered, ", ") + " " + s.limited(b.Arg(limit))
	return QueryAll(ctx, q, query, b.Args(), func(rows Rows) (PlaceKey, error) {
		var k PlaceKey
		var err error
		before := []any{&k.Position, &k.Shard, &k.Bucket}
		if f.OwnShard != "" {
			before = append(before, &k.Own)
		}
		k.Key, err = scanKey(rows, len(f.Key), before...)
		return k, err
	})
}

// EachKey runs a query whose first columns are text, and whose others are a key, and calls fn for each row.
func EachKey(ctx context.Context, q Querier, s *Syntax, f *Feed, st Statement, args Args, first int,
	fn func(first []string, key []any) error) error {
	_, err := All(ctx, q, s, st, args, func(rows Rows) (struct{}, error) {
		texts := make([]string, first)
		dest := make([]any, first)
		for i := range texts {
			dest[i] = &texts[i]
		}
		key, err := scanKey(rows, len(f.Key), dest...)
		if err == nil {
			err = fn(texts, key)
		}
		return struct{}{}, err
	})
	return err
}

func keyValues(s *Syntax, key []Column, refs []string) []string {
	values := make([]string, len(refs))
	for i, ref := range refs {
		values[i] = s.Value(key[i], ref)
	}
	return values
}

// scanKey scans a row whose last n columns are a key.
func scanKey(rows Rows, n int, before ...any) ([]any, error) {
	key := make([]any, n)
	dest := before
	for i := range key {
		dest = append(dest, &key[i])
	}
	if err := rows.Scan(dest...); err != nil {
		return nil, err
	}
	for i, v := range key {
		if bytes, ok := v.([]byte); ok && bytes == nil {
			key[i] = []byte{} // an empty value, not NULL: no key is above or below NULL
		}
	}
	return key, nil
}

// ShardList returns positions and their shards as a JSON list of [position, shard].
func ShardList(places []Sharded) string {
	text := []byte{'['}
	for i, p := range places {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(strconv.AppendInt(append(text, '['), p.Position, 10), ',')
		text = append(strconv.AppendInt(text, int64(p.Shard), 10), ']')
	}
	return string(append(text, ']'))
}
