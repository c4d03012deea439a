package dialect

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/feedtype"
)

// Syntax is how a database spells the parts of SQL statements.
type Syntax struct {
	// Name is "sqlite", "postgres", "mysql" or "sqlserver".
	Name string
	// Quote quotes one identifier.
	Quote func(ident string) string
	// Placeholder returns the n-th parameter of a statement, n from 1.
	Placeholder func(n int) string
	// Literal quotes a string as a literal.
	Literal func(text string) string
	// Inline returns a parameter's value as text of the statement, on databases where a statement without
	// parameters saves a round trip. ok is false if the value must be sent as a parameter.
	Inline func(v any) (text string, ok bool)
	// RowValues says that the database uses an index for (a, b) > (?, ?).
	RowValues bool
	// These three are nil on databases that have LIMIT.

	// Limit returns the end of a statement with ORDER BY that returns at most rows rows. rows is a number or a
	// parameter.
	Limit func(rows string) string
	// Skip returns the end of a statement with ORDER BY that skips rows rows and returns the next one.
	Skip func(rows string) string
	// AtMost is like Limit, for a statement without ORDER BY.
	AtMost func(rows string) string
	// Count is what counts the rows of a large table. If it is empty, count(*) does.
	Count string
	// DrawsUncut says that an INSERT whose target draws numbers by a default accepts no limit, and an order only behind
	// the whole statement. On other databases a limit that cuts nothing off makes the database run the query before
	// it draws the first number.
	DrawsUncut bool
	// SkipLocked is a clause at the end of a SELECT that makes it leave out rows that another transaction has locked.
	// SkipLockedHint is one that follows the name of the table. A database with row locks has one of the two.
	SkipLocked, SkipLockedHint string
	// IsInteger is a condition that a value is an integer. It is nil on databases where a column of an integer type
	// holds nothing else.
	IsInteger func(ref string) string
	// Now is an expression for the database's own clock: an integer, microseconds since the Unix epoch. It depends
	// neither on the session's time zone nor on the start of the transaction.
	Now string
	// Frame returns the statements before and after those of a printed script. With them the script has its
	// full effect or none, or it can be run again, and it never blocks writers for long.
	Frame func() (first, last []Step)
	// Terminate ends a statement in a script for the database's own client.
	Terminate func(statement string) string
	// InsertNew returns an INSERT into a quoted table. It does nothing if a row has the same values in the key
	// columns. It waits for an open transaction that inserts such a row, and never makes the transaction
	// unusable. The rows affected are 1 or 0.
	InsertNew func(table string, columns, values, key []string) string
	// Upsert returns an INSERT of rows into a quoted table. If a row has the same key, Upsert sets all its
	// columns. The key is the columns of one unique index of the table. A value that another row has in another
	// unique index is an error of class [ClassDuplicate], unless the database turns that row into the new one.
	Upsert func(table string, columns []string, rows [][]string, key []string) string
	// Reads are the statements about a feed that only read. This package runs these:
	//
	//	page, page_of_part, page_of_rows, blocking_page, outbox_page   with their parts bucket, one_of_buckets,
	//	                  of_part, row_of_part, in_order, in_any_order, signature, signature_if_served,
	//	                  signature_here and signature_anywhere: see [ReadInOrder]
	//	greatest_ulid     of :shard
	//	newest_of_shard   the highest order_sequence of the records of :shard
	//	first_shard       the lowest shard with records
	//	next_shard        the same :above a shard
	Reads *Statements
	// Scan returns scans of changes or records with some numbers, by the index that fits. Each is the FROM and WHERE
	// of a query. Together, these queries find every number that is among the given ones. of is
	//
	//	changes, records  by the primary key; the query orders by it
	//	of_shard          by shard and order_sequence, with the arguments :shard and :but, a condition; ordered
	//
	// It is "all_" and this name that begins the name of the statement for all numbers.
	Scan func(s *Syntax, f *Feed, of string, among Seqs, args Args) []Built
	// MaxAnswered and MaxDeclared are the maximum numbers of columns in the answer of a statement, and in a table.
	MaxAnswered, MaxDeclared int
	// MaxParams is the maximum number of parameters of a statement.
	MaxParams int
	Codec
}

// limited returns the end of a statement with ORDER BY that returns at most rows rows.
func (s *Syntax) limited(rows string) string {
	if s.Limit != nil {
		return s.Limit(rows)
	}
	return "LIMIT " + rows
}

// atMost is limited for a statement without ORDER BY.
func (s *Syntax) atMost(rows string) string {
	if s.AtMost != nil {
		return s.AtMost(rows)
	}
	return "LIMIT " + rows
}

// Uncut adds the argument :all to those of a statement with {{uncut ":all"}}: the largest number.
func (s *Syntax) Uncut(args Args) Args {
	if !s.DrawsUncut {
		args["all"] = int64(math.MaxInt64)
	}
	return args
}

