package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// rowIndexes returns the names of the indexes on the user's table, in its schema, for a feed whose rows hold
// their positions.
func rowIndexes(f *dialect.Feed) (position, waiting string) {
	return f.Object("row_position"), f.Object("row_waiting")
}

// rowColumns adds the columns and indexes that the user's table lacks. ADD COLUMN takes no time, but keeps all
// other sessions out until the commit. CREATE INDEX reads the whole table, and keeps writers out meanwhile. See
// DESIGN.md.
func (d Dialect) rowColumns(f *dialect.Feed, t *dialect.Table) []dialect.Step {
	if !f.InRows() {
		return nil
	}
	source := dialect.Qualified(d, f.Source)
	var steps []dialect.Step
	for _, name := range f.MissingColumns(t) {
		step := dialect.Step{Note: "each row's position; NULL while it waits for one",
			SQL: "ALTER TABLE " + source + " ADD COLUMN IF NOT EXISTS feed_sync_id bigint"}
		if name == dialect.ShardColumn {
			step = dialect.Step{Note: "each row's shard",
				SQL: "ALTER TABLE " + source + " ADD COLUMN IF NOT EXISTS shard integer NOT NULL DEFAULT 0"}
		}
		steps = append(steps, step)
	}
	if len(steps) > 0 {
		steps[len(steps)-1].Commit = true
	}
	position, waiting := rowIndexes(f)
	for _, name := range t.Unfinished {
		if name == position || name == waiting {
			steps = append(steps, dialect.Step{Note: "what a CREATE INDEX CONCURRENTLY left that broke off",
				SQL: "DROP INDEX IF EXISTS " +
					dialect.Qualified(d, feedtype.TableName{Schema: t.Name.Schema, Name: name})})
		}
	}
	return append(steps,
		dialect.Step{Note: "pages are read in this order",
			SQL: "CREATE INDEX IF NOT EXISTS " + d.Quote(position) + " ON " + source +
				" (feed_sync_id, shard) WHERE feed_sync_id IS NOT NULL"},
		dialect.Step{Note: "rows that wait are found here, in key order",
			SQL: "CREATE INDEX IF NOT EXISTS " + d.Quote(waiting) + " ON " + source + " (" +
				strings.Join(dialect.OrderedKey(d, f, ""), ", ") + ") WHERE feed_sync_id IS NULL"})
}

// dropRowColumns drops only the columns that rowfeed added.
func (d Dialect) dropRowColumns(f *dialect.Feed, t *dialect.Table) []dialect.Step {
	if !f.InRows() || t == nil {
		return nil
	}
	position, waiting := rowIndexes(f)
	var steps []dialect.Step
	for _, name := range []string{position, waiting} {
		steps = append(steps, dialect.Step{Note: "index",
			SQL: "DROP INDEX IF EXISTS " + dialect.Qualified(d, feedtype.TableName{Schema: t.Name.Schema, Name: name})})
	}
	for _, name := range f.Added {
		steps = append(steps, dialect.Step{Note: "column", SQL: "ALTER TABLE " + dialect.Qualified(d, f.Source) +
			" DROP COLUMN IF EXISTS " + d.Quote(name)})
	}
	return steps
}

// PlaceRows implements [dialect.Publish]. It locks rows in one statement and updates them in the next. If a row
// changes while the first statement waits for it, only the second statement has a snapshot that shows the
// change. In between, the lock keeps the row's ctid as it is, so no key is sent: see DESIGN.md.
func (d Dialect) PlaceRows(ctx context.Context, tx dialect.Querier, f *dialect.Feed, after []any, limit int, base int64,
	shard func([]any) (int, error)) (int, []any, error) {
	if !f.InRows() {
		return 0, nil, nil
	}
	source := dialect.Qualified(d, f.Source)
	set, lists, names := "", "", ""
	lock := d.lockWaiting
	if f.Sharded() {
		set, lists, names = ", shard = u.shard", ", CAST(CAST($4 AS text) AS int[])", ", shard"
		lock = d.lockSharded
	}
	locked, args, err := lock(ctx, tx, f, after, limit, shard)
	if err != nil || locked == 0 {
		return 0, nil, err
	}
	join := dialect.EqualKeys(f, dialect.StoredRefs(d, f, "p"), placedKeys(f))
	returning := make([]string, len(f.Key))
	for i, ref := range dialect.KeyRefs(d, f, "t") {
		returning[i] = fmt.Sprintf("%s AS k%d", ref, i)
	}
	var n int64
	err = dialect.QueryRow(ctx, tx, "WITH placed AS (UPDATE "+source+` t SET feed_sync_id = CAST($1 AS bigint) + u.n`+
		set+`
  FROM unnest(CAST(CAST($2 AS text) AS tid[]), CAST(CAST($3 AS text) AS oid[])`+lists+
		`) WITH ORDINALITY AS u(place, rel`+names+`, n)
  WHERE t.ctid = u.place AND t.tableoid = u.rel
  RETURNING `+strings.Join(returning, ", ")+`),
cleared AS (DELETE FROM `+dialect.Qualified(d, f.Positions())+" p USING placed WHERE "+join+` AND p.hidden = 0)
SELECT count(*) FROM placed`, append([]any{base}, args...), &n)
	if err != nil {
		return 0, nil, err
	}
	last, err := dialect.KeyAt(ctx, tx, d, f, base+locked)
	if errors.Is(err, sql.ErrNoRows) {
		return int(locked), nil, nil // a trigger set the position back to NULL; the publisher notices that
	}
	return int(locked), last, err
}

