package sqlserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// keyTables returns the feed's tables that contain its key. Triggers write into the first one.
func keyTables(f *dialect.Feed) []feedtype.TableName {
	if f.Outbox {
		return []feedtype.TableName{f.Records(), f.Placed()}
	}
	return []feedtype.TableName{f.Changes(), f.Positions()}
}

// Verify implements [dialect.Core].
func (d database) Verify(ctx context.Context, q dialect.Querier, f *dialect.Feed, t *dialect.Table) ([]string, error) {
	var problems []string
	for _, table := range keyTables(f) {
		var missing bool
		if err := dialect.One(ctx, q, syntax, statement(capture, "missing"),
			dialect.Args{"object": dialect.Qualified(syntax, table)}, &missing); err != nil {
			return nil, err
		}
		if missing {
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
	if f.Outbox {
		found, err := originalProblems(ctx, q, f)
		if err != nil {
			return nil, err
		}
		problems = append(problems, found...)
	}
	if f.Capture == feedtype.CaptureTrigger {
		found, err := d.triggerProblems(ctx, q, f, t)
		if err != nil {
			return nil, err
		}
		problems = append(problems, found...)
	}
	problems = append(problems, f.RowProblems(t, rowIndex(f))...)
	lacks, err := d.lacks(ctx, q)
	if err == nil && lacks != nil { // it was met when the feed was made
		problems = append(problems, lacks.String())
	}
	return problems, err
}

// triggerProblems compares the feed's trigger with the one that FeedUp makes.
func (d database) triggerProblems(ctx context.Context, q dialect.Querier, f *dialect.Feed,
	t *dialect.Table) (problems []string, err error) {
	var text string
	var disabled, instead, nulls, identifiers, asItsOwner, chained, nested bool
	var events int
	err = dialect.One(ctx, q, syntax, capture.For(syntax, f, "trigger_state"), dialect.Args{
		"trigger": d.triggerName(f), "source": dialect.Qualified(syntax, f.Source),
		"written": dialect.Qualified(syntax, keyTables(f)[0]), "sequence": dialect.Qualified(syntax, f.Routine("seq")),
	}, &text, &disabled, &instead, &nulls, &identifiers, &asItsOwner, &events, &chained, &nested)
	name := fmt.Sprintf("trigger %s on table %s", f.Object("capture"), t.Name)
	if errors.Is(err, sql.ErrNoRows) {
		return []string{name + " is missing: no write is recorded"}, nil
	}
	if err != nil {
		return nil, err
	}
	fires := 3
	if f.Outbox {
		fires = 2
	}
	switch {
	case disabled:
		problems = append(problems, name+" is disabled: no write is recorded")
	case text == "":
		problems = append(problems, "this login may not read the text of "+name+": grant it VIEW DEFINITION")
	case instead || events != fires || !nulls || !identifiers ||
		!dialect.SameText(bodyOf(text), bodyOf(d.trigger(f).SQL)) || asOwner(f) && !asItsOwner:
		problems = append(problems, name+" is not the one that rowfeed makes")
	case !chained:
		problems = append(problems, fmt.Sprintf("table %s, table %s and sequence %s have different owners, so %s "+
			"has no right on what the trigger writes: give them one owner", t.Name, keyTables(f)[0], f.Routine("seq"),
			map[bool]string{false: "a writer", true: "the trigger's owner"}[asItsOwner]))
	}
	if !nested {
		problems = append(problems, "the server's option `nested triggers` is 0: writes that other triggers make on "+
			"table "+t.Name.String()+" are not recorded; set it to 1 with sp_configure")
	}
	return problems, nil
}

// Strays implements [dialect.Copies].
func (d database) Strays(ctx context.Context, q dialect.Querier, f *dialect.Feed, _ *dialect.Table) ([]string, error) {
	if f.Capture != feedtype.CaptureTrigger {
		return nil, nil
	}
	written := keyTables(f)[0]
	return dialect.All(ctx, q, syntax, capture.For(syntax, f, "strays"), dialect.Args{
		"source": dialect.Qualified(syntax, f.Source), "written": dialect.Qualified(syntax, written),
	}, func(rows dialect.Rows) (string, error) {
		var table feedtype.TableName
		var trigger string
		err := rows.Scan(&table.Schema, &table.Name, &trigger)
		return fmt.Sprintf("trigger %s on table %s writes into table %s of this feed: drop the trigger", trigger, table,
			written), err
	})
}

// Repair implements [dialect.Core]. The trigger is made again in its place, so that no write is left out. A key's
// columns are first declared as the source declares them now.
func (d database) Repair(ctx context.Context, q dialect.Querier, f *dialect.Feed,
	t *dialect.Table) ([]dialect.Step, error) {
	unfit, err := d.misfits(ctx, q, f, t)
	if err != nil {
		return nil, err
	}
	var steps []dialect.Step
	for i, table := range keyTables(f) {
		name := dialect.SQL(dialect.Qualified(syntax, table))
		var changed []dialect.Step
		for _, m := range unfit {
			if m.table == table {
				changed = append(changed, capture.Step(syntax, f, "declare_key", dialect.Args{"table": name,
					"column": dialect.SQL(quote(m.column)), "type": dialect.SQL(m.decl)}))
			}
		}
		if i > 0 && len(changed) > 0 { // only the second table has the key as its primary key
			key, add := "positions", "add_position_key"
			if f.Outbox {
				key, add = "places", "add_place_key"
			}
			steps = append(steps, capture.Step(syntax, f, "drop_key", dialect.Args{"table": name,
				"constraint": dialect.SQL(quote(f.Object(key)))}))
			changed = append(changed, d.steps(f, add)...)
		}
		steps = append(steps, changed...)
	}
	up, err := d.FeedUp(f, t)
	return append(steps, up...), err
}

// misfit is a key column that one of rowfeed's tables declares in another way than the source.
type misfit struct {
	table        feedtype.TableName
	column, decl string
}

// misfits compares the declarations of the key columns. If a key fits the source but not rowfeed's tables, the user's
// write fails.
func (d database) misfits(ctx context.Context, q dialect.Querier, f *dialect.Feed, t *dialect.Table) (all []misfit,
	err error) {
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
