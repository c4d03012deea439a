package postgres

import (
	"context"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// PlaceBehind implements [dialect.ULID] by one statement.
func (d Dialect) PlaceBehind(ctx context.Context, tx dialect.Querier, f *dialect.Feed,
	p dialect.BackfillBatch) (int64, error) {
	b := dialect.NewBuilder(d)
	query := dialect.PlaceBehind(d, b, f, p, " ON CONFLICT ("+strings.Join(dialect.StoredRefs(d, f, ""), ", ")+
		") DO NOTHING")
	return tx.Exec(ctx, query, b.Args()...)
}

// MakeULID implements [dialect.ULID]. The ULID is a uuid.
func (Dialect) MakeULID(high, low string) string {
	return "CAST(lpad(to_hex(" + high + "), 16, '0') || lpad(to_hex(" + low + "), 16, '0') AS uuid)"
}

// Millis implements [dialect.ULID]. A timestamp without time zone is read as UTC. It is NULL for infinity.
func (Dialect) Millis(c dialect.Column, ref string) string {
	switch c.Kind {
	case feedtype.Timestamp, feedtype.TimestampTZ, feedtype.Date:
		return "CASE WHEN isfinite(" + ref + ") THEN CAST(floor(extract(epoch FROM " + ref + ") * 1000) AS bigint) END"
	}
	return ""
}
