package conformance

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// placed is an entry as a line that says everything of it.
func placed(e rowfeed.Entry) string {
	return fmt.Sprintf("%s %d %s", e.Position, e.Shard, line(e))
}

func positionOf(e rowfeed.Entry) int64 {
	n, _ := strconv.ParseInt(e.Position, 10, 64)
	return n
}

// part reads a part of a feed from a cursor to the head, page by page. It asserts that
// pages are no longer than asked for, and that positions grow.
func (x *env) part(f rowfeed.Source, shards rowfeed.Shards, after rowfeed.Cursor, limit int) (entries []rowfeed.Entry, cursor rowfeed.Cursor) {
	x.Helper()
	last := int64(0)
	for {
		page, err := f.Fetch(x.ctx, rowfeed.Request{After: after, Limit: limit, Shards: shards})
		if err != nil {
			x.Fatalf("%s: %v", shards, err)
		}
		if len(page.Entries) > limit {
			x.Fatalf("%s: %d entries on a page of %d", shards, len(page.Entries), limit)
		}
		for _, e := range page.Entries {
			if p := positionOf(e); p <= last {
				x.Fatalf("%s: position %d behind %d", shards, p, last)
			} else {
				last = p
			}
		}
		entries = append(entries, page.Entries...)
		if after = page.Cursor; !page.More {
			return entries, after
		}
	}
}

// insertKV adds the rows from (inclusive) to to (exclusive) to kv.
func (x *env) insertKV(from, to int) {
	x.Helper()
	var rows []string
	for id := from; id < to; id++ {
		rows = append(rows, fmt.Sprintf("(%d, 'k%d', 1)", id, id))
	}
	x.exec("INSERT INTO kv (id, k, v) VALUES " + strings.Join(rows, ", "))
}

// TestShardsShareTheFeed (M18, M19, M21, M25, M26, M27): for every number of data shards
// and of readers the readers' parts are the whole feed, upserts and deletes, each key in
// one of them, in order, and a part has the keys of its data shards.
func TestShardsShareTheFeed(t *testing.T) {
	each(t, func(x *env) {
		x.exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)")
		feeds := map[int]*rowfeed.Feed{}
		for _, n := range []int{1, 7, 1024} {
			feeds[n] = x.add(rowfeed.FeedSpec{Name: fmt.Sprintf("kv%d", n), Table: "kv", DataShards: n})
		}
		x.insertKV(-20, 380)
		for _, f := range feeds {
			x.publish(f)
		}
		x.exec("DELETE FROM kv WHERE id % 7 = 0", "UPDATE kv SET v = 2 WHERE id % 10 = 3")
		const above = "1" // whoever starts at the beginning is not shown the deletes
		for n, f := range feeds {
			x.publish(f)
			whole, head := x.part(f, rowfeed.Shards{}, above, 1000)
			if len(whole) != 399 {
				x.Fatalf("%d entries", len(whole))
			}
			for _, e := range whole {
				if e.Shard != feedtype.ShardOf(e.Key, n) {
					x.Fatalf("of %d shards: %s", n, placed(e))
				}
			}
			for _, readers := range []int{1, 2, 3, 4, 5, 7, 32, 1000, n, n + 1} {
				limit := 13
				if readers > 32 {
					limit = 1000
				}
				var all []rowfeed.Entry
				for i := range readers {
					part := rowfeed.Part(i, readers)
					entries, cursor := x.part(f, part, above, limit)
					if cursor != head {
						x.Fatalf("%s of %d data shards ends at %q, the feed at %q", part, n, cursor, head)
					}
					from, to, err := part.Range(n)
					if err != nil {
						x.Fatal(err)
					}
					for _, e := range entries {
						if e.Shard < from || e.Shard >= to {
							x.Fatalf("%s of %d data shards has %s", part, n, placed(e))
						}
					}
					all = append(all, entries...)
				}
				x.wantSame(fmt.Sprintf("%d parts of %d data shards", readers, n), all, whole)
			}
			var all []rowfeed.Entry
			for shard := range n {
				entries, _ := x.part(f, rowfeed.One(shard), above, 50)
				all = append(all, entries...)
			}
			x.wantSame(fmt.Sprintf("%d data shards one by one", n), all, whole)
		}
		rows, err := x.db.Admin().QueryContext(x.ctx, "SELECT shard, bucket FROM rowfeed_positions_kv1024")
		if err != nil {
			x.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var shard, bucket int
			if err := rows.Scan(&shard, &bucket); err != nil {
				x.Fatal(err)
			}
			if bucket != dialect.Bucket(shard, 1024) {
				x.Fatalf("shard %d is in bucket %d", shard, bucket)
			}
		}
		if err := rows.Err(); err != nil {
			x.Fatal(err)
		}
	})
}

// wantSame asserts that parts have together what the whole feed has.
func (x *env) wantSame(what string, parts, whole []rowfeed.Entry) {
	x.Helper()
	parts = slices.SortedFunc(slices.Values(parts), func(a, b rowfeed.Entry) int { return cmp.Compare(positionOf(a), positionOf(b)) })
	text := func(entries []rowfeed.Entry) string {
		lines := make([]string, len(entries))
		for i, e := range entries {
			lines[i] = placed(e)
		}
		return strings.Join(lines, "\n")
	}
	if got, want := text(parts), text(whole); got != want {
		x.Fatalf("%s have\n%s\nand the feed\n%s", what, got, want)
	}
}
