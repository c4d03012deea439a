package suite

import (
	"database/sql"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// Saved is a copy of the feed kv: the rows of its source, its positions, its sequence and its terms. At the time of the
// copy all changes must be published.
type Saved struct{ tables []savedTable }

type savedTable struct {
	name    string
	columns []string
	rows    [][]any
}

// Save copies the feed kv into memory, in one snapshot.
func (x *Env) Save() *Saved {
	x.Helper()
	of := "*"
	if x.Capture == feedtype.CaptureColumn { // * can leave out these columns
		of = strings.Join(append(x.OwnColumns("kv"), x.Dialect.Quote(dialect.PositionColumn),
			x.Dialect.Quote(dialect.ShardColumn)), ", ")
	}
	tx := x.Begin(sql.LevelRepeatableRead)
	s := &Saved{tables: []savedTable{x.saveTable(tx, "rowfeed_sequences", "*"), x.saveTable(tx, "rowfeed_terms", "*"),
		x.saveTable(tx, "kv", of), x.saveTable(tx, "rowfeed_positions_kv", "*")}}
	if err := tx.Rollback(); err != nil {
		x.Fatal(err)
	}
	return s
}

func (x *Env) saveTable(tx *sql.Tx, name, columns string) savedTable {
	x.Helper()
	rows, err := tx.QueryContext(x.Ctx, "SELECT "+columns+" FROM "+name)
	if err != nil {
		x.Fatal(err)
	}
	defer rows.Close()
	s := savedTable{name: name}
	if s.columns, err = rows.Columns(); err != nil {
		x.Fatal(err)
	}
	for rows.Next() {
		values, dest := make([]any, len(s.columns)), make([]any, len(s.columns))
		for i := range dest {
			dest[i] = &values[i]
		}
		if err := rows.Scan(dest...); err != nil {
			x.Fatal(err)
		}
		for i, v := range values {
			if text, ok := v.([]byte); ok { // as MySQL's driver returns numbers, too
				values[i] = string(text)
			}
		}
		s.rows = append(s.rows, values)
	}
	if err := rows.Err(); err != nil {
		x.Fatal(err)
	}
	return s
}

// Load puts a copy of the feed kv into the database, in one transaction on a connection of its own, as loading a dump
// into a running server does. Connections of other clients, and their processes, go on. The database may be another
// one than that of the copy, with a feed kv made in the same way.
func (x *Env) Load(s *Saved) {
	x.Helper()
	tx := x.Begin(sql.LevelReadCommitted)
	for _, table := range s.tables {
		x.loadTable(tx, table)
	}
	// A source with triggers has recorded that its rows were written.
	if _, err := tx.ExecContext(x.Ctx, "DELETE FROM rowfeed_changes_kv"); err != nil {
		x.Fatal(err)
	}
	x.Commit(tx)
}

func (x *Env) loadTable(tx *sql.Tx, s savedTable) {
	x.Helper()
	quoted := make([]string, len(s.columns))
	for i, column := range s.columns {
		quoted[i] = x.Dialect.Quote(column)
	}
	exec := func(statement string, args []any) {
		x.Helper()
		if _, err := tx.ExecContext(x.Ctx, statement, args...); err != nil {
			x.Fatalf("%s: %v", statement, err)
		}
	}
	if s.name == "rowfeed_sequences" { // a publisher waits for this row, and would not find a new one
		b := dialect.NewBuilder(x.Dialect.Syntax)
		sets := make([]string, len(quoted))
		for i, column := range quoted {
			sets[i] = column + " = " + b.Arg(s.rows[0][i])
		}
		exec("UPDATE "+s.name+" SET "+strings.Join(sets, ", "), b.Args())
		return
	}
	exec("DELETE FROM "+s.name, nil)
	for _, row := range s.rows {
		b := dialect.NewBuilder(x.Dialect.Syntax)
		values := make([]string, len(row))
		for i, v := range row {
			values[i] = b.Arg(v)
		}
		into := s.name + " (" + strings.Join(quoted, ", ") + ")"
		exec("INSERT INTO "+into+" VALUES ("+strings.Join(values, ", ")+")", b.Args())
	}
}

// WithTermsOf returns s with the terms of another copy, as a dump that is not one snapshot can have them.
func (s *Saved) WithTermsOf(other *Saved) *Saved {
	torn := &Saved{tables: slices.Clone(s.tables)}
	for i, table := range other.tables {
		if table.name == "rowfeed_terms" {
			torn.tables[i] = table
		}
	}
	return torn
}
