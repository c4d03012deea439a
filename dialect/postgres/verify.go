package postgres

import (
	"context"
	"errors"
	"fmt"

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

// Verify implements [dialect.Schema]. It checks tables, functions and triggers, also on every partition.
func (d Dialect) Verify(ctx context.Context, q dialect.Querier, f *dialect.Feed, t *dialect.Table) ([]string, error) {
	var problems []string
	for _, table := range keyTables(f) {
		var exists bool
		if err := dialect.QueryRow(ctx, q, "SELECT to_regclass($1) IS NOT NULL", []any{dialect.Qualified(d, table)},
			&exists); err != nil {
			return nil, err
		}
		if !exists {
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
		return append(problems, f.RowProblems(t, position, waiting)...), nil
	}
	suffixes, bodies := d.functions(f)
	written := keyTables(f)[0]
	// pg_trigger.tgtype: row 1, before 2, INSERT 4, DELETE 8, UPDATE 16, TRUNCATE 32
	fires := map[string]int{"capture": 1 + 4 + 8 + 16, "truncate": 2 + 32}
	if f.Outbox {
		fires["capture"] = 1 + 4 + 16
	}
	for _, suffix := range suffixes {
		var state, body string
		err := dialect.QueryRow(ctx, q, `SELECT COALESCE((SELECT CASE WHEN p.prosrc <> $2::text OR NOT p.prosecdef `+
			`OR $5::boolean AND NOT EXISTS (SELECT 1 FROM unnest(p.proconfig) c WHERE c LIKE 'search_path=%') THEN `+
			`'changed'
    WHEN `+mayNotUse+`
      OR NOT has_table_privilege(p.proowner, $3::text, 'INSERT')
      OR NOT has_table_privilege(p.proowner, $4::text, 'SELECT') THEN 'powerless' ELSE 'ok' END
  FROM pg_proc p WHERE p.oid = to_regprocedure($1)), 'missing'),
  COALESCE((SELECT prosrc FROM pg_proc WHERE oid = to_regprocedure($1)), '')`,
			[]any{d.function(f, suffix) + "()", bodies[suffix], dialect.Qualified(d, written),
				dialect.Qualified(d, t.Name),
				ownPath(f, suffix)}, &state, &body)
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
		for _, suffix := range suffixes {
			// tgenabled is O for a trigger that fires only in ordinary sessions, and A for one that also fires
			// in replication.
			var state string
			err := dialect.QueryRow(ctx, q, `SELECT COALESCE((SELECT CASE WHEN g.tgfoid = to_regprocedure($3) `+
				`AND g.tgtype = $4::smallint THEN g.tgenabled::text ELSE 'foreign' END
  FROM pg_trigger g WHERE g.tgrelid = to_regclass($1) AND g.tgname = $2::text), 'missing')`,
				[]any{dialect.Qualified(d, table), f.Object(suffix), d.function(f, suffix) + "()", fires[suffix]},
				&state)
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

// mayNotUse is the condition that the owner of a function (p) may not use the schema of the table $3 or $4.
const mayNotUse = `EXISTS (SELECT 1 FROM pg_class c WHERE c.oid IN (to_regclass($3::text), to_regclass($4::text))
      AND NOT has_schema_privilege(p.proowner, c.relnamespace, 'USAGE'))`

// Repair implements [dialect.Schema]. It first gives rowfeed's key columns the present types of the source's,
// and then runs FeedUp again. All of it is one transaction.
func (d Dialect) Repair(ctx context.Context, q dialect.Querier, f *dialect.Feed,
	t *dialect.Table) ([]dialect.Step, error) {
	unfit, err := d.misfits(ctx, q, f, t)
	if err != nil {
		return nil, err
	}
	var steps []dialect.Step
	for _, m := range unfit {
		steps = append(steps, dialect.Step{Note: "declare the key as the table does",
			SQL: "ALTER TABLE " + dialect.Qualified(d, m.table) + " ALTER COLUMN " + d.Quote(m.column) +
				" TYPE " + m.decl})
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
func (d Dialect) misfits(ctx context.Context, q dialect.Querier, f *dialect.Feed, t *dialect.Table) ([]misfit, error) {
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
