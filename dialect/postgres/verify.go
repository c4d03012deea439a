package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// keyTables returns the feed's tables that contain its key. Triggers write into the first one.
func keyTables(f *dialect.Feed) []feedtype.TableName {
	if f.Outbox {
		return f.Tables()
	}
	return []feedtype.TableName{f.Changes(), f.Positions()}
}

// Verify implements [dialect.Core]. It checks tables, functions and triggers, also on every partition.
func (d database) Verify(ctx context.Context, q dialect.Querier, f *dialect.Feed, t *dialect.Table) ([]string, error) {
	var problems []string
	for _, table := range keyTables(f) {
		var there bool
		if err := dialect.One(ctx, q, syntax, statement(capture, "exists"),
			dialect.Args{"table": dialect.Qualified(syntax, table)}, &there); err != nil {
			return nil, err
		}
		if !there {
			problems = append(problems, fmt.Sprintf("table %s is missing", table))
		}
	}
	if len(problems) > 0 {
		return problems, nil
	}
	unfit, err := d.misfits(ctx, q, f, t)
	if err != nil {
		return nil, err
	}
	for _, m := range unfit {
		problems = append(problems, fmt.Sprintf("column %s of table %s is not %s, as in table %s", m.column, m.table,
			m.decl, t.Name))
	}
	for _, key := range f.Key {
		if c := t.Column(key.Name); c != nil && c.Operators != key.Operators {
			problems = append(problems,
				fmt.Sprintf("the operators of key column %q are in schema %q now, and were in %q", key.Name,
					c.Operators, key.Operators))
		}
	}
	if f.Capture != feedtype.CaptureTrigger {
		position, waiting := rowIndexes(f)
		fence, err := d.fenceProblems(ctx, q, f)
		return slices.Concat(problems, f.RowProblems(t, position, waiting), fence), err
	}
	written := keyTables(f)[0]
	// pg_trigger.tgtype: see the statement trigger_state
	fires := map[string]int{"capture": 1 + 4 + 8 + 16, "truncate": 2 + 32}
	if f.Outbox {
		fires["capture"] = 1 + 4 + 16
	}
	for _, suffix := range suffixes(f) {
		var state, body string
		err := dialect.One(ctx, q, syntax, capture.For(syntax, f, "function_state"), dialect.Args{
			"function": d.function(f, suffix) + "()", "own_path": ownPath(f, suffix),
			"written": dialect.Qualified(syntax, written), "source": dialect.Qualified(syntax, t.Name),
		}, &state, &body)
		if state != "missing" && !dialect.SameText(body, bodyOf(d.functionStep(f, suffix).SQL)) {
			state = "changed"
		}
		switch {
		case err != nil:
			return nil, err
		case state == "missing":
			problems = append(problems, fmt.Sprintf("function %s is missing", f.Object(suffix)))
		case state == "changed":
			problems = append(problems, d.differs(f, f.Object(suffix), body, written,
				fmt.Sprintf("function %s is not as it should be", f.Object(suffix)), "writes of table "+
					t.Name.String()+" fail"))
		case state == "powerless":
			problems = append(problems, fmt.Sprintf("the owner of function %s may not read %s or write %s: grant it, "+
				"or change the function's owner", f.Object(suffix), t.Name, written))
		}
	}
	tables := []feedtype.TableName{f.Source}
	for _, p := range t.Partitions {
		tables = append(tables, p.Name)
	}
	for i, table := range tables {
		for _, suffix := range suffixes(f) {
			var state string
			err := dialect.One(ctx, q, syntax, capture.For(syntax, f, "trigger_state"), dialect.Args{
				"table": dialect.Qualified(syntax, table), "trigger": f.Object(suffix),
				"function": d.function(f, suffix) + "()", "fires": fires[suffix],
			}, &state)
			switch {
			case err != nil:
				return nil, err
			case state == "missing" && suffix == "truncate" && i > 0: // reported by NewPartitions
			case state == "missing":
				problems = append(problems, fmt.Sprintf("trigger %s on %s is missing", f.Object(suffix), table))
			case state == "O":
				problems = append(problems, fmt.Sprintf("trigger %s on %s does not fire for replicated rows",
					f.Object(suffix), table))
			case state != "A":
				problems = append(problems,
					fmt.Sprintf("trigger %s on %s is disabled, fires on other events or runs another function",
						f.Object(suffix), table))
			}
		}
	}
	return problems, nil
}

