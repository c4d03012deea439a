package dialect

import (
	"fmt"
	"strconv"
	"strings"
)

// Behind says which rows back-fill places behind the head of an outbox feed. These are rows with neither an
// outbox record nor a place (see [Feed.Placed]). Their ULIDs are below the live part of the shard, which begins
// at shards.live_from. The shard must have been prepared by a run of back-fill: shards.filled_by is not 0. From
// the highest bits to the lowest, such a ULID consists of
//
//	time       48 bits, below live_from
//	run        16 bits: the number of the back-fill, from 1
//	batch      40 bits, from 1
//	number     24 bits: that of the row in its batch, from 1
//
// So no two rows get the same ULID. In a shard that an earlier run has prepared, the rows of a later run are
// above all rows of the earlier one.
type Behind struct {
	Run, Batch int64
	Time       *Column // of the source; if nil, all rows get the latest time
	// Rows returns conditions on the rows of the source (alias t).
	Rows func(b *Builder) []string
}

// MaxRuns is how many times a feed can be back-filled.
const MaxRuns = 1<<16 - 1

// Unplaced returns FROM and WHERE of a query for the rows (alias t) that have neither an outbox record nor a
// place. The outbox has no index on the key, because every writer would pay for it. So the query collects the
// keys of all records.
func Unplaced(s Spelling, b *Builder, f *Feed, joins string, conditions []string) string {
	return " FROM " + Qualified(s, f.Source) + " t" + joins +
		" LEFT JOIN " + Qualified(s, f.Placed()) + " g ON " + SourceJoin(s, f, "t", "g") +
		" LEFT JOIN (SELECT DISTINCT " + strings.Join(StoredRefs(s, f, ""), ", ") + " FROM " +
		Qualified(s, f.Records()) + ") c ON " + SourceJoin(s, f, "t", "c") +
		" WHERE " + strings.Join(append(conditions, Ref(s, "g", f.Key[0].Stored)+" IS NULL",
		Ref(s, "c", f.Key[0].Stored)+" IS NULL"), " AND ")
}

// UnreadyShards returns a query for the shards that have rows to be placed, but that no run of back-fill has
// prepared. The shards are in ascending order.
func UnreadyShards(s Spelling, b *Builder, f *Feed, rows func(*Builder) []string) string {
	return "SELECT x.shard FROM (SELECT DISTINCT " + f.ShardOf(s, "t") + " AS shard" + Unplaced(s, b, f, "", rows(b)) +
		") x" +
		" LEFT JOIN " + Qualified(s, f.Names.Table("shards")) + " s ON s.feed = " + b.Arg(f.Name) +
		" AND s.shard = x.shard" +
		" WHERE COALESCE(s.filled_by, 0) = 0 ORDER BY x.shard"
}

// PlaceBehind returns the INSERT that places rows. All that it reads comes from one snapshot. once is the end
// of the statement: it makes the statement ignore a key that has got a place since.
func PlaceBehind(s Dialect, b *Builder, f *Feed, p Behind, once string) string {
	run := strconv.FormatInt(p.Run, 10)
	inner, outer := make([]string, len(f.Key)), make([]string, len(f.Key))
	for i, ref := range KeyRefs(s, f, "t") {
		inner[i], outer[i] = fmt.Sprintf("%s AS k%d", ref, i), fmt.Sprintf("x.k%d", i)
	}
	shard := f.ShardOf(s, "t")
	// The first run in a shard follows the times of the rows: no reader can have passed these positions. A
	// later run places its rows above all of them.
	time, at := "x.live - 1", ""
	if p.Time != nil {
		time = "CASE WHEN x.at IS NULL OR x.first_run <> " + run +
			" OR x.at >= x.live THEN x.live - 1 WHEN x.at < 0 THEN 0 ELSE x.at END"
		at = s.Millis(*p.Time, Ref(s, "t", p.Time.Name)) + " AS at, "
	}
	query := "INSERT INTO " + Qualified(s, f.Placed()) + " (shard, ulid, " + strings.Join(StoredRefs(s, f, ""), ", ") +
		")\nSELECT x.shard, " +
		s.MakeULID("("+time+") * 65536 + "+run, strconv.FormatInt(p.Batch<<24, 10)+" + x.n") + ", " +
		strings.Join(outer, ", ") +
		"\nFROM (SELECT " + shard + " AS shard, s.live_from AS live, s.filled_by AS first_run, " + at +
		strings.Join(inner, ", ") +
		", row_number() OVER (ORDER BY " + strings.Join(OrderedKey(s, f, "t"), ", ") + ") AS n"
	joins := " JOIN " + Qualified(s, f.Names.Table("shards")) + " s ON s.feed = " + b.Arg(f.Name) + " AND s.shard = " +
		shard + " AND s.live_from > 0 AND s.filled_by > 0"
	return query + Unplaced(s, b, f, joins, p.Rows(b)) + ") x" + once
}
