package dialect

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
)

// Moving are the operations that move records of an outbox to their places. A place is the shard and the ULID of a
// key, and a row of [Feed].Placed. The transaction that calls them is the mover.
type Moving interface {
	// HasRecords tells whether a record whose seq is in among waits in one of the shards, or in any shard if
	// none is named. It takes one round trip and no locks. A mover calls it before it opens a transaction.
	HasRecords(ctx context.Context, q Querier, f *Feed, among Seqs, shards ...int) (bool, error)
	// PlaceRecords gives records of a shard their ULIDs, which ascend as their seqs do. If a key has a place
	// already, in any shard, the place changes. If several records have the same key, the last one decides.
	//
	// The ULID of a key only rises. If some keys have higher places in other shards, kept is not 0, or
	// DeleteRecords does not delete their records. The caller must then roll back. If another key has one of
	// the ULIDs, PlaceRecords fails, or DeleteRecords deletes too few records.
	//
	// DeleteRecords deletes exactly the records with these seqs (ascending), locks no other record, and returns
	// how many it has deleted.
	PlaceRecords(ctx context.Context, tx Querier, f *Feed, shard int, moved []Moved) (kept int64, err error)
	DeleteRecords(ctx context.Context, tx Querier, f *Feed, seqs []int64) (int64, error)
	// DeletePlaces returns the begin of a DELETE of places (alias g), up to its WHERE. It finds them by shard
	// and ULID, and locks no place of another shard.
	DeletePlaces(f *Feed) string
	// PlaceBehind gives rows places behind the head, and returns how many.
	PlaceBehind(ctx context.Context, tx Querier, f *Feed, p BackfillBatch) (int64, error)
}

// Bounds is for databases that have no setting for it which ends with the transaction.
type Bounds interface {
	// Bounded runs statements of a transaction ForMove that wait for rows of other transactions. A wait takes
	// no longer than wait. Databases whose Begin bounds it already ignore wait.
	Bounded(ctx context.Context, tx Querier, wait time.Duration, fn func() error) error
}

// Record is a record of a feed's outbox.
type Record struct {
	Seq        int64
	HintMillis *int64 // Unix time in milliseconds; nil if the writer gave no hint
}

// Moved is a record together with its ULID.
type Moved struct {
	Seq      int64
	Position feedtype.Position
}

// AppendRecord returns an INSERT of an outbox record. Its parameters are the shard, the time hint and the key
// columns.
func AppendRecord(s *Syntax, f *Feed) string {
	b := NewBuilder(s)
	marks := make([]string, 2+len(f.Key))
	for i := range marks {
		marks[i] = b.Arg(nil)
	}
	return "INSERT INTO " + Qualified(s, f.Records()) + " (shard, time_hint, " +
		strings.Join(StoredRefs(s, f, ""), ", ") + ") VALUES (" + strings.Join(marks, ", ") + ")"
}

// RecordUnplaced returns an INSERT of records for the rows that satisfy the conditions (alias t) and have
// neither an outbox record nor a place, in key order. See [Unplaced]. The limit makes the database collect the rows
// before it writes the first record: while an INSERT … SELECT runs, MariaDB lets no other session draw a
// number. See [Syntax].DrawsUncut.
func RecordUnplaced(s *Syntax, b *Builder, f *Feed, rows func(*Builder) []string) string {
	inner, outer := make([]string, len(f.Key)), make([]string, len(f.Key))
	for i, ref := range KeyRefs(s, f, "t") {
		inner[i], outer[i] = fmt.Sprintf("%s AS k%d", ref, i), fmt.Sprintf("x.k%d", i)
	}
	insert := "INSERT INTO " + Qualified(s, f.Records()) + " (shard, " + strings.Join(StoredRefs(s, f, ""), ", ") +
		") SELECT x.shard, " + strings.Join(outer, ", ") +
		" FROM (SELECT " + f.ShardOf(s, "t") + " AS shard, " + strings.Join(inner, ", ") +
		Unplaced(s, b, f, "", rows(b))
	if s.DrawsUncut {
		return insert + ") x ORDER BY " + strings.Join(outer, ", ")
	}
	return insert + " ORDER BY " + strings.Join(OrderedKey(s, f, "t"), ", ") + " " +
		s.limited(b.Arg(int64(math.MaxInt64))) + ") x"
}

// ShardOf returns an expression for the outbox shard of a row of the source, given its alias.
func (f *Feed) ShardOf(s *Syntax, row string) string {
	if f.RecordShard == "" {
		return "0"
	}
	return Ref(s, row, f.RecordShard)
}

// Unplaced returns FROM and WHERE of a query for the rows (alias t) that have neither an outbox record nor a
// place, which is a row of [Feed].Placed. The outbox has no index on the key, because it would make every write
// slower. So the query collects the keys of all records.
func Unplaced(s *Syntax, b *Builder, f *Feed, joins string, conditions []string) string {
	return " FROM " + Qualified(s, f.Source) + " t" + joins +
		" LEFT JOIN " + Qualified(s, f.Placed()) + " g ON " + SourceJoin(s, f, "t", "g") +
		" LEFT JOIN (SELECT DISTINCT " + strings.Join(StoredRefs(s, f, ""), ", ") + " FROM " +
		Qualified(s, f.Records()) + ") c ON " + SourceJoin(s, f, "t", "c") +
		" WHERE " + strings.Join(append(conditions, Ref(s, "g", f.Key[0].Stored)+" IS NULL",
		Ref(s, "c", f.Key[0].Stored)+" IS NULL"), " AND ")
}
