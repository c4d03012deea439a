package shard

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestMovedFeedKeepsOwnShards (M18, M28): positions are moved out of the rows of a table that holds the data shards.
// Cursors of parts go on to the same entries. A row stays in the data shard that its column holds, and deletes, former
// and new ones, reach all parts: readers of several may have the row. Nothing is written into the table.
func TestMovedFeedKeepsOwnShards(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		makeTeamTable(x)
		x.Exec("INSERT INTO kv (id, v, shard, feed_sync_id) VALUES (6, 'f', 5, 6), (7, 'g', 5, 5), (8, 'h', 6, 4)")
		if !hasOwnShards(x) {
			return
		}
		spec := ownShards
		spec.Capture, spec.Adopt, spec.AdoptSequence, spec.Fence = x.Capture, true, "sequences", true
		f := x.Add(spec)
		_, start := x.Drain(f, "")
		x.Exec("UPDATE kv SET shard = 8 WHERE id = 6", "DELETE FROM kv WHERE id = 7")
		if err := f.InOwnTx(x.Ctx, func(tx rowfeed.Tx) error {
			return f.Unpublish(x.Ctx, tx, rowfeed.Key{int64(8)})
		}); err != nil {
			x.Fatal(err)
		}
		x.Publish(f)
		x.Exec("UPDATE kv SET v = 'A' WHERE id = 1") // waits
		parts := []rowfeed.Shards{{}, rowfeed.Part(0, 2), rowfeed.Part(1, 2), rowfeed.One(3), rowfeed.One(6),
			rowfeed.One(8)}
		lines := func(part rowfeed.Shards, after rowfeed.Cursor) []string {
			return slices.DeleteFunc(linesOf(x, f, part, after), func(line string) bool {
				return strings.HasPrefix(line, `upsert {"id":1,`)
			})
		}
		want := map[string][]string{}
		for _, after := range []rowfeed.Cursor{"", "5", start} {
			for _, part := range parts {
				want[fmt.Sprint(part, after)] = lines(part, after)
			}
		}
		if got := want[fmt.Sprint(rowfeed.One(6), start)]; len(got) != 2 { // of another part, and of its own
			x.Errorf("before the move, shard 6 has %q", got)
		}
		rows := x.List("SELECT feed_sync_id FROM kv WHERE id > 1 ORDER BY id")
		if changed, err := f.Admin().MovePositions(x.Ctx, nil); err != nil || !changed {
			x.Fatalf("changed %v, %v", changed, err)
		}
		for _, after := range []rowfeed.Cursor{"", "5", start} {
			for _, part := range parts {
				if got, want := lines(part, after), want[fmt.Sprint(part, after)]; !slices.Equal(got, want) {
					x.Errorf("%v above %q: %q, want %q", part, after, got, want)
				}
			}
		}
		wantShard(x, f, 3, "9", suite.Gone(7), rowOf(1, "A", 3))
		x.WantSound(f)

		_, head := x.Drain(f, "")
		for _, s := range []string{"DELETE FROM kv WHERE id = 6", "UPDATE kv SET shard = 8 WHERE id = 3"} {
			x.DB.Exec(x.T, s)
		}
		x.Publish(f)
		wantShard(x, f, 5, head, suite.Gone(6))
		wantShard(x, f, 8, head, suite.Gone(6), rowOf(3, "c", 8))
		wantShard(x, f, 7, head, suite.Gone(6))
		x.DB.Exec(x.T, "DELETE FROM kv WHERE id = 3")
		x.Publish(f)
		for _, shard := range []int{7, 8} {
			wantShard(x, f, shard, head, suite.Gone(6), suite.Gone(3))
		}
		x.DB.Exec(x.T, "INSERT INTO kv (id, v, shard) VALUES (3, 'new', 9)")
		x.Publish(f)
		wantShard(x, f, 9, head, suite.Gone(6), rowOf(3, "new", 9))
		x.WantSound(f)
		x.Reshard(f, 1024)
		x.Publish(f)
		if got := linesOf(x, f, rowfeed.One(9), head); !slices.Contains(got, suite.Gone(6)) ||
			!slices.Contains(got, rowOf(3, "new", 9)) {
			x.Errorf("after another number of data shards: %q", got)
		}
		x.WantSound(f)
		if got := x.List("SELECT feed_sync_id FROM kv WHERE id IN (2, 4, 5, 8) ORDER BY id"); !slices.Equal(got,
			[]string{rows[0], rows[2], rows[3], rows[5]}) {
			x.Errorf("positions in rows were %v and are %v", rows, got)
		}
	})
}
