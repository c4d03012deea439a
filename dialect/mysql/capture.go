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

// triggerNames are the two names that a trigger may have: Repair makes the new
// trigger under the free one before it drops the stale one. Triggers live in the
// source's database, where rowfeeds with their tables elsewhere must not meet
// under one name: theirs end in a hash. The longest has 62 of 64 characters.
func triggerNames(f *dialect.Feed, event string) [2]string {
	name := f.Object(strings.ToLower(event))
	if f.Names.Schema != "" && f.Names.Schema != f.Source.Schema {
		name = fmt.Sprintf("%s_%04x", f.Object(strings.ToLower(event[:3])), uint16(crc32.ChecksumIEEE([]byte(f.Names.Schema))))
	}
	return [2]string{name, name + "_2"}
}

// NewPartitions are none: a trigger is on the whole table.
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

// triggers are the feed's triggers as they should be. They append keys and do
// nothing else: they fire on every UPDATE, since comparing values would miss
// changes (by collation, of columns added later), and name key columns only.
func (d Dialect) triggers(f *dialect.Feed, t *dialect.Table) ([]trigger, error) {
	if f.Capture != feedtype.CaptureTrigger {
		return nil, nil
	}
	changes, err := triggerTarget(f, t)
	if err != nil {
		return nil, err
	}
	insert := func(row string) string {
		return "INSERT INTO " + dialect.Qualified(d, changes) + " (" + strings.Join(dialect.StoredRefs(d, f, ""), ", ") +
			") VALUES (" + strings.Join(dialect.KeyRefs(d, f, row), ", ") + ")"
	}
	same := dialect.Pairwise(dialect.KeyRefs(d, f, "OLD"), dialect.KeyRefs(d, f, "NEW"), " <=> ", " AND ")
	if f.Outbox { // rows are only appended; one with another key is another row
		record := dialect.RecordOf(d, f, changes, f.ShardOf(d, "NEW"), "NEW")
		return []trigger{
			{event: "INSERT", names: triggerNames(f, "INSERT"), body: record},
			{event: "UPDATE", names: triggerNames(f, "UPDATE"), body: "BEGIN\n  IF NOT (" + same + ") THEN\n    " + record + ";\n  END IF;\nEND"},
		}, nil
	}
	all := []trigger{
		{event: "INSERT", body: insert("NEW")},
		{event: "UPDATE", body: "BEGIN\n  IF NOT (" + same + ") THEN\n    " + insert("OLD") + ";\n  END IF;\n  " + insert("NEW") + ";\nEND"},
		{event: "DELETE", body: insert("OLD")},
	}
	for i := range all {
		all[i].names = triggerNames(f, all[i].event)
	}
	return all, nil
}

// triggerTarget is the table of changes, or the outbox, as a trigger must name it: MySQL looks up a
// bare name in the trigger's schema, not in the writer's. Within one schema the
// name stays bare, so that a dump can be restored under another name.
func triggerTarget(f *dialect.Feed, t *dialect.Table) (feedtype.TableName, error) {
	changes := f.Changes()
	if f.Outbox {
		changes = f.Records()
	}
	switch {
	case changes.Schema == t.Name.Schema:
		changes.Schema = ""
	case changes.Schema == "": // for printing, without a server
		return changes, fmt.Errorf("the table is in database %s: say with --schema in which one rowfeed's tables are", t.Name.Schema)
	}
	return changes, nil
}

// keyMode is the sql_mode under which keys are copied: whatever the source took (a
// zero date) is taken, and nothing is ever shortened to fit. A trigger keeps the
// mode of the session that made it, and would fail the writes of sessions with a
// laxer one.
const keyMode = "STRICT_ALL_TABLES,ALLOW_INVALID_DATES"

var modeStep = dialect.Step{Note: "triggers and routines keep this mode: they take every key that the table takes, and shorten none",
	SQL: "SET SESSION sql_mode = '" + keyMode + "'"}

// triggerSession are the steps before triggers are made. They go into the current database, see createTrigger.
func (d Dialect) triggerSession(t *dialect.Table) []dialect.Step {
	steps := []dialect.Step{modeStep}
	if t.Name.Schema != "" {
		steps = append(steps, dialect.Step{SQL: "USE " + d.Quote(t.Name.Schema),
			Note: "triggers do not name their database, so that a dump can be loaded into another one"})
	}
	return steps
}

