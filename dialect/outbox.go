package dialect

import (
	"context"
	"fmt"
	"strings"
)

// Record is a record of a feed's outbox.
type Record struct {
	Seq        int64
	HintMillis *int64 // Unix time, where the writer has given one
}

// Moved is a record with the ULID that it gets.
type Moved struct {
	Seq      int64
	Position Position
}

// TakeRecords reads the oldest committed records of a shard, in the order in which they were
// written, without locks.
func TakeRecords(ctx context.Context, tx Querier, s Spelling, f *Feed, shard, limit int) ([]Record, error) {
	b := NewBuilder(s)
	query := "SELECT order_sequence, time_hint FROM " + Qualified(s, f.Records()) + " WHERE shard = " + b.Arg(shard) + " ORDER BY order_sequence LIMIT " + b.Arg(limit)
	return QueryAll(ctx, tx, query, b.Args(), func(rows Rows) (r Record, err error) { return r, rows.Scan(&r.Seq, &r.HintMillis) })
}

// PlaceRecords is the INSERT behind [ULID.PlaceRecords]; once ends it, so that a key that
// stands in the feed already stays where it is.
func PlaceRecords(s Spelling, f *Feed, shard int, moved []Moved, once string) (string, []any) {
	b := NewBuilder(s)
	list := make([]string, len(moved))
	for i, m := range moved {
		list[i] = fmt.Sprintf("SELECT %d AS seq, %s AS ulid", m.Seq, f.ULIDs.Arg(s, b, m.Position))
	}
	return "INSERT INTO " + Qualified(s, f.Placed()) + " (shard, ulid, " + strings.Join(StoredRefs(s, f, ""), ", ") + ")\nSELECT o.shard, j.ulid, " +
		strings.Join(StoredRefs(s, f, "o"), ", ") + " FROM (" + strings.Join(list, " UNION ALL ") + ") j JOIN " + Qualified(s, f.Records()) +
		" o ON o.order_sequence = j.seq AND o.shard = " + b.Arg(shard) + once, b.Args()
}

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

// SeqList writes seqs as a list for IN.
func SeqList(seqs []int64) string {
	list := make([]string, len(seqs))
	for i, seq := range seqs {
		list[i] = fmt.Sprint(seq)
	}
	return strings.Join(list, ", ")
}
