package sqlite

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// FeedUp implements [dialect.Schema]. Its steps run in one transaction, so a table is never without its
// triggers.
func (d Dialect) FeedUp(f *dialect.Feed, t *dialect.Table) ([]dialect.Step, error) {
	steps := append(d.tables(f, t), d.rowColumns(f, t)...)
	if f.Outbox {
		steps = d.outboxTables(f)
	}
	if f.Capture != feedtype.CaptureTrigger {
		return steps, nil
	}
	triggers, err := d.triggers(f, t)
	if err != nil {
		return nil, err
	}
	for _, tr := range triggers {
		steps = append(steps,
			dialect.Step{Note: "an older form of the trigger", SQL: "DROP TRIGGER IF EXISTS " + d.Quote(tr.name)},
			dialect.Step{Note: tr.note, SQL: tr.sql})
	}
	return steps, nil
}

func (d Dialect) tables(f *dialect.Feed, t *dialect.Table) []dialect.Step {
	var decls []string
	for _, c := range f.Key {
		decls = append(decls, strings.TrimSpace(d.Quote(c.Stored)+" "+c.Decl)+" NOT NULL"+c.Collate)
	}
	key := strings.Join(decls, ",\n  ")
	shape := " WITHOUT ROWID"
	if isRowID(f, t) {
		shape = "" // the key is the rowid here, too, which makes lookups faster
	}
	steps := []dialect.Step{
		{Note: "changes: which keys were written; writers append, publishers delete what they have published",
			SQL: "CREATE TABLE IF NOT EXISTS " + dialect.Qualified(d, f.Changes()) + ` (
  seq INTEGER PRIMARY KEY,
  ` + key + `,
  kind INTEGER NOT NULL DEFAULT 0,
  changed_at INTEGER NOT NULL DEFAULT (` + d.Now() + `)
)`},
		{Note: "positions: where each key stands in the feed; only publishers write it",
			SQL: "CREATE TABLE IF NOT EXISTS " + dialect.Qualified(d, f.Positions()) + ` (
  ` + key + `,
  feed_sync_id INTEGER NOT NULL,
  shard INTEGER NOT NULL,
  bucket INTEGER NOT NULL,
  deleted INTEGER NOT NULL,
  hidden INTEGER NOT NULL,
  published_at INTEGER NOT NULL,
  PRIMARY KEY (` + strings.Join(dialect.StoredRefs(d, f, ""), ", ") + `)
)` + shape},
		{Note: "pages are read in this order; no position is given twice",
			SQL: "CREATE UNIQUE INDEX IF NOT EXISTS " + d.Quote(f.Object("position")) + " ON " +
				dialect.Qualified(d, f.Positions()) + " (feed_sync_id)"},
		{Note: "old tombstones are found here",
			SQL: "CREATE INDEX IF NOT EXISTS " + d.Quote(f.Object("deleted")) + " ON " +
				dialect.Qualified(d, f.Positions()) + " (feed_sync_id) WHERE deleted = 1"},
	}
	if f.ByBucket() {
		steps = append(steps, d.bucketIndex(f))
	}
	return steps
}

// isRowID tells whether the feed's key is the source's rowid: an INTEGER PRIMARY KEY. It has no index of its
// own, and holds only integers.
func isRowID(f *dialect.Feed, t *dialect.Table) bool {
	return t != nil && len(f.Key) == 1 && slices.ContainsFunc(t.Unique, func(ix dialect.Index) bool {
		return ix.Primary && ix.Name == "" && f.KeyedBy(ix)
	})
}

// bucketIndex covers all that a page reads of positions, because the keys of a part are far apart in the table.
// The marks hardly make it larger: SQLite stores the numbers 0 and 1 in the header of a record.
func (d Dialect) bucketIndex(f *dialect.Feed) dialect.Step {
	return dialect.Step{Note: "pages of a part of the shards are read in this order",
		SQL: "CREATE INDEX IF NOT EXISTS " + d.Quote(f.Object("bucket")) + " ON " +
			dialect.Qualified(d, f.Positions()) + " (bucket, feed_sync_id, shard, deleted, hidden, published_at)"}
}

type trigger struct{ name, note, sql string }

