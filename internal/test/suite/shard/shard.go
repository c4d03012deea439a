package shard

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// placed formats an entry with its shard and position.
func placed(e rowfeed.Entry) string {
	return fmt.Sprintf("%s %d %s", e.Position, e.Shard, suite.Line(e))
}

// TestPartsAreTheWholeFeed (M18, M19, M21, M25, M26, M27): for every number of data shards and of readers, the readers'
// parts are the whole feed, upserts and deletes, each key in one of them, in order, and a part has the keys of its data
// shards.
func TestPartsAreTheWholeFeed(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)")
		feeds := map[int]*rowfeed.Feed{}
		for _, n := range []int{1, 7, 1024} {
			feeds[n] = x.Add(rowfeed.FeedSpec{Name: fmt.Sprintf("kv%d", n), Table: "kv", DataShards: n})
		}
		x.InsertKV(-20, 380)
		for _, f := range feeds {
			x.Publish(f)
		}
		x.Exec("DELETE FROM kv WHERE id % 7 = 0", "UPDATE kv SET v = 2 WHERE id % 10 = 3")
		const above = "1" // a reader that starts at the beginning would not get the deletes
		for n, f := range feeds {
			x.Publish(f)
			whole, head := x.Part(f, rowfeed.Shards{}, above, 1000)
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
				if readers > feedtype.MaxParts(n) {
					_, err := f.Fetch(x.Ctx, rowfeed.Request{Shards: rowfeed.Part(0, readers)})
					var e *rowfeed.Error
					if !errors.As(err, &e) || e.Code != rowfeed.InvalidRequest || e.Param != "shard_count" {
						x.Errorf("%d readers of %d data shards: %v", readers, n, err)
					}
					continue
				}
				var all []rowfeed.Entry
				for i := range readers {
					part := rowfeed.Part(i, readers)
					entries, cursor := x.Part(f, part, above, limit)
					if cursor != head {
						x.Fatalf("%s of %d data shards ends at %q, the feed at %q", part, n, cursor, head)
					}
					from, to, err := part.Range(feedtype.MaxParts(n))
					if err != nil {
						x.Fatal(err)
					}
					for _, e := range entries {
						if shard := feedtype.ShardOf(e.Key, feedtype.MaxParts(n)); shard < from || shard >= to {
							x.Fatalf("%s of %d data shards has %s", part, n, placed(e))
						}
					}
					all = append(all, entries...)
				}
				wantSame(x, fmt.Sprintf("%d parts of %d data shards", readers, n), all, whole)
			}
			var all []rowfeed.Entry
			for shard := range n {
				entries, _ := x.Part(f, rowfeed.One(shard), above, 50)
				all = append(all, entries...)
			}
			wantSame(x, fmt.Sprintf("%d data shards one by one", n), all, whole)
		}
		rows, err := x.DB.Admin().QueryContext(x.Ctx, "SELECT shard, bucket FROM rowfeed_positions_kv1024")
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

// wantSame asserts that the parts together are the whole feed.
func wantSame(x *suite.Env, what string, parts, whole []rowfeed.Entry) {
	x.Helper()
	parts = slices.SortedFunc(slices.Values(parts), func(a, b rowfeed.Entry) int {
		return cmp.Compare(suite.PositionOf(a), suite.PositionOf(b))
	})
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
