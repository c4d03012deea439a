package dialect

import "strings"

// AppendRecord is an INSERT of a record, with shard, time hint and the key as parameters.
func AppendRecord(s Spelling, f *Feed) string {
	b := NewBuilder(s)
	marks := make([]string, 2+len(f.Key))
	for i := range marks {
		marks[i] = b.Arg(nil)
	}
	return "INSERT INTO " + Qualified(s, f.Records()) + " (shard, time_hint, " + strings.Join(StoredRefs(s, f, ""), ", ") + ") VALUES (" + strings.Join(marks, ", ") + ")"
}

// RecordOf is the INSERT of a trigger: the record of row, an alias. The time of its ULID is
// that of its move.
func RecordOf(s Spelling, f *Feed, records TableName, row string) string {
	return "INSERT INTO " + Qualified(s, records) + " (shard, " + strings.Join(StoredRefs(s, f, ""), ", ") + ") VALUES (" +
		f.ShardOf(s, row) + ", " + strings.Join(KeyRefs(s, f, row), ", ") + ")"
}

// ShardOf is the shard of a row of the source, an alias.
func (f *Feed) ShardOf(s Spelling, row string) string {
	if f.RecordShard == "" {
		return "0"
	}
	return Ref(s, row, f.RecordShard)
}