// lockWaiting locks rows that wait. It returns their number, and their ctids and tableoids as arrays. With NO
// KEY UPDATE it also gets rows to which another transaction only adds references by foreign keys.
func (d Dialect) lockWaiting(ctx context.Context, tx dialect.Querier, f *dialect.Feed, after []any, limit int,
	_ func([]any) (int, error)) (n int64, places []any, err error) {
	b := dialect.NewBuilder(d)
	where, order := dialect.WaitingRows(d, b, f, after)
	var rows, tables *string
	err = dialect.QueryRow(ctx, tx, "SELECT count(*), array_agg(x.ctid)::text, array_agg(x.tableoid)::text FROM "+
		"(SELECT t.ctid, t.tableoid FROM "+dialect.Qualified(d, f.Source)+" t"+
		where+order+" LIMIT "+b.Arg(limit)+" FOR NO KEY UPDATE SKIP LOCKED) x", b.Args(), &n, &rows, &tables)
	if err != nil || n == 0 {
		return 0, nil, err
	}
	return n, []any{*rows, *tables}, nil
}

// lockSharded is lockWaiting with the data shards of the rows as a third array. It reads the locked keys to
// compute them.
func (d Dialect) lockSharded(ctx context.Context, tx dialect.Querier, f *dialect.Feed, after []any, limit int,
	shard func([]any) (int, error)) (n int64, places []any, err error) {
	b := dialect.NewBuilder(d)
	where, order := dialect.WaitingRows(d, b, f, after)
	keys, refs := make([]string, len(f.Key)), make([]string, len(f.Key))
	for i, ref := range dialect.KeyRefs(d, f, "t") {
		keys[i], refs[i] = fmt.Sprintf("%s AS k%d", ref, i), fmt.Sprintf("x.k%d", i)
	}
	var rows, tables, shards []string
	err = dialect.KeysOf(ctx, tx, d, f, []string{"x.place::text", "x.rel::text"}, refs,
		" FROM (SELECT t.ctid AS place, t.tableoid AS rel, "+strings.Join(keys, ", ")+
			" FROM "+dialect.Qualified(d, f.Source)+" t"+where+order+" LIMIT "+b.Arg(limit)+
			" FOR NO KEY UPDATE SKIP LOCKED) x", b.Args(), func(first []string, key []any) error {
			s, err := shard(key)
			rows, tables, shards =
				append(rows, `"`+first[0]+`"`), append(tables, first[1]), append(shards, strconv.Itoa(s))
			return err
		})
	array := func(elements []string) string { return "{" + strings.Join(elements, ",") + "}" }
	return int64(len(rows)), []any{array(rows), array(tables), array(shards)}, err
}

func placedKeys(f *dialect.Feed) []string {
	refs := make([]string, len(f.Key))
	for i := range refs {
		refs[i] = fmt.Sprintf("placed.k%d", i)
	}
	return refs
}

// ResetRows implements [dialect.Publish].
func (d Dialect) ResetRows(ctx context.Context, tx dialect.Querier, f *dialect.Feed, where string,
	args []any) (int64, error) {
	return tx.Exec(ctx, "UPDATE "+dialect.Qualified(d, f.Source)+" AS t SET feed_sync_id = NULL WHERE "+where, args...)
}

// DeleteRow implements [dialect.Schema] by one statement.
func (d Dialect) DeleteRow(f *dialect.Feed) []string {
	statements := dialect.DeleteRow(d, f)
	if len(statements) == 1 {
		return statements
	}
	keys, stored := strings.Join(dialect.KeyRefs(d, f, ""), ", "), strings.Join(dialect.StoredRefs(d, f, ""), ", ")
	return []string{"WITH gone AS (" + statements[0] + " RETURNING " + keys + ") INSERT INTO " +
		dialect.Qualified(d, f.Changes()) + " (" + stored + ") SELECT " + keys + " FROM gone"}
}

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