// createTrigger names no database: MariaDB keeps the words of the statement, and a dump repeats them, wherever it is
// loaded.
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
		// Nothing is lost between the two: the rows are recorded after FeedUp.
		steps = append(steps,
			dialect.Step{Note: "what a run that broke off may have left", SQL: d.dropTrigger(t.Name.Schema, tr.names[0])},
			dialect.Step{Note: "record the keys of every " + tr.event, SQL: d.createTrigger(tr, tr.names[0], t.Name)})
	}
	return steps, nil
}

// tables are the steps that make the feed's tables where they are missing.
func (d Dialect) tables(f *dialect.Feed) ([]dialect.Step, error) {
	var columns []string
	for _, c := range f.Key {
		if baseType(c.Type) == "timestamp" {
			// MySQL copies it through the writer's local time, so that a trigger records
			// another key in the hour that the end of summer time repeats. The hint
			// SET_VAR(time_zone=…) in the trigger cures that and crashes MySQL 9.7.
			return nil, fmt.Errorf("key column %q is a TIMESTAMP, of which triggers cannot tell an hour from the next when summer time ends: "+
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
			SQL: "CREATE TABLE IF NOT EXISTS " + dialect.Qualified(d, f.Batch()) + " (\n  seq bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,\n" + keys + "\n)" + tableOptions})
	}
	byBucket := ""
	if f.ByBucket() { // pages of a part of the shards
		byBucket = ",\n  KEY " + bucketIndex + " " + bucketColumns
	}
	return append(steps, []dialect.Step{
		{Note: "changes waiting for the publisher; writers only append, publishers only delete",
			SQL: "CREATE TABLE IF NOT EXISTS " + dialect.Qualified(d, f.Changes()) + " (\n  seq bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,\n" + keys + `,
  kind tinyint NOT NULL DEFAULT 0,
  changed_at timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)
)` + tableOptions},
		// feed_sync_id is unique by the sequence's lock. Its index is not, so that ON
		// DUPLICATE KEY UPDATE meets the key only, and takes no gap lock for it. It
		// covers what a page reads: MySQL fetches 500 rows ahead, which without that are
		// 500 lookups for the shortest page (5 ms instead of 1).
		{Note: "the place of every key in the feed; written by publishers only",
			SQL: "CREATE TABLE IF NOT EXISTS " + dialect.Qualified(d, f.Positions()) + " (\n" + keys + `,
  feed_sync_id bigint NOT NULL,
  shard int NOT NULL,
  bucket int NOT NULL,
  deleted tinyint NOT NULL,
  hidden tinyint NOT NULL,
  published_at bigint NOT NULL,
  PRIMARY KEY (` + strings.Join(dialect.StoredRefs(d, f, ""), ", ") + `),
  KEY feed_sync_id (feed_sync_id, shard, deleted, hidden),
  KEY deleted (deleted)` + byBucket + `
)` + tableOptions},
	}...), nil
}

// keyColumn declares a key column in rowfeed's tables.
func (d Dialect) keyColumn(c dialect.Column) string {
	return d.Quote(c.Stored) + " " + c.Decl + " NOT NULL"
}

// FeedDown implements [dialect.Schema]. Triggers go first: one without its table
// would fail every write.
func (d Dialect) FeedDown(f *dialect.Feed, t *dialect.Table) []dialect.Step {
	steps := d.dropRowColumns(f, t)
	if f.InRows() {
		steps = append(steps, dialect.Step{Note: "the publisher's list of keys", SQL: "DROP TABLE IF EXISTS " + dialect.Qualified(d, f.Batch())})
	}
	for _, event := range []string{"INSERT", "UPDATE", "DELETE"} {
		for _, name := range triggerNames(f, event) {
			steps = append(steps, dialect.Step{Note: "stop recording", SQL: d.dropTrigger(f.Source.Schema, name)})
		}
	}
	if f.Outbox {
		return append(steps,
			dialect.Step{Note: "forget the records that wait", SQL: "DROP TABLE IF EXISTS " + dialect.Qualified(d, f.Records())},
			dialect.Step{Note: "forget the places", SQL: "DROP TABLE IF EXISTS " + dialect.Qualified(d, f.Placed())})
	}
	return append(steps,
		dialect.Step{Note: "forget the changes that wait", SQL: "DROP TABLE IF EXISTS " + dialect.Qualified(d, f.Changes())},
		dialect.Step{Note: "forget the positions", SQL: "DROP TABLE IF EXISTS " + dialect.Qualified(d, f.Positions())})
}
