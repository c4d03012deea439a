package postgres

import (
	"context"

	"github.com/rowfeed/rowfeed/dialect"
)

// tree is a query for the oids of a table, given as $1, and of its partitions at every level.
const tree = "(SELECT $1::bigint::oid UNION SELECT relid::oid FROM pg_partition_tree($1::bigint::oid::regclass))"

// noPosition says why a column cannot hold positions. Foreign keys can refer to columns of a unique index,
// unless the index is partial or has expressions. An UPDATE of such a column waits for all transactions that
// refer to the row, or fails in a deadlock with them. So the publisher's UPDATE would.
func noPosition(ctx context.Context, q dialect.Querier, oid int64) (why string, err error) {
	var kind, filled, unique string
	err = dialect.QueryRow(ctx, q,
		`SELECT COALESCE(min(CASE WHEN a.atttypid <> 'int8'::regtype THEN format_type(a.atttypid, a.atttypmod) END), `+
			`''),
  COALESCE(min(CASE WHEN a.atthasdef OR a.attidentity <> '' THEN COALESCE(pg_get_expr(e.adbin, e.adrelid), `+
			`'identity') END), ''),
  COALESCE(min((SELECT min(i.indexrelid::regclass::text) FROM pg_index i
    WHERE i.indrelid = a.attrelid AND i.indisunique AND i.indpred IS NULL AND i.indexprs IS NULL `+
			`AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1]))), '')
FROM pg_attribute a LEFT JOIN pg_attrdef e ON e.adrelid = a.attrelid AND e.adnum = a.attnum
WHERE a.attrelid IN `+tree+` AND a.attname = $2::text AND NOT a.attisdropped`, []any{oid, dialect.PositionColumn},
		&kind, &filled, &unique)
	switch {
	case kind != "":
		why = "is " + kind + ": make it bigint"
	case filled != "":
		why = "has a value of its own, " + filled + ", where a row must wait with NULL: drop its default"
	case unique != "":
		why = "is in the unique index " + unique + ", which makes publishers wait for those who refer to its rows: " +
			"make that index partial, WHERE feed_sync_id IS NOT NULL"
	}
	return why, err
}

// updateTriggers returns the triggers of the table and its partitions that fire when feed_sync_id is written.
func updateTriggers(ctx context.Context, q dialect.Querier, oid int64) ([]string, error) {
	const update = 16 // TRIGGER_TYPE_UPDATE
	return dialect.QueryAll(ctx, q, `SELECT DISTINCT g.tgname::text FROM pg_trigger g
WHERE g.tgrelid IN `+tree+` AND NOT g.tgisinternal AND g.tgenabled <> 'D' AND g.tgtype::int & $2::int <> 0
  AND (g.tgattr::text = '' OR EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = g.tgrelid `+
		`AND a.attname = 'feed_sync_id' AND a.attnum = ANY (g.tgattr::int2[])))
ORDER BY 1`, []any{oid, update}, func(rows dialect.Rows) (name string, err error) { return name, rows.Scan(&name) })
}

// indexNames returns the names of the table's indexes that are valid, or of those that are not.
func indexNames(ctx context.Context, q dialect.Querier, oid int64, valid bool) ([]string, error) {
	return dialect.QueryAll(ctx, q, "SELECT c.relname::text FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "+
		"WHERE i.indrelid = $1::bigint::oid AND i.indisvalid = $2 ORDER BY 1",
		[]any{oid, valid}, func(rows dialect.Rows) (name string, err error) { return name, rows.Scan(&name) })
}
