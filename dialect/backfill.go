package dialect

import (
	"fmt"
	"strconv"
	"strings"
)

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
func PlaceBehind(s Dialect, b *Builder, f *Feed, p BackfillBatch, once string) string {
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
