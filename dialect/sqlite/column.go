package sqlite

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"database/sql"

	"github.com/rowfeed/rowfeed/dialect"
)

// rowIndexes returns the names of the indexes on the user's table for a feed whose rows hold their positions.
func rowIndexes(f *dialect.Feed) (position, waiting string) {
	return f.Object("row_position"), f.Object("row_waiting")
}

// rowColumns adds the columns and indexes that the user's table lacks. A STRICT table accepts these types, too.
func (d Dialect) rowColumns(f *dialect.Feed, t *dialect.Table) []dialect.Step {
	if !f.InRows() {
		return nil
	}
	source := dialect.Qualified(d, f.Source)
	decls := map[string]string{dialect.PositionColumn: "INTEGER", dialect.ShardColumn: "INTEGER NOT NULL DEFAULT 0"}
	var steps []dialect.Step
	for _, name := range f.MissingColumns(t) {
		steps = append(steps, dialect.Step{Note: "each row's " +
			map[string]string{dialect.PositionColumn: "position; NULL while it waits for one",
				dialect.ShardColumn: "shard"}[name],
			SQL: "ALTER TABLE " + source + " ADD COLUMN " + d.Quote(name) + " " + decls[name]})
	}
	position, waiting := rowIndexes(f)
	ordered := strings.Join(dialect.OrderedKey(d, f, ""), ", ")
	return append(steps,
		dialect.Step{Note: "pages are read in this order",
			SQL: "CREATE INDEX IF NOT EXISTS " + d.Quote(position) + " ON " + d.Quote(f.Source.Name) +
				" (feed_sync_id, shard) WHERE feed_sync_id IS NOT NULL"},
		dialect.Step{Note: "rows that wait are found here, in key order",
			SQL: "CREATE INDEX IF NOT EXISTS " + d.Quote(waiting) + " ON " + d.Quote(f.Source.Name) + " (" + ordered +
				") WHERE feed_sync_id IS NULL"})
}

// dropRowColumns drops only the columns that rowfeed added.
func (d Dialect) dropRowColumns(f *dialect.Feed, t *dialect.Table) []dialect.Step {
	if !f.InRows() || t == nil {
		return nil
	}
	position, waiting := rowIndexes(f)
	steps := []dialect.Step{
		{Note: "index", SQL: "DROP INDEX IF EXISTS " + d.Quote(position)},
		{Note: "index", SQL: "DROP INDEX IF EXISTS " + d.Quote(waiting)},
	}
	for _, name := range f.Added {
		if t.Column(name) != nil {
			steps = append(steps, dialect.Step{Note: "column", SQL: "ALTER TABLE " + d.Quote(f.Source.Name) +
				" DROP COLUMN " + d.Quote(name)})
		}
	}
	return steps
}

