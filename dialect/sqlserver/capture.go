package sqlserver

import (
	"context"
	_ "embed" // for capture.sql
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

//go:embed capture.sql
var captureFile string

var capture = dialect.NewStatements(captureFile)

// steps returns statements of capture.sql without arguments.
func (d database) steps(f *dialect.Feed, names ...string) (steps []dialect.Step) {
	for _, name := range names {
		steps = append(steps, capture.Step(syntax, f, name, nil))
	}
	return steps
}

// FeedUp implements [dialect.Core]. It runs in one transaction. The trigger comes last, because it locks the source
// table against writers.
func (d database) FeedUp(f *dialect.Feed, t *dialect.Table) ([]dialect.Step, error) {
	names := []string{"changes_sequence", "changes", "changes_locks", "positions", "position_index", "deleted_index"}
	switch {
	case f.Outbox:
		names = []string{"changes_sequence", "outbox", "outbox_locks", "places", "places_locks"}
	case f.ByBucket():
		names = append(names, "bucket_index")
	}
	steps := d.steps(f, names...)
	if f.Outbox {
		steps = append(steps, originalUp(f)...)
	}
	if f.InRows() {
		steps = append(steps, d.rowColumns(f, t)...)
	}
	if f.Capture == feedtype.CaptureTrigger {
		steps = append(steps, d.trigger(f))
	}
	return steps, nil
}

// rowColumns adds the columns and the index that the user's table lacks.
func (d database) rowColumns(f *dialect.Feed, t *dialect.Table) (steps []dialect.Step) {
	for _, name := range f.MissingColumns(t) {
		steps = append(steps, d.steps(f, map[string]string{dialect.PositionColumn: "position_column",
			dialect.ShardColumn: "shard_column"}[name])...)
	}
	if len(steps) > 0 {
		steps[len(steps)-1].Commit = true
	}
	return append(steps, d.steps(f, "row_position_index")...)
}

// rowIndex is the name of the index on the user's table for a feed whose rows hold their positions.
func rowIndex(f *dialect.Feed) string { return f.Object("row_position") }

// triggerName is the quoted name of the feed's trigger, which is in the schema of its table.
func (d database) triggerName(f *dialect.Feed) string {
	return dialect.Qualified(syntax, feedtype.TableName{Schema: f.Source.Schema, Name: f.Object("capture")})
}

// asOwner tells whether the trigger runs with the rights of its owner. In one schema, all objects have the same owner,
// so that a writer needs no right on what its trigger writes.
func asOwner(f *dialect.Feed) bool { return f.Source.Schema != f.Names.Schema }

// trigger returns the step that makes the feed's trigger, or makes it again in its place.
func (d database) trigger(f *dialect.Feed) dialect.Step {
	args := dialect.Args{"trigger": dialect.SQL(d.triggerName(f)), "rights": dialect.SQL("")}
	if asOwner(f) {
		args["rights"] = dialect.SQL("WITH EXECUTE AS OWNER")
	}
	if f.Outbox {
		args["shard"] = dialect.SQL(f.ShardOf(syntax, "i"))
		return capture.Step(syntax, f, "record_trigger", args)
	}
	return capture.Step(syntax, f, "capture_trigger", args)
}

// bodyOf returns a trigger or routine from its first BEGIN on. The server does not keep what is before it as it was.
func bodyOf(statement string) string {
	_, body, _ := strings.Cut(strings.ReplaceAll(statement, "\r\n", "\n"), "\nBEGIN\n")
	return body
}

// triggerNames is [dialect.Dialect].TriggerNames.
func triggerNames(f *dialect.Feed) []string { return []string{f.Object("capture")} }

// FeedDown implements [dialect.Core].
func (d database) FeedDown(f *dialect.Feed, t *dialect.Table) []dialect.Step {
	var steps []dialect.Step
	if f.InRows() && t != nil {
		steps = d.steps(f, "drop_row_index")
		for _, name := range f.Added {
			steps = append(steps, d.steps(f, map[string]string{dialect.PositionColumn: "drop_position_column",
				dialect.ShardColumn: "drop_shard_column"}[name])...)
		}
	}
	steps = append(steps,
		capture.Step(syntax, f, "drop_trigger", dialect.Args{"trigger": dialect.SQL(d.triggerName(f))}))
	if f.Outbox {
		steps = append(steps, originalDown(f)...)
		return append(steps, d.steps(f, "drop_outbox", "drop_places", "drop_sequence")...)
	}
	return append(steps, d.steps(f, "drop_changes", "drop_positions", "drop_sequence")...)
}

// BucketIndex implements [dialect.Placing].
func (d database) BucketIndex(ctx context.Context, q dialect.Querier, f *dialect.Feed) ([]dialect.Step, error) {
	var there bool
	if err := dialect.One(ctx, q, syntax, capture.For(syntax, f, "has_bucket_index"), nil, &there); err != nil {
		return nil, err
	}
	steps := d.steps(f, "bucket_index", "drop_bucket_index")
	return dialect.BucketSteps(f, there, steps[0], steps[1]), nil
}

// DeleteRow implements [dialect.Publishing] by two statements: OUTPUT INTO cannot name a table with a trigger, or with
// foreign keys.
func (d database) DeleteRow(f *dialect.Feed) []string {
	b := dialect.NewBuilder(syntax)
	key := make([]string, len(f.Key))
	for i, c := range f.Key {
		key[i] = quote(c.Name) + " = " + param(c, b.Arg(nil))
	}
	statements := []string{dialect.NewBuilder(syntax).Fill(capture.For(syntax, f, "delete_row"),
		dialect.Args{"key": dialect.SQL(strings.Join(key, " AND "))})}
	if f.Capture == feedtype.CaptureTrigger {
		return statements // the trigger records the delete
	}
	b = dialect.NewBuilder(syntax)
	for i, c := range f.Key {
		key[i] = param(c, b.Arg(nil))
	}
	return append(statements, dialect.NewBuilder(syntax).Fill(capture.For(syntax, f, "record_delete"),
		dialect.Args{"values": dialect.SQL(strings.Join(key, ", "))}))
}

// Moved implements [dialect.Renames].
func (d database) Moved(ctx context.Context, q dialect.Querier,
	f *dialect.Feed) (now feedtype.TableName, ok bool, err error) {
	triggers := 0
	if f.Capture == feedtype.CaptureTrigger {
		triggers = 1
	}
	found, err := dialect.All(ctx, q, syntax, capture.For(syntax, f, "moved"), dialect.Args{
		"table": f.Source.Name, "former": f.Source.Schema, "trigger": f.Object("capture"), "own": f.Names.Schema,
		"triggers": triggers}, scanName)
	if err != nil || len(found) != 1 {
		return now, false, err
	}
	return feedtype.TableName{Schema: found[0], Name: f.Source.Name}, true, nil
}
