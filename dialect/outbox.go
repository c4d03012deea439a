package dialect

import (
	"fmt"
	"math"
	"strings"

	"github.com/rowfeed/rowfeed/feedtype"
)

// AppendRecord returns an INSERT of an outbox record. Its parameters are the shard, the time hint and the key
// columns.
func AppendRecord(s Spelling, f *Feed) string {
	b := NewBuilder(s)
	marks := make([]string, 2+len(f.Key))
	for i := range marks {
		marks[i] = b.Arg(nil)
	}
	return "INSERT INTO " + Qualified(s, f.Records()) + " (shard, time_hint, " +
		strings.Join(StoredRefs(s, f, ""), ", ") + ") VALUES (" + strings.Join(marks, ", ") + ")"
}

// RecordOf returns the INSERT of a trigger. It appends a record for row, an alias, in the shard that an
// expression gives. The record has no time hint: its ULID gets the time of its move.
func RecordOf(s Spelling, f *Feed, records feedtype.TableName, shard, row string) string {
	return "INSERT INTO " + Qualified(s, records) + " (shard, " + strings.Join(StoredRefs(s, f, ""), ", ") +
		") VALUES (" +
		shard + ", " + strings.Join(KeyRefs(s, f, row), ", ") + ")"
}

// RecordUnplaced returns an INSERT of records for the rows that satisfy the conditions (alias t) and have
// neither a record nor a place, in key order. See [Unplaced]. The LIMIT makes the database collect the rows
// before it writes the first record: while an INSERT … SELECT runs, MariaDB lets no other session draw a
// number.
func RecordUnplaced(s Spelling, b *Builder, f *Feed, rows func(*Builder) []string) string {
	inner, outer := make([]string, len(f.Key)), make([]string, len(f.Key))
	for i, ref := range KeyRefs(s, f, "t") {
		inner[i], outer[i] = fmt.Sprintf("%s AS k%d", ref, i), fmt.Sprintf("x.k%d", i)
	}
	return "INSERT INTO " + Qualified(s, f.Records()) + " (shard, " + strings.Join(StoredRefs(s, f, ""), ", ") +
		") SELECT x.shard, " + strings.Join(outer, ", ") +
		" FROM (SELECT " + f.ShardOf(s, "t") + " AS shard, " + strings.Join(inner, ", ") +
		Unplaced(s, b, f, "", rows(b)) +
		" ORDER BY " + strings.Join(OrderedKey(s, f, "t"), ", ") + " LIMIT " + b.Arg(int64(math.MaxInt64)) + ") x"
}

// ShardOf returns an expression for the outbox shard of a row of the source, given its alias.
func (f *Feed) ShardOf(s Spelling, row string) string {
	if f.RecordShard == "" {
		return "0"
	}
	return Ref(s, row, f.RecordShard)
}
