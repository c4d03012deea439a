package mysql

import (
	"cmp"
	"context"
	_ "embed" // for capture.sql
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

//go:embed capture.sql
var captureFile string

var capture = dialect.NewStatements(captureFile)

// trigger is one of a feed's triggers.
type trigger struct {
	event     string // INSERT, UPDATE, DELETE
	names     [2]string
	statement string // of capture.sql, with these arguments
	args      dialect.Args
	body      string
}

// namesOf returns the two names that a trigger may have. Repair makes the new trigger under the name that
// is free before it drops the stale one. Triggers are in the source's database. If rowfeed's tables are in
// another one, the names end in a hash of its name, so that several rowfeeds do not use the same names. The
// longest name has 62 of 64 characters.
func namesOf(f *dialect.Feed, event string) [2]string {
	name := f.Object(strings.ToLower(event))
	if f.Names.Schema != "" && f.Names.Schema != f.Source.Schema {
		name = fmt.Sprintf("%s_%04x", f.Object(strings.ToLower(event[:3])),
			uint16(crc32.ChecksumIEEE([]byte(f.Names.Schema))))
	}
	return [2]string{name, name + "_2"}
}

// triggerNames is [dialect.Dialect].TriggerNames.
func triggerNames(f *dialect.Feed) (names []string) {
	for _, event := range events {
		two := namesOf(f, event)
		names = append(names, two[:]...)
	}
	return names
}

// triggers returns the feed's triggers as rowfeed makes them.
func (d database) triggers(f *dialect.Feed, t *dialect.Table) ([]trigger, error) {
	if f.Capture != feedtype.CaptureTrigger && !f.Fenced() {
		return nil, nil
	}
	changes, err := triggerTarget(f, t)
	if err != nil {
		return nil, err
	}
	args := dialect.Args{"changes": dialect.SQL(dialect.Qualified(syntax, changes))}
	statements := []string{"capture_inserts", "capture_updates", "capture_deletes"}
	switch {
	case f.Fenced():
		statements = []string{"fence_inserts", "fence_updates"}
		args["feed"], args["text"] = dialect.SQL(literal(f.Name)), dialect.SQL(literal(f.FenceText()))
	case f.Outbox:
		statements = []string{"record_inserts", "record_updates"}
		args["shard"] = dialect.SQL(f.ShardOf(syntax, "NEW"))
	}
	var all []trigger
	for i, statement := range statements {
		event := events[i]
		tr := trigger{event: event, names: namesOf(f, event), statement: statement, args: args}
		made := d.createTrigger(f, tr, "", t.Name).SQL
		_, tr.body, _ = strings.Cut(made, " FOR EACH ROW\n")
		all = append(all, tr)
	}
	return all, nil
}

// events are what triggers fire on.
var events = []string{"INSERT", "UPDATE", "DELETE"}

// triggerTable is the table of rowfeed's that the feed's triggers name: the table of changes, the outbox, or the
// publisher's list of keys, which a fence reads.
func triggerTable(f *dialect.Feed) feedtype.TableName {
	switch {
	case f.Fenced():
		return f.Batch()
	case f.Outbox:
		return f.Records()
	}
	return f.Changes()
}

// triggerTarget returns triggerTable as a trigger has to name it. MySQL looks up a name
// without database in the trigger's database, not in the writer's. If both are in the same database, the name
// has no database, so that a dump can be restored under another name.
func triggerTarget(f *dialect.Feed, t *dialect.Table) (feedtype.TableName, error) {
	changes := triggerTable(f)
	switch {
	case changes.Schema == t.Name.Schema:
		changes.Schema = ""
	case changes.Schema == "": // for printing a script without a server
		return changes, fmt.Errorf("the table is in database %s: say with --schema in which one rowfeed's tables are",
			t.Name.Schema)
	}
	return changes, nil
}

// keyMode is the sql_mode under which keys are copied: see the statement key_mode.
const keyMode = "STRICT_ALL_TABLES,ALLOW_INVALID_DATES"

// triggerSession returns the steps before triggers are made. They are made in the current database: see
// createTrigger.
func (d database) triggerSession(f *dialect.Feed, t *dialect.Table) []dialect.Step {
	steps := d.steps(f, "key_mode")
	if t.Name.Schema != "" {
		steps = append(steps,
			capture.Step(syntax, f, "use", dialect.Args{"database": dialect.SQL(quote(t.Name.Schema))}))
	}
	return steps
}

// createTrigger returns a statement that names no database.
func (d database) createTrigger(f *dialect.Feed, tr trigger, name string, t feedtype.TableName) dialect.Step {
	args := maps.Clone(tr.args)
	args["name"], args["table"] = dialect.SQL(quote(name)), dialect.SQL(quote(t.Name))
	return capture.Step(syntax, f, tr.statement, args)
}

// triggerName is the argument of a statement that drops a trigger.
func (d database) triggerName(schema, name string) dialect.Args {
	return dialect.Args{"name": dialect.SQL(dialect.Qualified(syntax, feedtype.TableName{Schema: schema, Name: name}))}
}

// steps returns statements of capture.sql without arguments.
func (d database) steps(f *dialect.Feed, names ...string) (steps []dialect.Step) {
	for _, name := range names {
		steps = append(steps, capture.Step(syntax, f, name, nil))
	}
	return steps
}

// FeedUp implements [dialect.Core].
func (d database) FeedUp(f *dialect.Feed, t *dialect.Table) ([]dialect.Step, error) {
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
		steps = append(steps, d.triggerSession(f, t)...)
	}
	for _, tr := range all {
		// No change is lost between the two steps, because the rows are recorded after FeedUp.
		steps = append(steps,
			capture.Step(syntax, f, "drop_left_trigger", d.triggerName(t.Name.Schema, tr.names[0])),
			d.createTrigger(f, tr, tr.names[0], t.Name))
	}
	return steps, nil
}