// PlaceRows implements [dialect.Publish] by one UPDATE, because the transaction has the only write lock.
func (d Dialect) PlaceRows(ctx context.Context, tx dialect.Querier, f *dialect.Feed, after []any, limit int, base int64,
	shard func([]any) (int, error)) (int, []any, error) {
	if !f.InRows() {
		return 0, nil, nil
	}
	source := dialect.Qualified(d, f.Source)
	b := dialect.NewBuilder(d)
	keys, ordered, join := make([]string, len(f.Key)), make([]string, len(f.Key)), make([]string, len(f.Key))
	for i, c := range f.Key {
		k := fmt.Sprintf("k%d", i)
		keys[i] = dialect.Ref(d, "t", c.Name) + " AS " + k
		ordered[i] = k + c.Collate
		// The left side decides the collation, which is that of the key's index.
		join[i] = "j." + k + c.Collate + " = " + dialect.Ref(d, "r", c.Name)
	}
	set := " SET feed_sync_id = " + b.Arg(base) + " + j.n"
	if f.Sharded() {
		list, err := d.waitingShards(ctx, tx, f, after, limit, shard)
		if err != nil {
			return 0, nil, err
		}
		set += ", shard = CAST(substr(" + b.Arg(list) + ", j.n * 5 - 4, 5) AS INTEGER)"
	}
	where, order := dialect.WaitingRows(d, b, f, after)
	n, err := tx.Exec(ctx, "UPDATE "+source+" AS r"+set+
		"\nFROM (SELECT *, row_number() OVER (ORDER BY "+strings.Join(ordered, ", ")+") AS n FROM (SELECT "+
		strings.Join(keys, ", ")+" FROM "+source+" t"+
		where+order+" LIMIT "+b.Arg(limit)+")) j\nWHERE "+strings.Join(join, " AND "), b.Args()...)
	if err != nil || n == 0 {
		return 0, nil, err
	}
	placed := " FROM " + source + " t WHERE t.feed_sync_id > ? AND t.feed_sync_id <= ?"
	_, err = tx.Exec(ctx, "DELETE FROM "+dialect.Qualified(d, f.Positions())+" WHERE hidden = 0 AND ("+
		strings.Join(dialect.StoredRefs(d, f, ""), ", ")+") IN (SELECT "+
		strings.Join(dialect.KeyRefs(d, f, "t"), ", ")+placed+")", base, base+n)
	if err != nil {
		return 0, nil, err
	}
	last, err := dialect.KeyAt(ctx, tx, d, f, base+n)
	if errors.Is(err, sql.ErrNoRows) {
		return int(n), nil, nil // a trigger set the position back to NULL; the publisher notices that
	}
	return int(n), last, err
}

// waitingShards returns the data shards of the rows that the UPDATE is about to number, as text of five digits
// each. The write lock keeps these rows as they are. In the text, the UPDATE finds the n-th shard by its
// offset. SQLite may read a joined list once for every row.
func (d Dialect) waitingShards(ctx context.Context, tx dialect.Querier, f *dialect.Feed, after []any, limit int,
	shard func([]any) (int, error)) (list []byte, err error) {
	b := dialect.NewBuilder(d)
	where, order := dialect.WaitingRows(d, b, f, after)
	err = dialect.KeysOf(ctx, tx, d, f, nil, dialect.KeyRefs(d, f, "t"), " FROM "+dialect.Qualified(d, f.Source)+" t"+
		where+order+" LIMIT "+b.Arg(limit), b.Args(),
		func(_ []string, key []any) error {
			s, err := shard(key)
			list = fmt.Appendf(list, "%05d", s)
			return err
		})
	return list, err
}

// ResetRows implements [dialect.Publish].
func (d Dialect) ResetRows(ctx context.Context, tx dialect.Querier, f *dialect.Feed, where string,
	args []any) (int64, error) {
	return tx.Exec(ctx, "UPDATE "+dialect.Qualified(d, f.Source)+" AS t SET feed_sync_id = NULL WHERE "+where, args...)
}

// DeleteRow implements [dialect.Schema] by two statements: in SQLite, WITH cannot change rows.
func (d Dialect) DeleteRow(f *dialect.Feed) []string { return dialect.DeleteRow(d, f) }

var (
	triggerHead = regexp.MustCompile(`(?is)^(.*?)\bBEGIN\b`)
	onUpdate    = regexp.MustCompile(`(?i)\bUPDATE\b`)
	onColumns   = regexp.MustCompile(`(?i)\bUPDATE\s+OF\b`)
)

// updateTriggers returns the triggers that fire when feed_sync_id is written. It looks only at the text before
// the triggers' bodies.
func updateTriggers(ctx context.Context, q dialect.Querier, table string) ([]string, error) {
	type trigger struct{ name, text string }
	all, err := dialect.QueryAll(ctx, q, "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' "+
		"AND lower(tbl_name) = lower(?) ORDER BY name", []any{table},
		func(rows dialect.Rows) (tr trigger, err error) { return tr, rows.Scan(&tr.name, &tr.text) })
	var names []string
	for _, tr := range all {
		head := triggerHead.FindString(tr.text)
		if onUpdate.MatchString(head) && (!onColumns.MatchString(head) ||
			strings.Contains(strings.ToLower(head), dialect.PositionColumn)) {
			names = append(names, tr.name)
		}
	}
	return names, err
}