// triggers returns the triggers. They record keys and do nothing else. They fire on every UPDATE, whatever its
// columns, and name only key columns. A plain INSERT into the changes has no conflicts, so the conflict clause
// of the outer statement never applies to it.
func (d Dialect) triggers(f *dialect.Feed, t *dialect.Table) ([]trigger, error) {
	if f.Outbox {
		return d.outboxTriggers(f), nil
	}
	changes := d.Quote(f.Changes().Name)
	source := d.Quote(f.Source.Name)
	stored := strings.Join(dialect.StoredRefs(d, f, ""), ", ")
	oldKey, newKey := dialect.KeyRefs(d, f, "OLD"), dialect.KeyRefs(d, f, "NEW")
	record := "INSERT INTO " + changes + " (" + stored + ") "
	all := []trigger{
		{f.Object("insert"), "a row inserted", "CREATE TRIGGER " + d.Quote(f.Object("insert")) +
			" AFTER INSERT ON " + source + `
BEGIN
  ` + record + "VALUES (" + strings.Join(newKey, ", ") + `);
END`},
		{f.Object("update"), "a row updated; when its key changed, both keys", "CREATE TRIGGER " +
			d.Quote(f.Object("update")) + " AFTER UPDATE ON " + source + `
BEGIN
  ` + record + "SELECT " + strings.Join(oldKey, ", ") + " WHERE " + d.otherKey(f) + `;
  ` + record + "VALUES (" + strings.Join(newKey, ", ") + `);
END`},
		{f.Object("delete"), "a row deleted", "CREATE TRIGGER " + d.Quote(f.Object("delete")) +
			" AFTER DELETE ON " + source + `
BEGIN
  ` + record + "VALUES (" + strings.Join(oldKey, ", ") + `);
END`},
	}
	insertions, updates, err := d.replaced(f, t, record)
	if err != nil || insertions == "" {
		return all, err
	}
	return append(all,
		trigger{f.Object("insert_replace"), "rows that INSERT OR REPLACE removes without firing a DELETE trigger",
			"CREATE TRIGGER " + d.Quote(f.Object("insert_replace")) + " BEFORE INSERT ON " + source + "\nBEGIN" +
				insertions + "\nEND"},
		trigger{f.Object("update_replace"), "rows that UPDATE OR REPLACE removes without firing a DELETE trigger",
			"CREATE TRIGGER " + d.Quote(f.Object("update_replace")) + " BEFORE UPDATE ON " + source + "\nBEGIN" +
				updates + "\nEND"}), nil
}

// otherKey returns the condition that an UPDATE has changed the key.
func (d Dialect) otherKey(f *dialect.Feed) string {
	moved := dialect.KeyRefs(d, f, "OLD")
	for i, key := range dialect.KeyRefs(d, f, "NEW") {
		moved[i] += f.Key[i].Collate + " IS NOT " + key
	}
	return strings.Join(moved, " OR ")
}

// replaced returns statements that record the keys of rows with the same values in a unique index as the row
// that is about to be written. OR REPLACE deletes such rows without firing a trigger, unless the writer's
// connection has recursive_triggers on. If a recorded row then stays, it is only published once more. For the
// same reason a partial index is treated as a whole one. The key's own index is left out: the AFTER triggers
// record that key.
func (d Dialect) replaced(f *dialect.Feed, t *dialect.Table, record string) (insertions, updates string, err error) {
	sourceKey := dialect.KeyRefs(d, f, "r")
	var itself []string
	for i, old := range dialect.KeyRefs(d, f, "OLD") {
		itself = append(itself, sourceKey[i]+f.Key[i].Collate+" IS "+old)
	}
	for _, ix := range t.Unique {
		if f.KeyedBy(ix) {
			continue
		}
		if _, ok := ix.Names(); !ok {
			return "", "", fmt.Errorf("unique index %q is on an expression: rows that "+
				"OR REPLACE removes through it cannot be recorded (use --capture app, or make it an index on columns)",
				ix.Name)
		}
		var same []string
		for _, c := range ix.Columns {
			value := "NEW." + d.Quote(c.Name)
			if column := t.Column(c.Name); column != nil && column.Default != "" {
				// OR REPLACE writes the default if the value is NULL and the column is NOT NULL.
				value = "COALESCE(" + value + ", (" + column.Default + "))"
			}
			same = append(same, "r."+d.Quote(c.Name)+" = "+value+" COLLATE "+c.Collation)
		}
		find := "\n  " + record + "SELECT " + strings.Join(sourceKey, ", ") + " FROM " + d.Quote(f.Source.Name) +
			" r WHERE " + strings.Join(same, " AND ")
		insertions += find + ";"
		updates += find + " AND NOT (" + strings.Join(itself, " AND ") + ");"
	}
	if t.RowID != "" {
		// The rowid is unique, too, and statements can write it under this name.
		find := "\n  " + record + "SELECT " + strings.Join(sourceKey, ", ") + " FROM " + d.Quote(f.Source.Name) +
			" r WHERE r." + t.RowID + " = NEW." + t.RowID
		insertions += find + ";"
		updates += find + " AND NOT (" + strings.Join(itself, " AND ") + ");"
	}
	return insertions, updates, nil
}

