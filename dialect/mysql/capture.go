package mysql

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// trigger is one of a feed's triggers.
type trigger struct {
	event string // INSERT, UPDATE, DELETE
	names [2]string
	body  string
}

// triggerNames returns the two names that a trigger may have. Repair makes the new trigger under the name that
// is free before it drops the stale one. Triggers are in the source's database. If rowfeed's tables are in
// another one, the names end in a hash of its name, so that several rowfeeds do not use the same names. The
// longest name has 62 of 64 characters.
func triggerNames(f *dialect.Feed, event string) [2]string {
	name := f.Object(strings.ToLower(event))
	if f.Names.Schema != "" && f.Names.Schema != f.Source.Schema {
		name = fmt.Sprintf("%s_%04x", f.Object(strings.ToLower(event[:3])),
			uint16(crc32.ChecksumIEEE([]byte(f.Names.Schema))))
	}
	return [2]string{name, name + "_2"}
}

// NewPartitions implements [dialect.Schema]. There are none: a trigger belongs to the whole table.
func (Dialect) NewPartitions(context.Context, dialect.Querier, *dialect.Feed,
	*dialect.Table) ([]dialect.NewPartition, error) {
	return nil, nil
}

// TriggerNames implements [dialect.Schema].
func (Dialect) TriggerNames(f *dialect.Feed) (names []string) {
	for _, event := range []string{"INSERT", "UPDATE", "DELETE"} {
		two := triggerNames(f, event)
		names = append(names, two[:]...)
	}
	return names
}

// triggers returns the feed's triggers as rowfeed makes them. They append keys and do nothing else. They run on
// every UPDATE, because a comparison of values would miss changes: of columns that were added later, and of
// values that are equal by collation. They read only key columns.
func (d Dialect) triggers(f *dialect.Feed, t *dialect.Table) ([]trigger, error) {
	if f.Capture != feedtype.CaptureTrigger {
		return nil, nil
	}
	changes, err := triggerTarget(f, t)
	if err != nil {
		return nil, err
	}
	insert := func(row string) string {
		return "INSERT INTO " + dialect.Qualified(d, changes) + " (" +
			strings.Join(dialect.StoredRefs(d, f, ""), ", ") +
			") VALUES (" + strings.Join(dialect.KeyRefs(d, f, row), ", ") + ")"
	}
	same := dialect.Pairwise(dialect.KeyRefs(d, f, "OLD"), dialect.KeyRefs(d, f, "NEW"), " <=> ", " AND ")
	if f.Outbox { // rows are only appended, and a row with another key counts as another row
		record := dialect.RecordOf(d, f, changes, f.ShardOf(d, "NEW"), "NEW")
		return []trigger{
			{event: "INSERT", names: triggerNames(f, "INSERT"), body: record},
			{event: "UPDATE", names: triggerNames(f, "UPDATE"), body: "BEGIN\n  IF NOT (" + same + ") THEN\n    " +
				record + ";\n  END IF;\nEND"},
		}, nil
	}
	all := []trigger{
		{event: "INSERT", body: insert("NEW")},
		{event: "UPDATE", body: "BEGIN\n  IF NOT (" + same + ") THEN\n    " + insert("OLD") + ";\n  END IF;\n  " +
			insert("NEW") + ";\nEND"},
		{event: "DELETE", body: insert("OLD")},
	}
	for i := range all {
		all[i].names = triggerNames(f, all[i].event)
	}
	return all, nil
}

// triggerTarget returns the table of changes, or the outbox, as a trigger has to name it. MySQL looks up a name
// without database in the trigger's database, not in the writer's. If both are in the same database, the name
// has no database, so that a dump can be restored under another name.
func triggerTarget(f *dialect.Feed, t *dialect.Table) (feedtype.TableName, error) {
	changes := f.Changes()
	if f.Outbox {
		changes = f.Records()
	}
	switch {
	case changes.Schema == t.Name.Schema:
		changes.Schema = ""
	case changes.Schema == "": // for printing a script without a server
		return changes, fmt.Errorf("the table is in database %s: say with --schema in which one rowfeed's tables are",
			t.Name.Schema)
	}
	return changes, nil
}

// keyMode is the sql_mode under which keys are copied. It accepts all that the source has accepted, such as a
// zero date, and never shortens a value to fit. A trigger keeps the sql_mode of the session that made it. With
// the server's default mode, it would fail the writes of sessions with a laxer one.
const keyMode = "STRICT_ALL_TABLES,ALLOW_INVALID_DATES"

var modeStep = dialect.Step{Note: "triggers and routines keep this mode: they take every key that the table takes, " +
	"and shorten none",
	SQL: "SET SESSION sql_mode = '" + keyMode + "'"}

// triggerSession returns the steps before triggers are made. They are made in the current database: see
// createTrigger.
func (d Dialect) triggerSession(t *dialect.Table) []dialect.Step {
	steps := []dialect.Step{modeStep}
	if t.Name.Schema != "" {
		steps = append(steps, dialect.Step{SQL: "USE " + d.Quote(t.Name.Schema),
			Note: "triggers do not name their database, so that a dump can be loaded into another one"})
	}
	return steps
}

// createTrigger returns a statement that names no database. MariaDB stores the text of the statement, which a
// dump repeats wherever it is loaded.
func (d Dialect) createTrigger(tr trigger, name string, t feedtype.TableName) string {
	return "CREATE TRIGGER " + d.Quote(name) + " AFTER " + tr.event + " ON " + d.Quote(t.Name) +
		" FOR EACH ROW\n" + tr.body
}