// fenceProblems says what a fence lacks.
func (d database) fenceProblems(
	ctx context.Context, q dialect.Querier, f *dialect.Feed,
) (problems []string, err error) {
	if !f.Fenced() {
		return nil, nil
	}
	function := d.function(f, "fence") + "()"
	var body string
	if err := dialect.One(ctx, q, syntax, capture.For(syntax, f, "fence_body"), dialect.Args{"function": function},
		&body); err != nil {
		return nil, err
	}
	if !dialect.SameText(body, bodyOf(d.step(f, "fence_function", nil).SQL)) {
		problems = append(problems, fmt.Sprintf("function %s is missing or not as it should be", f.Object("fence")))
	}
	// pg_trigger.tgtype: see the statement trigger_state
	for suffix, fires := range map[string]int{"fence_insert": 1 + 4, "fence_update": 1 + 16} {
		var state string
		err := dialect.One(ctx, q, syntax, capture.For(syntax, f, "trigger_state"), dialect.Args{
			"table": dialect.Qualified(syntax, f.Source), "trigger": f.Object(suffix), "function": function,
			"fires": fires,
		}, &state)
		switch {
		case err != nil:
			return nil, err
		case state == "missing":
			problems = append(problems, fmt.Sprintf("trigger %s on %s is missing", f.Object(suffix), f.Source))
		case state != "O" && state != "A":
			problems = append(problems, fmt.Sprintf("trigger %s on %s is disabled, fires on other events or runs "+
				"another function", f.Object(suffix), f.Source))
		}
	}
	return problems, nil
}

// Repair implements [dialect.Core]. It first gives rowfeed's key columns the present types of the source's,
// and then runs FeedUp again. All of it is one transaction.
func (d database) Repair(ctx context.Context, q dialect.Querier, f *dialect.Feed,
	t *dialect.Table) ([]dialect.Step, error) {
	unfit, err := d.misfits(ctx, q, f, t)
	if err != nil {
		return nil, err
	}
	var steps []dialect.Step
	for _, m := range unfit {
		steps = append(steps, d.step(f, "declare_key", dialect.Args{
			"table":  dialect.SQL(dialect.Qualified(syntax, m.table)),
			"column": dialect.SQL(quote(m.column)), "type": dialect.SQL(m.decl),
		}))
	}
	up, err := d.FeedUp(f, t)
	return append(steps, up...), err
}

// misfit is a key column that one of rowfeed's tables declares in another way than the source.
type misfit struct {
	table        feedtype.TableName
	column, decl string
}

// misfits compares the declarations of the key columns. If a key fits the source but not rowfeed's tables, the
// user's write fails.
func (d database) misfits(ctx context.Context, q dialect.Querier, f *dialect.Feed, t *dialect.Table) ([]misfit, error) {
	var all []misfit
	for _, name := range keyTables(f) {
		own, err := d.Describe(ctx, q, name)
		if errors.Is(err, dialect.ErrNoTable) {
			continue // FeedUp makes the table
		}
		if err != nil {
			return nil, err
		}
		for _, key := range f.Key {
			have, want := own.Column(key.Stored), t.Column(key.Name)
			if have != nil && want != nil && have.Decl != want.Decl {
				all = append(all, misfit{name, key.Stored, want.Decl})
			}
		}
	}
	return all, nil
}

// formerSchema returns the schema that a function's body names for one of rowfeed's tables, if that is not the
// table's present schema. If a schema is renamed, its functions move with it, but their bodies stay as they
// are.
func (d database) formerSchema(body string, table feedtype.TableName) string {
	before, _, found := strings.Cut(body, "."+quote(table.Name))
	if !found || !strings.HasSuffix(before, `"`) {
		return ""
	}
	before = strings.ReplaceAll(strings.TrimSuffix(before, `"`), `""`, "\x00")
	schema := strings.ReplaceAll(before[strings.LastIndexByte(before, '"')+1:], "\x00", `"`)
	if schema == table.Schema {
		return ""
	}
	return schema
}

// differs says why a function is not the one that rowfeed makes.
func (d database) differs(
	f *dialect.Feed, function, body string, table feedtype.TableName, otherwise, consequence string,
) string {
	former := d.formerSchema(body, table)
	if former == "" {
		return otherwise
	}
	return fmt.Sprintf("function %s names schema %s, and rowfeed's tables are in schema %s, as when the schema was "+
		"renamed: %s; run `rowfeed feed upgrade %s --schema %s`",
		function, former, f.Names.Schema, consequence, f.Name, f.Names.Schema)
}
