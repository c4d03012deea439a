package dialect

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/feedtype"
)

// The columns that capture "column" keeps in the user's table.
const (
	// PositionColumn holds a row's position; NULL while the row waits for one.
	PositionColumn = "feed_sync_id"
	// ShardColumn holds a row's data shard.
	ShardColumn = "shard"
)

// InRows tells whether a row's position is a column of the row itself, as capture
// "column" has it. The feed's table of positions then holds only keys whose latest
// place is not in a row: deleted, hidden or republished ones.
func (f *Feed) InRows() bool { return f.Capture == feedtype.CaptureColumn }

// keptColumns are the columns of the user's table that capture "column" needs.
func (f *Feed) keptColumns() []string {
	if !f.InRows() {
		return nil
	}
	return []string{PositionColumn, ShardColumn}
}

// Kept finds one of these columns, as the database would; nil when the table has none.
func (t *Table) Kept(name string) *Column {
	for i, c := range t.Columns {
		if c.Name == name || t.AnyCase && strings.EqualFold(c.Name, name) {
			return &t.Columns[i]
		}
	}
	return nil
}

// PositionProblem says why a column cannot hold positions, with the next step; empty
// when it can.
func (c *Column) PositionProblem() string {
	if c.NoPosition == "" && !c.Nullable {
		return "may not be NULL: let it, since rows that wait have no position"
	}
	return c.NoPosition
}

// ShardProblem says why a column cannot hold the numbers of so many data shards, with the
// next step; empty when it can.
func (c *Column) ShardProblem(dataShards int) string {
	if c.Generated {
		return "is generated, where publishers write a row's shard: make it a plain column"
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

// Delivered are the table's columns without those that capture "column" keeps there:
// an entry says position and shard by itself.
func (f *Feed) Delivered(t *Table) []Column {
	return slices.DeleteFunc(slices.Clone(t.Columns), func(c Column) bool {
		return slices.ContainsFunc(f.keptColumns(), func(name string) bool { return c.Name == name || t.AnyCase && strings.EqualFold(c.Name, name) })
	})
}

// Lacking are the columns that FeedUp has to add to the user's table.
func (f *Feed) Lacking(t *Table) []string {
	return slices.DeleteFunc(f.keptColumns(), func(name string) bool { return t.Kept(name) != nil })
}

// RowProblems says which of the columns and indexes that capture "column" needs the
// table lacks.
func (f *Feed) RowProblems(t *Table, indexes ...string) []string {
	var problems []string
	for _, name := range f.Lacking(t) {
		problems = append(problems, fmt.Sprintf("table %s has no column %s", t.Name, name))
	}
	if !f.InRows() {
		return problems
	}
	if c := t.Kept(PositionColumn); c != nil && c.PositionProblem() != "" {
		problems = append(problems, fmt.Sprintf("column %s of table %s %s", c.Name, t.Name, c.PositionProblem()))
	}
	for _, name := range indexes {
		if !slices.Contains(t.Indexes, name) {
			problems = append(problems, fmt.Sprintf("table %s has no index %s: rows that wait are found by reading all of it", t.Name, name))
		}
	}
	return problems
}

// WaitingRows is the WHERE of the rows (alias t) that wait for a position, above a
// key where one is given, and the order in which they are taken.
func WaitingRows(s Spelling, b *Builder, f *Feed, after []any) (where, order string) {
	ordered := OrderedKey(s, f, "t")
	where = " WHERE t." + PositionColumn + " IS NULL"
	if after != nil {
		where += " AND " + CompareKey(s, b, f, ordered, after, ">", ">")
	}
	return where, " ORDER BY " + strings.Join(ordered, ", ")
}

// Written is the table whose open transactions hold back changes of the feed.
func (f *Feed) Written() feedtype.TableName {
	if f.InRows() {
		return f.Source
	}
	return f.Changes()
}

// Waiting is the table of what waits for a position, and its column of numbers.
func (f *Feed) Waiting() (table feedtype.TableName, number string) {
	if f.Outbox {
		return f.Records(), "order_sequence"
	}
	return f.Changes(), "seq"
}

// OldestWaiting is the end of a query for what waits longest, in a shard of an outbox where
// one is named, and the column that tells since when.
func OldestWaiting(d Dialect, b *Builder, f *Feed, shard []int) (since, from string) {
	table, number := f.Waiting()
	from = " FROM " + Qualified(d, table)
	switch {
	case !f.Outbox:
		return "changed_at", from + " ORDER BY " + number + " LIMIT 1"
	case len(shard) == 0:
		return "appended_at", from + " ORDER BY " + number + " LIMIT 1"
	}
	return "appended_at", from + inOrder(b, d.ByShard, shard[0], Seqs{}, nil, "")[0] + " LIMIT 1"
}

// CountWaiting is an expression that counts what waits for the publisher; of each
// kind it stops at limit.
func CountWaiting(s Spelling, f *Feed, limit int) string {
	table, _ := f.Waiting()
	count := fmt.Sprintf("(SELECT count(*) FROM (SELECT 1 FROM %s LIMIT %d) x)", Qualified(s, table), limit)
	if f.InRows() {
		count += fmt.Sprintf(" + (SELECT count(*) FROM (SELECT 1 FROM %s WHERE %s IS NULL LIMIT %d) y)", Qualified(s, f.Source), PositionColumn, limit)
	}
	return count
}

// KeyAt reads the key of the row that stands at a position.
func KeyAt(ctx context.Context, q Querier, s Spelling, f *Feed, position int64) ([]any, error) {
	b := NewBuilder(s)
	return ReadKey(ctx, q, s, f, KeyRefs(s, f, "t"), " FROM "+Qualified(s, f.Source)+" t WHERE t."+PositionColumn+" = "+b.Arg(position), b.Args())
}

// ReadKey reads the first key of a query, given from its FROM on, in the raw form
// that [Spelling.Param] takes back; sql.ErrNoRows when there is none.
func ReadKey(ctx context.Context, q Querier, s Spelling, f *Feed, refs []string, from string, args []any) ([]any, error) {
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
			key[i] = []byte{} // an empty value, not NULL: nothing is above or below NULL
		}
	}
	return key, nil
}

// Seen is the condition under which AssignPositions gives a key a position: it has a
// row or, says the condition known, a position. Where rows hold their positions themselves nothing tells whether
// a key without a row was ever shown: it gets its tombstone.
func (f *Feed) Seen(row, known string) string {
	if f.InRows() {
		return "1 = 1"
	}
	return row + " IS NOT NULL OR " + known
}

// DeleteRow are the statements that delete a row and have its delete published, to be
// run in one transaction with the key as parameters of each.
func DeleteRow(s Spelling, f *Feed) []string {
	b := NewBuilder(s)
	conds := make([]string, len(f.Key))
	for i, c := range f.Key {
		conds[i] = s.Quote(c.Name) + c.Collate + c.Operator("=") + b.Arg(nil)
	}
	statements := []string{"DELETE FROM " + Qualified(s, f.Source) + " WHERE " + strings.Join(conds, " AND ")}
	if f.Capture == feedtype.CaptureTrigger {
		return statements // the trigger records it
	}
	b = NewBuilder(s)
	marks := make([]string, len(f.Key))
	for i := range marks {
		marks[i] = b.Arg(nil)
	}
	return append(statements, "INSERT INTO "+Qualified(s, f.Changes())+" ("+strings.Join(StoredRefs(s, f, ""), ", ")+") VALUES ("+strings.Join(marks, ", ")+")")
}
