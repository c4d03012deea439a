package dialect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/feedtype"
)

// Qualified quotes a table name, with its schema where it has one.
func Qualified(s Spelling, t feedtype.TableName) string {
	if t.Schema == "" {
		return s.Quote(t.Name)
	}
	return s.Quote(t.Schema) + "." + s.Quote(t.Name)
}

// Ref is a quoted column, behind an alias where one is given.
func Ref(s Spelling, alias, column string) string {
	if alias == "" {
		return s.Quote(column)
	}
	return alias + "." + s.Quote(column)
}

// KeyRefs lists the key columns by their names in the source table.
func KeyRefs(s Spelling, f *Feed, alias string) []string {
	refs := make([]string, len(f.Key))
	for i, c := range f.Key {
		refs[i] = Ref(s, alias, c.Name)
	}
	return refs
}

// StoredRefs lists the key columns by their names in rowfeed's tables.
func StoredRefs(s Spelling, f *Feed, alias string) []string {
	refs := make([]string, len(f.Key))
	for i, c := range f.Key {
		refs[i] = Ref(s, alias, c.Stored)
	}
	return refs
}

// Pairwise joins left and right pairwise: "l1 = r1 AND l2 = r2".
func Pairwise(left, right []string, op, glue string) string {
	parts := make([]string, len(left))
	for i := range left {
		parts[i] = left[i] + op + right[i]
	}
	return strings.Join(parts, glue)
}

// Operator is how key columns are compared by an operator, such as "=".
func (c Column) Operator(op string) string {
	if c.Operators != "" {
		op = `OPERATOR("` + strings.ReplaceAll(c.Operators, `"`, `""`) + `".` + op + ")"
	}
	return " " + op + " "
}

// EqualKeys is the condition that two lists of references to the key columns have equal values.
func EqualKeys(f *Feed, left, right []string) string {
	parts := make([]string, len(left))
	for i, c := range f.Key {
		parts[i] = left[i] + c.Operator("=") + right[i]
	}
	return strings.Join(parts, " AND ")
}

// SourceJoin is the condition that a source row (alias src) belongs to a key of
// one of rowfeed's tables (alias own). Types and collations are the same on both
// sides, so the source's unique index answers it. rowfeed's column stands on the
// left: on SQLite it decides the collation, and it has that of the unique index.
func SourceJoin(s Spelling, f *Feed, src, own string) string {
	return EqualKeys(f, StoredRefs(s, f, own), KeyRefs(s, f, src))
}

// StoredJoin is the condition that rows of two of rowfeed's tables have one key.
func StoredJoin(s Spelling, f *Feed, a, b string) string {
	return EqualKeys(f, StoredRefs(s, f, a), StoredRefs(s, f, b))
}

// OrderedKey is the key as a source row (src) is ordered and compared by it.
func OrderedKey(s Spelling, f *Feed, src string) []string {
	ordered := KeyRefs(s, f, src)
	for i, c := range f.Key {
		ordered[i] += c.Collate
	}
	return ordered
}

// CompareKey compares a row's (t) key with a tuple, in the form that the database's
// index answers whole. Where it answers row values, the spelled-out form would read
// every key with the same first column again: a batch would cost more the further it
// is from that column's first key. Such a comparison has one operator for all
// columns, so it is not used where a key column names the schema of its operators.
func CompareKey(s Spelling, b *Builder, f *Feed, refs []string, values []any, op, lastOp string) string {
	arg := func(i int) string { return s.Param(f.Key[i], b.Arg(values[i])) }
	compare := func(i int, op string) string { return refs[i] + f.Key[i].Operator(op) + arg(i) }
	named := func(c Column) bool { return c.Operators != "" }
	if s.RowValues() && len(refs) > 1 && !slices.ContainsFunc(f.Key, named) {
		args := make([]string, len(refs))
		for i := range args {
			args[i] = arg(i) + f.Key[i].Collate // on this side, since SQLite's index answers bare columns only
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

// NewBuilder starts a statement.
func NewBuilder(s Spelling) *Builder { return &Builder{spelling: s} }

// NewScript starts a statement for a printed script: parameters become literals.
func NewScript(s Spelling) *Builder { return &Builder{spelling: s, literal: true} }

// Arg adds a parameter (a string, an integer or nil in a script) and answers its
// placeholder, or what stands for it in the statement.
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

// Args are the parameters so far.
func (b *Builder) Args() []any { return b.args }

// InsertNew is [Spelling].InsertNew where there is ON CONFLICT.
func InsertNew(table string, columns, values, key []string) string {
	return "INSERT INTO " + table + " (" + strings.Join(columns, ", ") + ") VALUES (" + strings.Join(values, ", ") +
		") ON CONFLICT (" + strings.Join(key, ", ") + ") DO NOTHING"
}
