package dialect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/feedtype"
)

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
