package dialect

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/feedtype"
)

func (f *Feed) keptColumns() []string {
	switch {
	case !f.InRows() && !f.Moved:
		return nil
	case f.OwnShard != "":
		return []string{PositionColumn}
	}
	return []string{PositionColumn, ShardColumn}
}

// hiddenColumns are those that rowfeed writes. An adopted table can have a column of its own that is named like the
// column for shards.
func (f *Feed) hiddenColumns() []string {
	kept := f.keptColumns()
	if len(kept) > 1 && !f.Sharded() && !slices.Contains(f.Added, ShardColumn) {
		return kept[:1]
	}
	return kept
}

// FindColumn returns the column of this name, compared as the database compares names. It is nil if the table has no
// such column.
func (t *Table) FindColumn(name string) *Column {
	for i, c := range t.Columns {
		if c.Name == name || t.AnyCase && strings.EqualFold(c.Name, name) {
			return &t.Columns[i]
		}
	}
	return nil
}

// PositionProblem says why the column cannot hold positions, and what to do. It is empty if the column can.
func (c *Column) PositionProblem() string {
	if c.NoPosition == "" && !c.Nullable {
		return "is NOT NULL, but rows must wait for their position with NULL: drop the NOT NULL"
	}
	return c.NoPosition
}

// ShardProblem says why the column cannot hold the numbers of this many data shards, and what to do. It is
// empty if the column can.
func (c *Column) ShardProblem(dataShards int) string {
	if c.Generated {
		return "is generated, but publishers must write a row's shard into it: make it a plain column"
	}
	words := strings.FieldsFunc(strings.ToLower(c.Type), func(r rune) bool { return r == ' ' || r == '(' })
	if c.Kind == feedtype.Dynamic || len(words) == 0 {
		return ""
	}
	highest, narrow := map[string]int{"tinyint": 127, "smallint": 32_767, "bit": 0, "year": 0}[words[0]]
	if narrow && slices.Contains(words, "unsigned") {
		highest = 2*highest + 1
	}
	if narrow && dataShards-1 > highest {
		return fmt.Sprintf("is %s, which cannot hold shard %d: make it an int", c.Type, dataShards-1)
	}
	return ""
}

// Delivered returns the table's columns without those that capture "column" writes: an entry has fields for its
// position and shard.
func (f *Feed) Delivered(t *Table) []Column {
	return slices.DeleteFunc(slices.Clone(t.Columns), func(c Column) bool {
		return slices.ContainsFunc(f.hiddenColumns(), func(name string) bool {
			return c.Name == name || t.AnyCase && strings.EqualFold(c.Name, name)
		})
	})
}

// Fenced tells whether triggers of the source refuse positions that the feed's publisher does not give.
func (f *Feed) Fenced() bool { return f.Fence && f.InRows() }

// FenceText is the error of a statement that such a trigger refuses. MySQL and MariaDB accept up to 128 characters, and
// a feed's name has up to 39.
func (f *Feed) FenceText() string {
	return "rowfeed: only feed " + f.Name + " sets feed_sync_id. Stop your own publisher; writers set it to NULL."
}

// MissingColumns returns the names of the columns that FeedUp has to add to the user's table.
func (f *Feed) MissingColumns(t *Table) []string {
	if !f.InRows() {
		return nil
	}
	return slices.DeleteFunc(f.keptColumns(), func(name string) bool { return t.FindColumn(name) != nil })
}

// RowProblems says which columns and indexes the table lacks that capture "column" needs.
func (f *Feed) RowProblems(t *Table, indexes ...string) []string {
	var problems []string
	for _, name := range f.MissingColumns(t) {
		problems = append(problems, fmt.Sprintf("table %s has no column %s", t.Name, name))
	}
	if !f.InRows() {
		return problems
	}
	if c := t.FindColumn(PositionColumn); c != nil && c.PositionProblem() != "" {
		problem := fmt.Sprintf("column %s of table %s %s", c.Name, t.Name, c.PositionProblem())
		if c.FitPosition != "" {
			problem += "; run `" + c.FitPosition + "`"
		}
		problems = append(problems, problem)
	}
	for _, name := range indexes {
		if !slices.Contains(t.Indexes, name) {
			problems = append(problems,
				fmt.Sprintf("table %s has no index %s: rows that wait are found by reading all of it", t.Name, name))
		}
	}
	return problems
}

// WaitingRows returns the WHERE for the rows (alias t) that wait for a position, and the ORDER BY in which they
// get it: by key. If after is not nil, only rows with a greater key are included.
func WaitingRows(s *Syntax, b *Builder, f *Feed, after []any) (where, order string) {
	ordered := OrderedKey(s, f, "t")
	where = " WHERE t." + PositionColumn + " IS NULL"
	if after != nil {
		where += " AND " + CompareKey(s, b, f, ordered, after, ">", ">")
	}
	return where, " ORDER BY " + strings.Join(ordered, ", ")
}

// WaitingPart is WaitingRows as a part of a statement.
func WaitingPart(s *Syntax, f *Feed, after []any) Built {
	return func(b *Builder) string {
		where, order := WaitingRows(s, b, f, after)
		return where + order
	}
}

// Written is the table that writers of the feed have open for writing until their transactions end.
func (f *Feed) Written() feedtype.TableName {
	if f.InRows() {
		return f.Source
	}
	return f.Changes()
}

// Waiting returns the table of the changes or records that wait, and its column of sequence numbers.
func (f *Feed) Waiting() (table feedtype.TableName, number string) {
	if f.Outbox {
		return f.Records(), "order_sequence"
	}
	return f.Changes(), "seq"
}

// KeyAt reads the key of the row that holds a position. The error is sql.ErrNoRows if there is none.
func KeyAt(ctx context.Context, q Querier, s *Syntax, f *Feed, position int64) ([]any, error) {
	b := NewBuilder(s)
	return ReadKey(ctx, q, s, f, KeyRefs(s, f, "t"), " FROM "+Qualified(s, f.Source)+" t WHERE t."+PositionColumn+" = "+
		b.Arg(position), b.Args())
}

// ReadKey reads the first key of a query, in the raw form that [Syntax].Param takes back. from is the query
// from its FROM on. The error is sql.ErrNoRows if the query answers no row.
func ReadKey(ctx context.Context, q Querier, s *Syntax, f *Feed, refs []string, from string,
	args []any) ([]any, error) {
	values := make([]string, len(refs))
	key, dest := make([]any, len(refs)), make([]any, len(refs))
	for i, ref := range refs {
		values[i] = s.Value(f.Key[i], ref)
		dest[i] = &key[i]
	}
	if err := QueryRow(ctx, q, "SELECT "+strings.Join(values, ", ")+from, args, dest...); err != nil {
		return nil, err
	}
	for i, v := range key {
		if bytes, ok := v.([]byte); ok && bytes == nil {
			key[i] = []byte{} // an empty value, not NULL: no key is above or below NULL
		}
	}
	return key, nil
}

// KeyEquals returns the condition that a row of the source has the key that the parameters give.
func KeyEquals(s *Syntax, b *Builder, f *Feed) string {
	conds := make([]string, len(f.Key))
	for i, c := range f.Key {
		conds[i] = s.Quote(c.Name) + c.Collate + c.Operator("=") + b.Arg(nil)
	}
	return strings.Join(conds, " AND ")
}
