package crash

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestMoveKilledAtEveryStatement (M28): positions are moved out of the rows, and the command is killed before each of
// its statements. Then former writers change, insert and delete rows, in both of the batches that the walk has, and a
// publisher publishes. A second call completes the move. A reader gets every change, and nothing twice that was not
// changed.
func TestMoveKilledAtEveryStatement(t *testing.T) {
	suite.EachColumn(t, func(x *suite.Env) {
		const rows = 510 // more than a batch of the walk
		n, step := x.Kills()
		for ; ; n += step {
			x.DB.Exec(x.T, "CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)")
			f := x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv", Capture: feedtype.CaptureColumn, Fence: n%2 == 0})
			var values []string
			for id := 1; id <= rows; id++ {
				values = append(values, fmt.Sprintf("(%d, 'a', 0)", id))
			}
			x.Exec("INSERT INTO kv VALUES " + strings.Join(values, ", "))
			_, cursor := x.Drain(f, "")
			x.Exec("UPDATE kv SET v = 1 WHERE id IN (1, 505)") // waits when the move begins
			before := x.Killed("move out of rows", n)
			when := fmt.Sprintf("killed at n=%d (%s)", n, before)

			// The statements of writers that know nothing of the move.
			x.Exec("UPDATE kv SET v = 2 WHERE id IN (2, 506)", "INSERT INTO kv VALUES (600, 'b', 3)",
				"DELETE FROM kv WHERE id = 3", "DELETE FROM kv WHERE id = 507")
			if err := f.InOwnTx(x.Ctx, func(tx rowfeed.Tx) error {
				return f.Delete(x.Ctx, tx, rowfeed.Key{int64(508)})
			}); err != nil {
				x.Fatalf("%s: %v", when, err)
			}
			got, cursor := x.Drain(f, cursor)
			all, _ := x.Drain(f, "")
			if slices.Sort(all); len(slices.Compact(slices.Clone(all))) != len(all) {
				x.Fatalf("%s: a page shows a row twice: %q", when, all)
			}
			late := x.Tapped(testdb.Hooks{}, nil) // it knows the feed as it is while positions are being moved
			if _, err := f.Admin().MovePositions(x.Ctx, nil); err != nil {
				x.Fatalf("%s: %v", when, err)
			}
			_, err := late.Fetch(x.Ctx, rowfeed.Request{After: cursor, Consistent: true})
			if err != nil {
				x.Fatalf("%s: %v", when, err)
			}
			more, cursor := x.Drain(f, cursor)
			got = append(got, more...)
			want := []string{suite.Gone(3), suite.Gone(507), suite.Gone(508), suite.KV(1, "a", 1),
				suite.KV(505, "a", 1), suite.KV(2, "a", 2), suite.KV(506, "a", 2), suite.KV(600, "b", 3)}
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(slices.Compact(got), want) {
				x.Fatalf("%s: entries %q, want %q", when, got, want)
			}
			x.DB.Exec(x.T, "UPDATE kv SET v = 4 WHERE id = 509")
			x.DB.Exec(x.T, "DELETE FROM kv WHERE id = 4")
			got, _ = x.Drain(f, cursor)
			if want := []string{suite.KV(509, "a", 4), suite.Gone(4)}; !slices.Equal(got, want) {
				x.Fatalf("%s: a new writer's changes are %q", when, got)
			}
			x.WantSound(f)
			if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil || x.Failed() {
				x.Fatalf("%s: %v", when, err)
			}
			x.Exec("DROP TABLE kv", "DELETE FROM rowfeed_feeds", "DELETE FROM rowfeed_terms")
			x.Columns = nil
			if before == "" {
				break
			}
		}
	})
}
