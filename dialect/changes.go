package dialect

import (
	"context"
	"strings"
)

// TakeChanges is the statement behind [Publish]'s operation of that name: by seq,
// the primary key, and without locks. identity is how a key column is read so that
// different keys have different values.
func TakeChanges(ctx context.Context, tx Querier, s Spelling, f *Feed, limit int, identity func(Column, string) string) ([]Change, error) {
	key := make([]string, len(f.Key))
	for i, c := range f.Key {
		key[i] = identity(c, s.Quote(c.Stored))
	}
	b := NewBuilder(s)
	query := "SELECT seq, kind, " + strings.Join(key, ", ") + " FROM " + Qualified(s, f.Changes()) + " ORDER BY seq LIMIT " + b.Arg(limit)
	return QueryAll(ctx, tx, query, b.Args(), func(rows Rows) (Change, error) {
		c := Change{Key: make([]any, len(f.Key))}
		dest := []any{&c.Seq, &c.Kind}
		for i := range c.Key {
			dest = append(dest, &c.Key[i])
		}
		return c, rows.Scan(dest...)
	})
}