// tables returns the steps that make the feed's missing tables.
func (d database) tables(f *dialect.Feed) ([]dialect.Step, error) {
	for _, c := range f.Key {
		if baseType(c.Type) == "timestamp" {
			// A trigger in MySQL copies a TIMESTAMP through the writer's local time. In the hour that the end
			// of summer time repeats, it would record another key. The hint SET_VAR(time_zone=…) in the trigger
			// corrects that, but crashes MySQL 9.7.
			return nil, fmt.Errorf("key column %q is a TIMESTAMP, in which triggers cannot tell an hour from the "+
				"next when summer time ends: "+
				"use another unique index with --key, or make the column a DATETIME", c.Name)
		}
	}
	switch {
	case len(f.Key) == 0:
		return nil, errors.New("the key has no columns")
	case f.Outbox:
		return d.steps(f, "outbox", "places"), nil
	case f.InRows():
		return d.steps(f, "batch", "changes", "positions"), nil
	}
	return d.steps(f, "changes", "positions"), nil
}

// keyColumn returns the declaration of a key column in rowfeed's tables.
func (d database) keyColumn(c dialect.Column) string {
	return quote(c.Stored) + " " + c.Decl + " NOT NULL"
}

// FeedDown implements [dialect.Core].
func (d database) FeedDown(f *dialect.Feed, t *dialect.Table) []dialect.Step {
	var steps []dialect.Step
	for _, event := range events {
		for _, name := range namesOf(f, event) {
			steps = append(steps, capture.Step(syntax, f, "drop_trigger", d.triggerName(f.Source.Schema, name)))
		}
	}
	if f.Outbox {
		return append(steps, d.steps(f, "drop_outbox", "drop_places")...)
	}
	steps = append(steps, d.dropRowColumns(f, t)...)
	if f.InRows() || f.Moved {
		steps = append(steps, d.steps(f, "drop_batch", "drop_closed")...)
	}
	return append(steps, d.steps(f, "drop_changes", "drop_positions")...)
}

