package postgres

import (
	"context"
	_ "embed" // for capture.sql
	"fmt"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

//go:embed capture.sql
var captureFile string

var capture = dialect.NewStatements(captureFile)

// FeedUp implements [dialect.Core]. It runs in one transaction. The triggers come last, because they lock the
// source table against writers.
func (d database) FeedUp(f *dialect.Feed, t *dialect.Table) ([]dialect.Step, error) {
	for _, c := range f.Key {
		if c.Kind == feedtype.JSON && c.Type != "jsonb" {
			return nil, fmt.Errorf("key column %q is an array, which is sent as JSON and cannot be converted back: "+
				"use another unique index with --key", c.Name)
		}
	}
	names := []string{"changes", "positions", "position_index", "deleted_index"}
	switch {
	case f.Outbox:
		names = []string{"outbox", "outbox_index", "places"}
	case f.ByBucket():
		names = append(names, "bucket_index")
	}
	steps := d.steps(f, names...)
	if !f.Outbox {
		steps = append(steps, d.rowColumns(f, t)...)
	}
	if f.Fenced() {
		steps = append(steps, d.steps(f, "fence_function", "fence_inserts", "fence_updates")...)
	}
	if f.Capture != feedtype.CaptureTrigger {
		return steps, nil
	}
	steps = append(steps, d.triggers(f, t)...)
	if f.Moved {
		steps = append(steps, d.steps(f, "drop_fence")...)
	}
	return steps, nil
}

// step returns a statement of capture.sql with these texts as its arguments.
func (d database) step(f *dialect.Feed, name string, args dialect.Args) dialect.Step {
	return quoted(capture.Step(syntax, f, name, args))
}

// steps returns statements of capture.sql without arguments.
func (d database) steps(f *dialect.Feed, names ...string) (steps []dialect.Step) {
	for _, name := range names {
		steps = append(steps, d.step(f, name, nil))
	}
	return steps
}

func (d database) function(f *dialect.Feed, suffix string) string {
	return dialect.Qualified(syntax, f.Routine(suffix))
}

// ownPath tells whether a trigger function sets a search_path of its own: see the statement capture_function.
func ownPath(f *dialect.Feed, suffix string) bool {
	return suffix != "capture" || slices.ContainsFunc(f.Key, func(c dialect.Column) bool {
		name := baseName(c.Type)
		return !slices.Contains(plain, name)
	})
}

// plain are types that are built into the server. A domain has another name.
var plain = []string{"int2", "int4", "int8", "text", "varchar", "uuid", "bool", "bytea", "date", "timestamp",
	"timestamptz",
	"numeric", "float4", "float8", "bpchar"}

// suffixes are the ends of the names of the feed's trigger functions, in the order in which they are made.
func suffixes(f *dialect.Feed) []string {
	if f.Outbox {
		return []string{"capture"}
	}
	return []string{"capture", "truncate"}
}

// functionStep returns the step that makes a trigger function.
func (d database) functionStep(f *dialect.Feed, suffix string) dialect.Step {
	rights := "owner_rights"
	if ownPath(f, suffix) {
		rights = "owner_rights_and_path"
	}
	args := dialect.Args{"rights": capture.For(syntax, f, rights).With(nil)}
	if suffix == "truncate" {
		all := capture.For(syntax, f, "record_all").String()
		args["insert"] = dialect.SQL(literal(strings.ReplaceAll(all, "%", "%%") + " FROM %I.%I"))
		return d.step(f, "truncate_function", args)
	}
	args["other_key"] = capture.For(syntax, f, "other_key").With(nil)
	if f.Outbox {
		args["shard"] = dialect.SQL(f.ShardOf(syntax, "NEW"))
		return d.step(f, "record_function", args)
	}
	return d.step(f, "capture_function", args)
}

func (d database) triggers(f *dialect.Feed, t *dialect.Table) []dialect.Step {
	var steps []dialect.Step
	for _, suffix := range suffixes(f) {
		steps = append(steps, d.functionStep(f, suffix))
	}
	steps = append(steps, d.steps(f, "revoke_functions", "grant_functions", "capture_trigger")...)
	steps = append(steps, d.ownTriggers(f, f.Source)...)
	for _, p := range t.Partitions {
		steps = append(steps, d.ownTriggers(f, p.Name)...)
	}
	return steps
}

// ownTriggers returns the steps that the table and each partition need for themselves.
func (d database) ownTriggers(f *dialect.Feed, table feedtype.TableName) (steps []dialect.Step) {
	name := dialect.Args{"table": dialect.SQL(dialect.Qualified(syntax, table))}
	if !f.Outbox {
		steps = append(steps, d.step(f, "truncate_trigger", name))
	}
	return append(steps, d.step(f, "enable_always", name))
}

// NewPartitions implements [dialect.Partitions]. A new partition lacks the TRUNCATE trigger. Verify
// reports a trigger that exists, but is disabled or differs: a user has changed it.
func (d database) NewPartitions(ctx context.Context, q dialect.Querier, f *dialect.Feed,
	t *dialect.Table) ([]dialect.NewPartition, error) {
	if f.Capture != feedtype.CaptureTrigger || f.Outbox || len(t.Partitions) == 0 {
		return nil, nil
	}
	type lack struct {
		table                        feedtype.TableName
		owner, login, runs           string
		mayAlter, mayExecute, mayRun bool
	}
	function := d.function(f, "truncate")
	all, err := dialect.All(ctx, q, syntax, capture.For(syntax, f, "new_partitions"), dialect.Args{
		"source": dialect.Qualified(syntax, f.Source), "trigger": f.Object("truncate"), "function": function + "()",
	}, func(rows dialect.Rows) (l lack, err error) {
		return l, rows.Scan(&l.table.Schema, &l.table.Name, &l.owner, &l.login,
			&l.runs, &l.mayAlter, &l.mayExecute, &l.mayRun)
	})
	var found []dialect.NewPartition
	for _, l := range all {
		i := slices.IndexFunc(t.Partitions, func(p dialect.Partition) bool { return p.Name == l.table })
		if i < 0 {
			continue // the partition was added after the table was described
		}
		n := dialect.NewPartition{Partition: t.Partitions[i], Owner: l.owner, Steps: d.ownTriggers(f, l.table)}
		switch {
		case !l.mayRun: // the trigger would make every TRUNCATE of the partition fail
			n.Lacks = "the role " + l.runs + ", which runs the feed's triggers, may not read it"
			n.Grant = "GRANT SELECT ON " + dialect.Qualified(syntax, l.table) + " TO " + l.runs
		case !l.mayAlter:
			n.Lacks = "the login " + l.login + " is not a member of the role " + l.owner + ", which owns it"
			n.Grant, n.ByOwner = "GRANT "+l.owner+" TO "+l.login, true
		case !l.mayExecute:
			n.Lacks = "the login " + l.login + " may not execute the function " + function
			n.Grant = "GRANT EXECUTE ON FUNCTION " + function + " TO " + l.login
		}
		found = append(found, n)
	}
	return found, err
}

// triggerNames is [dialect.Dialect].TriggerNames: the row trigger and the TRUNCATE trigger, or the fence.
func triggerNames(f *dialect.Feed) []string {
	if f.Fenced() {
		return []string{f.Object("fence_insert"), f.Object("fence_update")}
	}
	return []string{f.Object("capture"), f.Object("truncate")}
}

// FeedDown implements [dialect.Core]. It drops the functions together with their triggers, on whatever table
// these are.
func (d database) FeedDown(f *dialect.Feed, t *dialect.Table) []dialect.Step {
	if f.Outbox {
		return d.steps(f, "drop_trigger", "drop_outbox", "drop_places")
	}
	var steps []dialect.Step
	if f.Fenced() || f.Moved {
		steps = d.steps(f, "drop_fence") // its triggers name a column
	}
	return append(append(steps, d.dropRowColumns(f, t)...),
		d.steps(f, "drop_triggers", "drop_truncate", "drop_changes", "drop_positions")...)
}

// BucketIndex implements [dialect.Placing].
func (d database) BucketIndex(ctx context.Context, q dialect.Querier, f *dialect.Feed) ([]dialect.Step, error) {
	var there bool
	if err := dialect.One(ctx, q, syntax, capture.For(syntax, f, "has_bucket_index"), nil, &there); err != nil {
		return nil, err
	}
	return dialect.BucketSteps(f, there, d.step(f, "bucket_index", nil), d.step(f, "drop_bucket_index", nil)), nil
}

// rowIndexes returns the names of the indexes on the user's table, in its schema, for a feed whose rows hold
// their positions.
func rowIndexes(f *dialect.Feed) (position, waiting string) {
	return f.Object("row_position"), f.Object("row_waiting")
}

// rowColumns adds the columns and indexes that the user's table lacks.
func (d database) rowColumns(f *dialect.Feed, t *dialect.Table) []dialect.Step {
	if !f.InRows() {
		return nil
	}
	var steps []dialect.Step
	for _, name := range f.MissingColumns(t) {
		statement := map[string]string{dialect.PositionColumn: "position_column", dialect.ShardColumn: "shard_column"}
		steps = append(steps, d.step(f, statement[name], nil))
	}
	if len(steps) > 0 {
		steps[len(steps)-1].Commit = true
	}
	position, waiting := rowIndexes(f)
	for _, name := range t.Unfinished {
		if name == position || name == waiting {
			steps = append(steps, d.step(f, "drop_unfinished", d.index(t, name)))
		}
	}
	return append(steps, d.steps(f, "row_position_index", "row_waiting_index")...)
}

// index names an index of the user's table.
func (d database) index(t *dialect.Table, name string) dialect.Args {
	return dialect.Args{"index": dialect.SQL(
		dialect.Qualified(syntax, feedtype.TableName{Schema: t.Name.Schema, Name: name}))}
}

// dropRowColumns drops only the columns that rowfeed added.
func (d database) dropRowColumns(f *dialect.Feed, t *dialect.Table) []dialect.Step {
	if !f.InRows() && !f.Moved || t == nil {
		return nil
	}
	position, waiting := rowIndexes(f)
	var steps []dialect.Step
	for _, name := range []string{position, waiting} {
		steps = append(steps, d.step(f, "drop_index", d.index(t, name)))
	}
	for _, name := range f.Added {
		steps = append(steps, d.step(f, "drop_column", dialect.Args{"column": dialect.SQL(quote(name))}))
	}
	return steps
}

// DeleteRow implements [dialect.Publishing] by one statement.
func (d database) DeleteRow(f *dialect.Feed) []string {
	b := dialect.NewBuilder(syntax)
	name := "delete_row_and_record"
	if f.Capture == feedtype.CaptureTrigger && !f.Moving {
		name = "delete_row"
	}
	return []string{b.Fill(capture.For(syntax, f, name),
		dialect.Args{"key": dialect.SQL(dialect.KeyEquals(syntax, b, f))})}
}

// Moved implements [dialect.Renames].
func (d database) Moved(
	ctx context.Context, q dialect.Querier, f *dialect.Feed,
) (now feedtype.TableName, ok bool, err error) {
	found, err := dialect.All(ctx, q, syntax, capture.For(syntax, f, "moved"), dialect.Args{
		"table": f.Source.Name, "former": f.Source.Schema, "function": f.Object("capture"), "own": f.Names.Schema,
		"triggers": f.Capture == feedtype.CaptureTrigger,
	}, func(rows dialect.Rows) (schema string, err error) { return schema, rows.Scan(&schema) })
	if err != nil || len(found) != 1 {
		return now, false, err
	}
	return feedtype.TableName{Schema: found[0], Name: f.Source.Name}, true, nil
}
