package dialect

import (
	"context"
	"strconv"
	"strings"
)

// Sharded is a position, and the data shard that its key gets.
type Sharded struct {
	Position int64
	Shard    int
}

// PlaceKey is a key and its position, as [WalkKeys] reads them.
type PlaceKey struct {
	Key      []any  // in the raw form that [Spelling].Param takes back
	Position *int64 // nil for a row that waits for a position
	Shard    *int64
	Bucket   *int64 // nil for a row of the source, which has no bucket
}

// WalkKeys reads up to limit keys of a feed, in key order, with their positions. It begins above the key after,
// or at the first key if after is nil. It reads the feed's table of positions or, with rows, the source. It
// locks nothing.
func WalkKeys(ctx context.Context, q Querier, s Spelling, f *Feed, rows bool, after []any,
	limit int) ([]PlaceKey, error) {
	walked, bucket := *f, "NULL"
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
	query := "SELECT t." + PositionColumn + ", t." + ShardColumn + ", " + bucket + ", " +
		strings.Join(keyValues(s, walked.Key, KeyRefs(s, &walked, "t")), ", ") +
		" FROM " + Qualified(s, walked.Source) + " t"
	if after != nil {
		query += " WHERE " + CompareKey(s, b, &walked, ordered, after, ">", ">")
	}
	query += " ORDER BY " + strings.Join(ordered, ", ") + " LIMIT " + b.Arg(limit)
	return QueryAll(ctx, q, query, b.Args(), func(rows Rows) (PlaceKey, error) {
		var k PlaceKey
		var err error
		k.Key, err = scanKey(rows, len(f.Key), &k.Position, &k.Shard, &k.Bucket)
		return k, err
	})
}

// KeysOf runs a query, of which from is the part from FROM on. For each row it calls fn with the expressions of
// first, as text, and the key that refs read.
func KeysOf(ctx context.Context, q Querier, s Spelling, f *Feed, first, refs []string, from string, args []any,
	fn func(first []string, key []any) error) error {
	query := "SELECT " + strings.Join(append(first, keyValues(s, f.Key, refs)...), ", ") + from
	_, err := QueryAll(ctx, q, query, args, func(rows Rows) (struct{}, error) {
		texts := make([]string, len(first))
		dest := make([]any, len(first))
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

// EachKey runs a query whose first columns are text, and whose others are a key, and calls fn for each row.
func EachKey(ctx context.Context, q Querier, s Spelling, f *Feed, st Statement, args Args, first int,
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

func keyValues(s Spelling, key []Column, refs []string) []string {
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