// DeleteRow implements [dialect.Publishing].
func (d database) DeleteRow(f *dialect.Feed) []string {
	b := dialect.NewBuilder(syntax)
	key := dialect.SQL(dialect.KeyEquals(syntax, b, f))
	all := []string{b.Fill(capture.For(syntax, f, "delete_row"), dialect.Args{"key": key})}
	if f.Capture == feedtype.CaptureTrigger && !f.Moving {
		return all // the trigger records the delete
	}
	marks := strings.TrimSuffix(strings.Repeat("?, ", len(f.Key)), ", ")
	return append(all, b.Fill(capture.For(syntax, f, "record_delete"), dialect.Args{"key": dialect.SQL(marks)}))
}

// BucketIndex implements [dialect.Placing].
func (d database) BucketIndex(ctx context.Context, q dialect.Querier, f *dialect.Feed) ([]dialect.Step, error) {
	indexes, err := d.indexNames(ctx, q, f.Positions())
	if err != nil {
		return nil, err
	}
	steps := d.steps(f, "bucket_index", "drop_bucket_index")
	return dialect.BucketSteps(f, slices.Contains(indexes, "bucket"), steps[0], steps[1]), nil
}

// rowIndex is the name of the index on the user's table for a feed whose rows hold their positions.
func rowIndex(f *dialect.Feed) string { return f.Object("row_position") }

// maxIndexed is the maximum number of columns in an index of MySQL. MariaDB accepts twice as many. A key can
// have the same number, so the index leaves out what does not fit.
const maxIndexed = 16

// rowColumns adds what the user's table lacks.
func (d database) rowColumns(f *dialect.Feed, t *dialect.Table) []dialect.Step {
	if !f.InRows() {
		return nil
	}
	of := *f
	of.Source = t.Name
	f = &of
	types := map[string]dialect.SQL{dialect.PositionColumn: "bigint NULL",
		dialect.ShardColumn: "int NOT NULL DEFAULT 0"}
	var adds []dialect.Built
	for _, name := range f.MissingColumns(t) {
		adds = append(adds, capture.For(syntax, f, "add_column").With(dialect.Args{"column": dialect.SQL(quote(name)),
			"type": types[name]}))
	}
	var steps []dialect.Step
	if len(adds) > 0 {
		steps = append(steps, capture.Step(syntax, f, "add_columns", dialect.Args{"adds": dialect.Joined(", ", adds)}))
	}
	made := slices.Contains(t.Indexes, rowIndex(f))
	if made && len(adds) > 0 {
		steps = append(steps, d.steps(f, "drop_rest_of_index")...)
		made = false
	}
	if !made {
		columns := append([]string{"feed_sync_id"}, dialect.KeyRefs(syntax, f, "")...)
		shard := cmp.Or(f.OwnShard, dialect.ShardColumn)
		if !slices.ContainsFunc(f.Key, func(c dialect.Column) bool { return strings.EqualFold(c.Name, shard) }) {
			if f.OwnShard != "" {
				shard = quote(shard)
			}
			columns = append(columns, shard)
		}
		columns = columns[:min(len(columns), maxIndexed)]
		steps = append(steps, capture.Step(syntax, f, "row_index", dialect.Args{
			"columns": dialect.SQL(strings.Join(columns, ", "))}))
	}
	return steps
}

// dropRowColumns drops only what rowfeed added.
func (d database) dropRowColumns(f *dialect.Feed, t *dialect.Table) []dialect.Step {
	if !f.InRows() && !f.Moved || t == nil {
		return nil
	}
	of := *f
	of.Source = t.Name
	var drops []string
	if slices.Contains(t.Indexes, rowIndex(f)) {
		drops = append(drops, "DROP INDEX "+quote(rowIndex(f)))
	}
	for _, name := range f.Added {
		if t.Column(name) != nil {
			drops = append(drops, "DROP COLUMN "+quote(name))
		}
	}
	if len(drops) == 0 {
		return nil
	}
	return []dialect.Step{capture.Step(syntax, &of, "drop_own",
		dialect.Args{"drops": dialect.SQL(strings.Join(drops, ", "))})}
}
