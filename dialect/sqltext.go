package dialect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/feedtype"
)

// Spelling is how a database spells the parts of SQL statements.
type Spelling interface {
	// Name returns "sqlite", "postgres" or "mysql".
	Name() string
	// Quote quotes one identifier.
	Quote(ident string) string
	// Placeholder returns the n-th parameter of a statement, n from 1.
	Placeholder(n int) string
	// Literal quotes a string as a literal.
	Literal(text string) string
	// Inline returns a parameter's value as text of the statement, on databases where a statement without
	// parameters saves a round trip. ok is false if the value must be sent as a parameter.
	Inline(v any) (text string, ok bool)
	// RowValues tells whether the database uses an index for (a, b) > (?, ?).
	RowValues() bool
	// Frame returns the statements before and after those of a printed script. With them the script has its
	// full effect or none, or it can be run again, and it never blocks writers for long.
	Frame() (first, last []Step)
	// Terminate ends a statement in a script for the database's own client.
	Terminate(statement string) string
	// Now returns an expression for the database's own clock: an integer, microseconds since the Unix epoch. It
	// depends neither on the session's time zone nor on the start of the transaction.
	Now() string
	// Value returns an expression that reads ref, a reference to column c. It loses nothing, whatever the
	// driver's settings. The driver returns a Go value in the raw form of c.Kind.
	Value(c Column, ref string) string
	// Param wraps a placeholder. A value that Value has read of column c is then the same value in the
	// statement.
	Param(c Column, placeholder string) string
	// InsertNew returns an INSERT into a quoted table. It does nothing if a row has the same values in the key
	// columns. It waits for an open transaction that inserts such a row, and never makes the transaction
	// unusable. The rows affected are 1 or 0.
	InsertNew(table string, columns, values, key []string) string
	// Upsert returns an INSERT of rows into a quoted table. If a row has the same key, Upsert sets all its
	// columns. The key is the columns of one unique index of the table. A value that another row has in another
	// unique index is an error of class [ClassDuplicate], unless the database turns that row into the new one.
	Upsert(table string, columns []string, rows [][]string, key []string) string
	// Store wraps a placeholder for a value from elsewhere that is written into column c. Dates and times are
	// text, such as 2006-01-02 15:04:05.999999; those with a time zone are in UTC. The database refuses a value
	// that does not fit the column, as far as its settings say so.
	Store(c Column, placeholder string) string
}

// Step is a statement and the reason for it. --print shows both.
type Step struct {
	Note string
	SQL  string
	// Commit asks for a commit after the statement, which holds a lock that keeps readers out. The caller then
	// gets the list of steps again, and runs what is left.
	Commit bool
}

// Qualified quotes a table's name, with its schema if it has one.
func Qualified(s Spelling, t feedtype.TableName) string {
	if t.Schema == "" {
		return s.Quote(t.Name)
	}
	return s.Quote(t.Schema) + "." + s.Quote(t.Name)
}

// Ref returns a quoted column, with an alias in front of it if that is not empty.
func Ref(s Spelling, alias, column string) string {
	if alias == "" {
		return s.Quote(column)
	}
	return alias + "." + s.Quote(column)
}

// KeyRefs returns the key columns by their names in the source table.
func KeyRefs(s Spelling, f *Feed, alias string) []string {
	refs := make([]string, len(f.Key))
	for i, c := range f.Key {
		refs[i] = Ref(s, alias, c.Name)
	}
	return refs
}

// StoredRefs returns the key columns by their names in rowfeed's tables.
func StoredRefs(s Spelling, f *Feed, alias string) []string {
	refs := make([]string, len(f.Key))
	for i, c := range f.Key {
		refs[i] = Ref(s, alias, c.Stored)
	}
	return refs
}

// Pairwise combines left and right: "l1 = r1 AND l2 = r2".
func Pairwise(left, right []string, op, glue string) string {
	parts := make([]string, len(left))
	for i := range left {
		parts[i] = left[i] + op + right[i]
	}
	return strings.Join(parts, glue)
}

// Operator returns an operator, such as "=", as statements spell it between two values of this key column.
func (c Column) Operator(op string) string {
	if c.Operators != "" {
		op = `OPERATOR("` + strings.ReplaceAll(c.Operators, `"`, `""`) + `".` + op + ")"
	}
	return " " + op + " "
}

// EqualKeys returns the condition that two lists of references to the key columns have equal values.
func EqualKeys(f *Feed, left, right []string) string {
	parts := make([]string, len(left))
	for i, c := range f.Key {
		parts[i] = left[i] + c.Operator("=") + right[i]
	}
	return strings.Join(parts, " AND ")
}