// Codec is how a database reads and writes the values of columns.
type Codec struct {
	// Value returns an expression that reads ref, a reference to column c. It loses nothing, whatever the
	// driver's settings. The driver returns a Go value in the raw form of c.Kind.
	Value func(c Column, ref string) string
	// Param wraps a placeholder. A value that Value has read of column c is then the same value in the
	// statement.
	Param func(c Column, placeholder string) string
	// Store wraps a placeholder for a value from elsewhere that is written into column c. Dates and times are
	// text, such as 2006-01-02 15:04:05.999999; those with a time zone are in UTC. The database refuses a value
	// that does not fit the column, as far as its settings say so.
	Store func(c Column, placeholder string) string
	// KeyColumn returns what Describe would say of a column with this declaration, as far as that tells. It is
	// for printing scripts without a server.
	KeyColumn func(name, declaration string) Column
	// OwnULID is the column for ULIDs in a table of the feed's own.
	OwnULID Column
	// Millis returns an expression for the time in a column, in milliseconds of Unix time. It is NULL for a value
	// that is not a time. Millis is empty for a type without times.
	Millis func(c Column, ref string) string
	// ULIDProblem says why a column cannot hold ULIDs, and what to do. It is empty if the column can.
	ULIDProblem func(c *Column) string
	// ShardProblem says why an integer column cannot hold the shards of rows, and what to do. With triggered, a
	// trigger reads the column. Both are empty if the column can.
	ShardProblem func(c *Column, triggered bool) (problem, next string)
	// NoShard returns a condition that a value of a shard column, ref, is not a shard. It is empty if the
	// column's type has no such values.
	NoShard func(ref string) string
	// NoULID returns a condition that a row has no ULID in its position column, or no integer in its shard column.
	// position and shard are references to these columns. The condition is empty if the types of the columns have
	// no such values.
	NoULID func(u *ULIDColumns, position, shard string) string
}

// Statement returns one of the statements about a feed that only read. It panics if there is none of this name.
func (s *Syntax) Statement(f *Feed, name string) Statement { return s.Reads.For(s, f, name) }

// Step is a statement and the reason for it. --print shows both.
type Step struct {
	Note string
	SQL  string
	// Commit asks for a commit after the statement, which holds a lock that keeps readers out. The caller then
	// gets the list of steps again, and runs what is left.
	Commit bool
}

// Qualified quotes a table's name, with its schema if it has one.
func Qualified(s *Syntax, t feedtype.TableName) string {
	if t.Schema == "" {
		return s.Quote(t.Name)
	}
	return s.Quote(t.Schema) + "." + s.Quote(t.Name)
}

// Ref returns a quoted column, with an alias in front of it if that is not empty.
func Ref(s *Syntax, alias, column string) string {
	if alias == "" {
		return s.Quote(column)
	}
	return alias + "." + s.Quote(column)
}

// KeyRefs returns the key columns by their names in the source table.
func KeyRefs(s *Syntax, f *Feed, alias string) []string {
	refs := make([]string, len(f.Key))
	for i, c := range f.Key {
		refs[i] = Ref(s, alias, c.Name)
	}
	return refs
}

// StoredRefs returns the key columns by their names in rowfeed's tables.
func StoredRefs(s *Syntax, f *Feed, alias string) []string {
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
func SourceJoin(s *Syntax, f *Feed, src, own string) string {
	return EqualKeys(f, StoredRefs(s, f, own), KeyRefs(s, f, src))
}

// StoredJoin returns the condition that rows of two of rowfeed's tables have the same key.
func StoredJoin(s *Syntax, f *Feed, a, b string) string {
	return EqualKeys(f, StoredRefs(s, f, a), StoredRefs(s, f, b))
}

// OrderedKey returns the key columns of a source row (alias src) as they are compared and ordered.
func OrderedKey(s *Syntax, f *Feed, src string) []string {
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
func CompareKey(s *Syntax, b *Builder, f *Feed, refs []string, values []any, op, lastOp string) string {
	arg := func(i int) string { return s.Param(f.Key[i], b.Arg(values[i])) }
	compare := func(i int, op string) string { return refs[i] + f.Key[i].Operator(op) + arg(i) }
	named := func(c Column) bool { return c.Operators != "" }
	if s.RowValues && len(refs) > 1 && !slices.ContainsFunc(f.Key, named) {
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
	spelling *Syntax
	args     []any
	literal  bool
}

// NewBuilder begins a statement.
func NewBuilder(s *Syntax) *Builder { return &Builder{spelling: s} }

// NewScript begins a statement of a printed script: its parameters become literals.
func NewScript(s *Syntax) *Builder { return &Builder{spelling: s, literal: true} }

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

// InsertNew implements [Syntax].InsertNew for databases with ON CONFLICT.
func InsertNew(table string, columns, values, key []string) string {
	return "INSERT INTO " + table + " (" + strings.Join(columns, ", ") + ") VALUES (" + strings.Join(values, ", ") +
		") ON CONFLICT (" + strings.Join(key, ", ") + ") DO NOTHING"
}

// Upsert implements [Syntax].Upsert for databases with ON CONFLICT.
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

// beginsName tells whether the bracket at i begins a quoted name, and not the subscript of a word.
func beginsName(text string, i int) bool {
	return i == 0 || !strings.ContainsRune("])", rune(text[i-1])) && !isName(text[i-1]|0x20)
}

// nameLength returns the length of the name in brackets with which a text begins. A closing bracket in it is doubled.
func nameLength(text string) int {
	for i := 1; i < len(text); i++ {
		if text[i] != ']' {
			continue
		}
		if i+1 == len(text) || text[i+1] != ']' {
			return i + 1
		}
		i++
	}
	return 1 // it is no name
}