func (d Dialect) dropTrigger(schema, name string) string {
	return "DROP TRIGGER IF EXISTS " + dialect.Qualified(d, feedtype.TableName{Schema: schema, Name: name})
}

// FeedUp implements [dialect.Schema].
func (d Dialect) FeedUp(f *dialect.Feed, t *dialect.Table) ([]dialect.Step, error) {
	all, err := d.triggers(f, t)
	if err != nil {
		return nil, err
	}
	steps, err := d.tables(f)
	if err != nil {
		return nil, err
	}
	steps = append(steps, d.rowColumns(f, t)...)
	if len(all) > 0 {
		steps = append(steps, d.triggerSession(t)...)
	}
	for _, tr := range all {
		// No change is lost between the two steps, because the rows are recorded after FeedUp.
		steps = append(steps,
			dialect.Step{Note: "what a run that broke off may have left",
				SQL: d.dropTrigger(t.Name.Schema, tr.names[0])},
			dialect.Step{Note: "record the keys of every " + tr.event, SQL: d.createTrigger(tr, tr.names[0], t.Name)})
	}
	return steps, nil
}

// tables returns the steps that make the feed's missing tables.
func (d Dialect) tables(f *dialect.Feed) ([]dialect.Step, error) {
	var columns []string
	for _, c := range f.Key {
		if baseType(c.Type) == "timestamp" {
			// A trigger in MySQL copies a TIMESTAMP through the writer's local time. In the hour that the end
			// of summer time repeats, it would record another key. The hint SET_VAR(time_zone=…) in the trigger
			// corrects that, but crashes MySQL 9.7.
			return nil, fmt.Errorf("key column %q is a TIMESTAMP, of which triggers cannot tell an hour from the "+
				"next when summer time ends: "+
				"use another unique index with --key, or make the column a DATETIME", c.Name)
		}
		columns = append(columns, "  "+d.keyColumn(c))
	}
	if len(columns) == 0 {
		return nil, errors.New("the key has no columns")
	}
	keys := strings.Join(columns, ",\n")
	if f.Outbox {
		return d.outboxTables(f, keys), nil
	}
	var steps []dialect.Step
	if f.InRows() {
		steps = append(steps, dialect.Step{Note: "the keys that a publisher is at; empty between its transactions",
			SQL: "CREATE TABLE IF NOT EXISTS " + dialect.Qualified(d, f.Batch()) +
				" (\n  seq bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,\n" + keys + "\n)" + tableOptions})
	}
	byBucket := ""
	if f.ByBucket() { // for pages of a part of the shards
		byBucket = ",\n  KEY " + bucketIndex + " " + bucketColumns
	}
	return append(steps, []dialect.Step{
		{Note: "changes waiting for the publisher; writers only append, publishers only delete",
			SQL: "CREATE TABLE IF NOT EXISTS " + dialect.Qualified(d, f.Changes()) +
				" (\n  seq bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,\n" + keys + `,
  kind tinyint NOT NULL DEFAULT 0,
  changed_at timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)
)` + tableOptions},
		// The lock on the sequence makes feed_sync_id unique. Its index is not unique: so ON DUPLICATE KEY
		// UPDATE can only meet the key, and takes no gap lock on this index. The index covers all that a page
		// reads. MySQL fetches 500 rows ahead; with a smaller index these are 500 lookups for the shortest page
		// (5 ms instead of 1).
		{Note: "the place of every key in the feed; written by publishers only",
			SQL: "CREATE TABLE IF NOT EXISTS " + dialect.Qualified(d, f.Positions()) + " (\n" + keys + `,
  feed_sync_id bigint NOT NULL,
  shard int NOT NULL,
  bucket int NOT NULL,
  deleted tinyint NOT NULL,
  hidden tinyint NOT NULL,
  published_at bigint NOT NULL,
  PRIMARY KEY (` + strings.Join(dialect.StoredRefs(d, f, ""), ", ") + `),
  KEY feed_sync_id (feed_sync_id, shard, deleted, hidden, published_at),
  KEY deleted (deleted)` + byBucket + `
)` + tableOptions},
	}...), nil
}

// keyColumn returns the declaration of a key column in rowfeed's tables.
func (d Dialect) keyColumn(c dialect.Column) string {
	return d.Quote(c.Stored) + " " + c.Decl + " NOT NULL"
}

// FeedDown implements [dialect.Schema]. It drops the triggers first: without its table, a trigger would fail
// every write.
func (d Dialect) FeedDown(f *dialect.Feed, t *dialect.Table) []dialect.Step {
	steps := d.dropRowColumns(f, t)
	if f.InRows() {
		steps = append(steps, dialect.Step{Note: "the publisher's list of keys",
			SQL: "DROP TABLE IF EXISTS " + dialect.Qualified(d, f.Batch())})
	}
	for _, event := range []string{"INSERT", "UPDATE", "DELETE"} {
		for _, name := range triggerNames(f, event) {
			steps = append(steps, dialect.Step{Note: "stop recording", SQL: d.dropTrigger(f.Source.Schema, name)})
		}
	}
	if f.Outbox {
		return append(steps,
			dialect.Step{Note: "forget the records that wait",
				SQL: "DROP TABLE IF EXISTS " + dialect.Qualified(d, f.Records())},
			dialect.Step{Note: "forget the places", SQL: "DROP TABLE IF EXISTS " + dialect.Qualified(d, f.Placed())})
	}
	return append(steps,
		dialect.Step{Note: "forget the changes that wait",
			SQL: "DROP TABLE IF EXISTS " + dialect.Qualified(d, f.Changes())},
		dialect.Step{Note: "forget the positions", SQL: "DROP TABLE IF EXISTS " + dialect.Qualified(d, f.Positions())})
}