// NewPartitions implements [dialect.Schema]: SQLite has no partitions.
func (Dialect) NewPartitions(context.Context, dialect.Querier, *dialect.Feed,
	*dialect.Table) ([]dialect.NewPartition, error) {
	return nil, nil
}

// TriggerNames implements [dialect.Schema]. It also names triggers that the table may not need.
func (Dialect) TriggerNames(f *dialect.Feed) (names []string) {
	for _, suffix := range []string{"insert", "update", "delete", "insert_replace", "update_replace"} {
		names = append(names, f.Object(suffix))
	}
	return names
}

// FeedDown implements [dialect.Schema]. SQLite drops the triggers with their table, so the steps have IF
// EXISTS.
func (d Dialect) FeedDown(f *dialect.Feed, t *dialect.Table) []dialect.Step {
	steps := d.dropRowColumns(f, t)
	for _, name := range d.TriggerNames(f) {
		steps = append(steps, dialect.Step{Note: "trigger", SQL: "DROP TRIGGER IF EXISTS " + d.Quote(name)})
	}
	if f.Outbox {
		return append(steps,
			dialect.Step{Note: "its outbox", SQL: "DROP TABLE IF EXISTS " + dialect.Qualified(d, f.Records())},
			dialect.Step{Note: "its places", SQL: "DROP TABLE IF EXISTS " + dialect.Qualified(d, f.Placed())})
	}
	return append(steps,
		dialect.Step{Note: "changes", SQL: "DROP TABLE IF EXISTS " + dialect.Qualified(d, f.Changes())},
		dialect.Step{Note: "positions", SQL: "DROP TABLE IF EXISTS " + dialect.Qualified(d, f.Positions())})
}

// Verify implements [dialect.Schema]. SQLite keeps the text of every trigger, which Verify compares with that
// of FeedUp. If a unique index was added since, the text of the triggers for OR REPLACE differs.
func (d Dialect) Verify(ctx context.Context, q dialect.Querier, f *dialect.Feed, t *dialect.Table) ([]string, error) {
	have := map[string]string{}
	_, err := dialect.QueryAll(ctx, q, "SELECT name, tbl_name, COALESCE(sql, '') FROM sqlite_schema "+
		"WHERE type IN ('table', 'trigger')", nil,
		func(rows dialect.Rows) (struct{}, error) {
			var name, table, text string
			err := rows.Scan(&name, &table, &text)
			have[name] = text
			return struct{}{}, err
		})
	if err != nil {
		return nil, err
	}
	var problems []string
	tables := []feedtype.TableName{f.Changes(), f.Positions()}
	if f.Outbox {
		tables = f.Tables()
	}
	for _, table := range tables {
		if _, ok := have[table.Name]; !ok {
			problems = append(problems, fmt.Sprintf("table %s is missing", table.Name))
		}
	}
	if f.Capture != feedtype.CaptureTrigger {
		position, waiting := rowIndexes(f)
		return append(problems, f.RowProblems(t, position, waiting)...), nil
	}
	triggers, err := d.triggers(f, t)
	if err != nil {
		return append(problems, err.Error()), nil
	}
	for _, tr := range triggers {
		switch text, ok := have[tr.name]; {
		case !ok:
			problems = append(problems, fmt.Sprintf("trigger %s is missing", tr.name))
		case text != tr.sql:
			problems = append(problems, fmt.Sprintf("trigger %s is not as it should be", tr.name))
		}
	}
	return problems, nil
}

// Repair implements [dialect.Schema]. It runs FeedUp again, in one transaction, so no change goes uncaptured.
func (d Dialect) Repair(_ context.Context, _ dialect.Querier, f *dialect.Feed,
	t *dialect.Table) ([]dialect.Step, error) {
	return d.FeedUp(f, t)
}