// SourceJoin returns the condition that a row of the source (alias src) has the key of a row in one of
// rowfeed's tables (alias own). Types and collations are the same on both sides, so the unique index of the
// source is used. rowfeed's column is on the left: on SQLite the left side decides the collation, and rowfeed's
// column has that of the index.
func SourceJoin(s Spelling, f *Feed, src, own string) string {
	return EqualKeys(f, StoredRefs(s, f, own), KeyRefs(s, f, src))
}

// StoredJoin returns the condition that rows of two of rowfeed's tables have the same key.
func StoredJoin(s Spelling, f *Feed, a, b string) string {
	return EqualKeys(f, StoredRefs(s, f, a), StoredRefs(s, f, b))
}

// OrderedKey returns the key columns of a source row (alias src) as they are compared and ordered.
func OrderedKey(s Spelling, f *Feed, src string) []string {
	ordered := KeyRefs(s, f, src)
	for i, c := range f.Key {
		ordered[i] += c.Collate
	}
	return ordered
}

// CompareKey compares the key of a row (alias t) with values, in the form for which the database uses an index
// as a whole. If the database does so for row values, the other form would read all keys with the same first
// column again: a batch would cost more the further it is from that column's first key. A comparison of row
// values has one operator for all columns, so it is not used if a key column names the schema of its operators.
func CompareKey(s Spelling, b *Builder, f *Feed, refs []string, values []any, op, lastOp string) string {
	arg := func(i int) string { return s.Param(f.Key[i], b.Arg(values[i])) }
	compare := func(i int, op string) string { return refs[i] + f.Key[i].Operator(op) + arg(i) }
	named := func(c Column) bool { return c.Operators != "" }
	if s.RowValues() && len(refs) > 1 && !slices.ContainsFunc(f.Key, named) {
		args := make([]string, len(refs))
		for i := range args {
			args[i] = arg(i) + f.Key[i].Collate // on this side, because SQLite uses an index only for bare columns
		}
		return "(" + strings.Join(KeyRefs(s, f, "t"), ", ") + ") " + lastOp + " (" + strings.Join(args, ", ") + ")"
	}
	var text string
	if len(refs) > 1 {
		text = compare(0, op+"=") + " AND "
	}
	for i := range refs {
		if i == len(refs)-1 {
			text += compare(i, lastOp)
			break
		}
		text += "(" + compare(i, op) + " OR (" + compare(i, "=") + " AND "
	}
	return text + strings.Repeat("))", len(refs)-1)
}

// Builder collects a statement's parameters in the order of its text.
type Builder struct {
	spelling Spelling
	args     []any
	literal  bool
}

// NewBuilder begins a statement.
func NewBuilder(s Spelling) *Builder { return &Builder{spelling: s} }

// NewScript begins a statement of a printed script: its parameters become literals.
func NewScript(s Spelling) *Builder { return &Builder{spelling: s, literal: true} }

// Arg adds a parameter and returns its placeholder, or the value itself as text of the statement. In a script
// the value must be a string, an integer or nil.
func (b *Builder) Arg(v any) string {
	if b.literal {
		switch v := v.(type) {
		case nil:
			return "NULL"
		case string:
			return b.spelling.Literal(v)
		default:
			return fmt.Sprint(v)
		}
	}
	if text, ok := b.spelling.Inline(v); ok {
		return text
	}
	b.args = append(b.args, v)
	return b.spelling.Placeholder(len(b.args))
}

// Args returns the parameters so far.
func (b *Builder) Args() []any { return b.args }

// InsertNew implements [Spelling].InsertNew for databases with ON CONFLICT.
func InsertNew(table string, columns, values, key []string) string {
	return "INSERT INTO " + table + " (" + strings.Join(columns, ", ") + ") VALUES (" + strings.Join(values, ", ") +
		") ON CONFLICT (" + strings.Join(key, ", ") + ") DO NOTHING"
}

// Upsert implements [Spelling].Upsert for databases with ON CONFLICT.
func Upsert(table string, columns []string, rows [][]string, key []string) string {
	var set []string
	for _, c := range columns {
		if !slices.Contains(key, c) {
			set = append(set, c+" = excluded."+c)
		}
	}
	action := "NOTHING"
	if len(set) > 0 {
		action = "UPDATE SET " + strings.Join(set, ", ")
	}
	return InsertRows(table, columns, rows) + " ON CONFLICT (" + strings.Join(key, ", ") + ") DO " + action
}

// InsertRows returns an INSERT of rows, each of which is a list of expressions.
func InsertRows(table string, columns []string, rows [][]string) string {
	var b strings.Builder
	b.WriteString("INSERT INTO " + table + " (" + strings.Join(columns, ", ") + ") VALUES ")
	for i, row := range rows {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("(" + strings.Join(row, ", ") + ")")
	}
	return b.String()
}
