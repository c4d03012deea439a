package sqlite

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

// steps returns statements of capture.sql without arguments.
func (d database) steps(f *dialect.Feed, names ...string) (steps []dialect.Step) {
	for _, name := range names {
		steps = append(steps, capture.Step(syntax, f, name, nil))
	}
	return steps
}

// quoted returns an argument that is a quoted name.
func (d database) quoted(arg, name string) dialect.Args {
	return dialect.Args{arg: dialect.SQL(quote(name))}
}

// FeedUp implements [dialect.Core]. Its steps run in one transaction, so a table is never without its
// triggers.
func (d database) FeedUp(f *dialect.Feed, t *dialect.Table) ([]dialect.Step, error) {
	steps := append(d.tables(f, t), d.rowColumns(f, t)...)
	triggers, err := d.triggers(f, t)
	if err != nil {
		return nil, err
	}
	for _, tr := range triggers {
		steps = append(steps, capture.Step(syntax, f, "drop_older_trigger", d.quoted("name", tr.name)), tr.step)
	}
	return steps, nil
}

func (d database) tables(f *dialect.Feed, t *dialect.Table) []dialect.Step {
	if f.Outbox {
		return d.steps(f, "outbox", "outbox_index", "places")
	}
	shape := dialect.SQL(" WITHOUT ROWID")
	if isRowID(f, t) {
		shape = ""
	}
	steps := append(d.steps(f, "changes"), capture.Step(syntax, f, "positions", dialect.Args{"shape": shape}))
	steps = append(steps, d.steps(f, "position_index", "deleted_index")...)
	if f.ByBucket() {
		steps = append(steps, d.steps(f, "bucket_index")...)
	}
	if f.Fenced() {
		steps = append(steps, d.steps(f, "fence")...)
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

// BucketIndex implements [dialect.Placing]. The index is made or dropped in one transaction, which keeps other
// writers out.
func (d database) BucketIndex(ctx context.Context, q dialect.Querier, f *dialect.Feed) ([]dialect.Step, error) {
	var there bool
	if err := dialect.One(ctx, q, syntax, capture.For(syntax, f, "has_bucket_index"),
		dialect.Args{"index": f.Object("bucket")},
		&there); err != nil {
		return nil, err
	}
	steps := d.steps(f, "bucket_index", "drop_bucket_index")
	return dialect.BucketSteps(f, there, steps[0], steps[1]), nil
}

// rowIndexes returns the names of the indexes on the user's table for a feed whose rows hold their positions.
func rowIndexes(f *dialect.Feed) (position, waiting string) {
	return f.Object("row_position"), f.Object("row_waiting")
}

// rowColumns adds the columns and indexes that the user's table lacks.
func (d database) rowColumns(f *dialect.Feed, t *dialect.Table) (steps []dialect.Step) {
	if !f.InRows() {
		return nil
	}
	statement := map[string]string{dialect.PositionColumn: "position_column", dialect.ShardColumn: "shard_column"}
	for _, name := range f.MissingColumns(t) {
		steps = append(steps, d.steps(f, statement[name])...)
	}
	return append(steps, d.steps(f, "row_position_index", "row_waiting_index")...)
}

// dropRowColumns drops only the columns that rowfeed added.
func (d database) dropRowColumns(f *dialect.Feed, t *dialect.Table) (steps []dialect.Step) {
	if !f.InRows() && !f.Moved || t == nil {
		return nil
	}
	position, waiting := rowIndexes(f)
	for _, name := range []string{position, waiting} {
		steps = append(steps, capture.Step(syntax, f, "drop_index", d.quoted("index", name)))
	}
	for _, name := range f.Added {
		if t.Column(name) != nil {
			steps = append(steps, capture.Step(syntax, f, "drop_column", d.quoted("column", name)))
		}
	}
	return steps
}

// DeleteRow implements [dialect.Publishing] by two statements: in SQLite, WITH cannot change rows.
func (database) DeleteRow(f *dialect.Feed) []string {
	b := dialect.NewBuilder(syntax)
	key := dialect.SQL(dialect.KeyEquals(syntax, b, f))
	all := []string{b.Fill(capture.For(syntax, f, "delete_row"), dialect.Args{"key": key})}
	if f.Capture == feedtype.CaptureTrigger && !f.Moving {
		return all // the trigger records the delete
	}
	marks := strings.TrimSuffix(strings.Repeat("?, ", len(f.Key)), ", ")
	return append(all, b.Fill(capture.For(syntax, f, "record_delete"), dialect.Args{"key": dialect.SQL(marks)}))
}

type trigger struct {
	name string
	step dialect.Step
}

// triggers returns the triggers as rowfeed makes them.
func (d database) triggers(f *dialect.Feed, t *dialect.Table) (all []trigger, err error) {
	names := []string{"capture_inserts", "capture_updates", "capture_deletes"}
	switch {
	case f.Fenced():
		names = []string{"fence_inserts", "fence_updates"}
	case f.Capture != feedtype.CaptureTrigger:
		return nil, nil
	case f.Outbox:
		names = []string{"record_inserts", "record_updates"}
	}
	for i, name := range names {
		all = append(all, trigger{triggerNames(f)[i], capture.Step(syntax, f, name, nil)})
	}
	if f.Outbox || f.Fenced() {
		return all, nil
	}
	replaced, err := d.replaced(f, t)
	if err != nil || len(replaced) == 0 {
		return all, err
	}
	for i, event := range []string{"insert", "update"} {
		var records []dialect.Built
		for _, same := range replaced {
			records = append(records,
				capture.For(syntax, f, "record_replaced_by_"+event).With(dialect.Args{"same": same}))
		}
		all = append(all, trigger{triggerNames(f)[3+i], capture.Step(syntax, f, "capture_replaced_by_"+event+"s",
			dialect.Args{"records": dialect.Joined(";\n  ", records)})})
	}
	return all, nil
}

// replaced returns, for each unique index, the condition that a row has the values of the row which is about to be
// written. The key's own index is left out.
func (d database) replaced(f *dialect.Feed, t *dialect.Table) (conditions []dialect.Built, err error) {
	for _, ix := range t.Unique {
		if f.KeyedBy(ix) {
			continue
		}
		if _, ok := ix.Names(); !ok {
			return nil, fmt.Errorf("unique index %q is on an expression: rows that "+
				"OR REPLACE removes through it cannot be recorded (use --capture app, or make it an index on columns)",
				ix.Name)
		}
		var same []dialect.Built
		for _, c := range ix.Columns {
			name, args := "same_value", d.quoted("column", c.Name)
			args["collation"] = dialect.SQL(c.Collation)
			if column := t.Column(c.Name); column != nil && column.Default != "" {
				name, args["default"] = "same_value_or_default", dialect.SQL(column.Default)
			}
			same = append(same, capture.For(syntax, f, name).With(args))
		}
		conditions = append(conditions, dialect.Joined(" AND ", same))
	}
	if t.RowID != "" {
		conditions = append(conditions,
			capture.For(syntax, f, "same_rowid").With(dialect.Args{"rowid": dialect.SQL(t.RowID)}))
	}
	return conditions, nil
}

// triggerNames is [dialect.Dialect].TriggerNames. It also names triggers that the table may not need.
func triggerNames(f *dialect.Feed) (names []string) {
	for _, suffix := range []string{"insert", "update", "delete", "insert_replace", "update_replace"} {
		names = append(names, f.Object(suffix))
	}
	return names
}

// FeedDown implements [dialect.Core]. SQLite drops the triggers with their table, so the steps have IF
// EXISTS.
func (d database) FeedDown(f *dialect.Feed, t *dialect.Table) []dialect.Step {
	var steps []dialect.Step
	for _, name := range triggerNames(f) {
		steps = append(steps, capture.Step(syntax, f, "drop_trigger", d.quoted("name", name)))
	}
	if f.Fenced() || f.Moved {
		steps = append(steps, d.steps(f, "drop_fence")...)
	}
	steps = append(steps, d.dropRowColumns(f, t)...) // no column that a trigger names can be dropped
	if f.Outbox {
		return append(steps, d.steps(f, "drop_outbox", "drop_places")...)
	}
	return append(steps, d.steps(f, "drop_changes", "drop_positions")...)
}

// Verify implements [dialect.Core]. SQLite keeps the text of every trigger, which Verify compares with that
// of FeedUp. If a unique index was added since, the text of the triggers for OR REPLACE differs.
func (d database) Verify(ctx context.Context, q dialect.Querier, f *dialect.Feed, t *dialect.Table) ([]string, error) {
	have := map[string]string{}
	_, err := dialect.All(ctx, q, syntax, statement(schema, "made"), nil,
		func(rows dialect.Rows) (struct{}, error) {
			var name, text string
			err := rows.Scan(&name, &text)
			have[name] = text
			return struct{}{}, err
		})
	if err != nil {
		return nil, err
	}
	var problems []string
	tables := []feedtype.TableName{f.Changes(), f.Positions()}
	switch {
	case f.Outbox:
		tables = f.Tables()
	case f.Fenced():
		tables = append(tables, f.Batch())
	}
	for _, table := range tables {
		if _, ok := have[table.Name]; !ok {
			problems = append(problems, fmt.Sprintf("table %s is missing", table.Name))
		}
	}
	if f.Capture != feedtype.CaptureTrigger {
		position, waiting := rowIndexes(f)
		problems = append(problems, f.RowProblems(t, position, waiting)...)
	}
	triggers, err := d.triggers(f, t)
	if err != nil {
		return append(problems, err.Error()), nil
	}
	for _, tr := range triggers {
		switch text, ok := have[tr.name]; {
		case !ok:
			problems = append(problems, fmt.Sprintf("trigger %s is missing", tr.name))
		case !dialect.SameText(text, tr.step.SQL):
			problems = append(problems, fmt.Sprintf("trigger %s is not as it should be", tr.name))
		}
	}
	return problems, nil
}

// Repair implements [dialect.Core]. It runs FeedUp again, in one transaction, so no change goes uncaptured.
func (d database) Repair(_ context.Context, _ dialect.Querier, f *dialect.Feed,
	t *dialect.Table) ([]dialect.Step, error) {
	return d.FeedUp(f, t)
}
