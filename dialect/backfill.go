package dialect

import (
	"fmt"
	"strconv"
	"strings"
)

// Behind is what back-fill places behind the head of a feed with an outbox: rows that have
// neither a record nor a place. Rows get ULIDs below the live part of their shard, which
// begins at live_from of the table of shards, in shards to which a run has come (filled_by):
//
//	time       48 bits, before live_from
//	run        16 bits: the run of back-fill, from 1
//	batch      40 bits, from 1, and
//	number     24 bits: that of the row in its batch
//
// so that a row gets another ULID than any other, and those of a run in a shard that had some before
// come behind all of them.
type Behind struct {
	Run, Batch int64
	Time       *Column // of the source; nil: all rows have the latest time
	// Rows are conditions for the source's rows, alias t.
	Rows func(b *Builder) []string
}

// MaxRuns is how many runs of back-fill a feed can have.
const MaxRuns = 1<<16 - 1

// Unplaced is FROM and WHERE of the rows (alias t) that have neither a record nor a place. The outbox has
// no index on the key, since writers would pay for it; see the root's rules of check.
func Unplaced(s Spelling, b *Builder, f *Feed, joins string, conditions []string) string {
	return " FROM " + Qualified(s, f.Source) + " t" + joins +
		" LEFT JOIN " + Qualified(s, f.Placed()) + " g ON " + SourceJoin(s, f, "t", "g") +
		" LEFT JOIN (SELECT DISTINCT " + strings.Join(StoredRefs(s, f, ""), ", ") + " FROM " + Qualified(s, f.Records()) + ") c ON " + SourceJoin(s, f, "t", "c") +
		" WHERE " + strings.Join(append(conditions, Ref(s, "g", f.Key[0].Stored)+" IS NULL", Ref(s, "c", f.Key[0].Stored)+" IS NULL"), " AND ")
}

// UnreadyShards is a query for the shards of rows that are to be placed to which no run has come
// yet.
func UnreadyShards(s Spelling, b *Builder, f *Feed, rows func(*Builder) []string) string {
	return "SELECT x.shard FROM (SELECT DISTINCT " + f.ShardOf(s, "t") + " AS shard" + Unplaced(s, b, f, "", rows(b)) + ") x" +
		" LEFT JOIN " + Qualified(s, f.Names.Table("shards")) + " s ON s.feed = " + b.Arg(f.Name) + " AND s.shard = x.shard" +
		" WHERE COALESCE(s.filled_by, 0) = 0 ORDER BY x.shard"
}

// PlaceBehind is the INSERT that places rows. It takes all it reads from one snapshot; once ends it,
// see [PlaceRecords].
func PlaceBehind(s Dialect, b *Builder, f *Feed, p Behind, once string) string {
	run := strconv.FormatInt(p.Run, 10)
	inner, outer := make([]string, len(f.Key)), make([]string, len(f.Key))
	for i, ref := range KeyRefs(s, f, "t") {
		inner[i], outer[i] = fmt.Sprintf("%s AS k%d", ref, i), fmt.Sprintf("x.k%d", i)
	}
	shard := f.ShardOf(s, "t")
	// A run that comes to a shard for the first time follows the times of the rows; nobody
	// can have read what is there. A later one goes on above that.
	time, at := "x.live - 1", ""
	if p.Time != nil {
		time = "CASE WHEN x.at IS NULL OR x.first_run <> " + run + " OR x.at >= x.live THEN x.live - 1 WHEN x.at < 0 THEN 0 ELSE x.at END"
		at = s.Millis(*p.Time, Ref(s, "t", p.Time.Name)) + " AS at, "
	}
	query := "INSERT INTO " + Qualified(s, f.Placed()) + " (shard, ulid, " + strings.Join(StoredRefs(s, f, ""), ", ") + ")\nSELECT x.shard, " +
		s.MakeULID("("+time+") * 65536 + "+run, strconv.FormatInt(p.Batch<<24, 10)+" + x.n") + ", " + strings.Join(outer, ", ") +
		"\nFROM (SELECT " + shard + " AS shard, s.live_from AS live, s.filled_by AS first_run, " + at + strings.Join(inner, ", ") +
		", row_number() OVER (ORDER BY " + strings.Join(OrderedKey(s, f, "t"), ", ") + ") AS n"
	joins := " JOIN " + Qualified(s, f.Names.Table("shards")) + " s ON s.feed = " + b.Arg(f.Name) + " AND s.shard = " + shard + " AND s.live_from > 0 AND s.filled_by > 0"
	return query + Unplaced(s, b, f, joins, p.Rows(b)) + ") x" + once
}
