package sqlite

import (
	"context"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
)

// PlaceBehind implements [dialect.ULID] by one statement. Without the WHERE, SQLite would parse ON CONFLICT as
// the ON of a join.
func (d Dialect) PlaceBehind(ctx context.Context, tx dialect.Querier, f *dialect.Feed,
	p dialect.BackfillBatch) (int64, error) {
	b := dialect.NewBuilder(d)
	query := dialect.PlaceBehind(d, b, f, p, " WHERE true ON CONFLICT ("+
		strings.Join(dialect.StoredRefs(d, f, ""), ", ")+") DO NOTHING")
	return tx.Exec(ctx, query, b.Args()...)
}

// MakeULID implements [dialect.ULID]. The ULID is a BLOB.
func (Dialect) MakeULID(high, low string) string {
	return "unhex(printf('%016x%016x', " + high + ", " + low + "))"
}

// Millis implements [dialect.ULID]. It reads text that SQLite's date functions accept, in UTC, and numbers as
// seconds of Unix time.
func (Dialect) Millis(_ dialect.Column, ref string) string {
	return "CASE typeof(" + ref + ") WHEN 'text' THEN CAST(round((julianday(" + ref +
		") - 2440587.5) * 86400000) AS INTEGER)" +
		" WHEN 'integer' THEN CAST(" + ref + " * 1000 AS INTEGER) WHEN 'real' THEN CAST(" + ref +
		" * 1000 AS INTEGER) END"
}
