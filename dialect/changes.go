package dialect

import (
	"context"
	"database/sql"
	"errors"
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

// HasChanges is the statement behind [Publish]'s operation of that name.
func HasChanges(ctx context.Context, q Querier, s Spelling, f *Feed) (bool, error) {
	var seq int64
	err := QueryRow(ctx, q, FirstChange(s, f), nil, &seq)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// FirstChange reads the oldest change's seq, by the primary key. Where rows hold their
// positions, a row that waits is a change, too.
func FirstChange(s Spelling, f *Feed) string {
	first := "SELECT seq FROM " + Qualified(s, f.Changes()) + " ORDER BY seq LIMIT 1"
	if !f.InRows() {
		return first
	}
	return "SELECT seq FROM (" + first + ") c UNION ALL SELECT 0 FROM (SELECT " + PositionColumn + " FROM " +
		Qualified(s, f.Source) + " WHERE " + PositionColumn + " IS NULL LIMIT 1) t"
}
