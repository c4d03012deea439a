package dialect

import (
	"fmt"
	"math"
	"strings"

	"github.com/rowfeed/rowfeed/feedtype"
)

// AppendRecord is an INSERT of a record, with shard, time hint and the key as parameters.
func AppendRecord(s Spelling, f *Feed) string {
	b := NewBuilder(s)
	marks := make([]string, 2+len(f.Key))
	for i := range marks {
		marks[i] = b.Arg(nil)
	}
	return "INSERT INTO " + Qualified(s, f.Records()) + " (shard, time_hint, " + strings.Join(StoredRefs(s, f, ""), ", ") + ") VALUES (" + strings.Join(marks, ", ") + ")"
}

// RecordOf is the INSERT of a trigger: the record of row, an alias, in the shard that an
// expression says. The time of its ULID is that of its move.
func RecordOf(s Spelling, f *Feed, records feedtype.TableName, shard, row string) string {
	return "INSERT INTO " + Qualified(s, records) + " (shard, " + strings.Join(StoredRefs(s, f, ""), ", ") + ") VALUES (" +
		shard + ", " + strings.Join(KeyRefs(s, f, row), ", ") + ")"
}

// RecordUnplaced is an INSERT of records of those of the rows (conditions, alias t) that have
// neither a record nor a place, see [Unplaced], in the order of their keys. The limit makes the rows a table of their own, done before the first record is
// written: MariaDB lets nobody else draw a number while an INSERT … SELECT runs.
func RecordUnplaced(s Spelling, b *Builder, f *Feed, rows func(*Builder) []string) string {
	inner, outer := make([]string, len(f.Key)), make([]string, len(f.Key))
	for i, ref := range KeyRefs(s, f, "t") {
		inner[i], outer[i] = fmt.Sprintf("%s AS k%d", ref, i), fmt.Sprintf("x.k%d", i)
	}
	return "INSERT INTO " + Qualified(s, f.Records()) + " (shard, " + strings.Join(StoredRefs(s, f, ""), ", ") + ") SELECT x.shard, " + strings.Join(outer, ", ") +
		" FROM (SELECT " + f.ShardOf(s, "t") + " AS shard, " + strings.Join(inner, ", ") + Unplaced(s, b, f, "", rows(b)) +
		" ORDER BY " + strings.Join(OrderedKey(s, f, "t"), ", ") + " LIMIT " + b.Arg(int64(math.MaxInt64)) + ") x"
}

// ShardOf is the shard of a row of the source, an alias.
func (f *Feed) ShardOf(s Spelling, row string) string {
	if f.RecordShard == "" {
		return "0"
	}
	return Ref(s, row, f.RecordShard)
}
