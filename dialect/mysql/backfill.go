package mysql

import (
	"context"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// PlaceBehind implements [dialect.ULID]. In READ COMMITTED the rows are read without locks. The sql_mode of the
// statement accepts a zero date, in the key or as a time.
func (d Dialect) PlaceBehind(ctx context.Context, tx dialect.Querier, f *dialect.Feed,
	p dialect.BackfillBatch) (int64, error) {
	b := dialect.NewBuilder(d)
	query := dialect.PlaceBehind(d, b, f, p, " ON DUPLICATE KEY UPDATE shard = "+dialect.Qualified(d, f.Placed())+
		".shard")
	begin := insertKeys(f)
	if p.Time != nil {
		begin = inKeyMode("INSERT") + "INTO "
	}
	return tx.Exec(ctx, begin+strings.TrimPrefix(query, "INSERT INTO "), b.Args()...)
}

// MakeULID implements [dialect.ULID].
func (Dialect) MakeULID(high, low string) string {
	return "UNHEX(CONCAT(LPAD(HEX(CAST(" + high + " AS UNSIGNED)), 16, '0'), LPAD(HEX(CAST(" + low +
		" AS UNSIGNED)), 16, '0')))"
}

// Millis implements [dialect.ULID]. A DATETIME is read as UTC. A TIMESTAMP does not depend on the session's
// time zone.
func (Dialect) Millis(c dialect.Column, ref string) string {
	switch {
	case baseType(c.Type) == "timestamp":
		return "CAST(UNIX_TIMESTAMP(" + ref + ") * 1000 AS SIGNED)"
	case c.Kind == feedtype.Timestamp || c.Kind == feedtype.Date:
		return "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', " + ref + ") DIV 1000"
	}
	return ""
}
