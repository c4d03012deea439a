package outbox

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestKilledDropOfOutboxCanBeRepeated (M63): `feed drop` of a feed with an outbox and a trigger is killed before each
// of its statements, and run again. Writers never fail, and nothing is left, also if the table was dropped first.
func TestKilledDropOfOutboxCanBeRepeated(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.OldRows(3)
		fresh := x.DB.Dump(x.T)
		n, step := x.Kills()
		for ; ; n += step {
			x.Add(suite.BackfillSpec())
			before := x.Killed("drop", n)
			x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 0, NULL)", 10+n))
			for range 2 {
				if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
					x.Fatalf("killed at n=%d (%s): %v", n, before, err)
				}
			}
			if got := x.DB.Dump(x.T); got != fresh || x.Scalar("SELECT count(*) FROM rowfeed_shards") != 0 {
				x.Fatalf("killed at n=%d (%s): the schema is\n%s\nwant\n%s", n, before, got, fresh)
			}
			if before == "" {
				break
			}
		}
		x.Add(suite.BackfillSpec())
		x.Exec("DROP TABLE kv")
		gone := x.DB.Dump(x.T)
		for range 2 {
			if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
				x.Fatal(err)
			}
		}
		for _, name := range []string{"rowfeed_outbox_kv", "rowfeed_feed_kv", "rowfeed_kv_capture"} {
			if got := x.DB.Dump(x.T); strings.Contains(got, name) {
				x.Errorf("%s is left of\n%s", name, gone)
			}
		}
	})
}

// TestKilledBackFillCanBeRepeated (M62): `feed add` with back-fill, and a later back-fill, are killed before each of
// their statements, and run again. The feed then has every row once, and writers have not failed.
func TestKilledBackFillCanBeRepeated(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.OldRows(20)
		y := &suite.Events{Env: x, Feed: x.Add(suite.BackfillSpec())}
		undisturbed := x.DB.Dump(x.T)
		n, step := x.Kills()
		for round := 1; ; round, n = round+1, n+step {
			if round%2 == 1 { // add the feed anew; in other rounds, import rows
				if err := x.RF.DropFeed(x.Ctx, "kv"); err != nil {
					x.Fatal(err)
				}
			} else {
				unrecorded(y.Env, 100*round, 100*round+3)
			}
			before := x.Killed("backfill", n)
			live := 1_000_000 + round
			x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 0, NULL)", live))
			f, err := x.RF.AddFeed(x.Ctx, suite.BackfillSpec(), nil)
			if err == nil && round%2 == 0 { // in other rounds `feed add` has to fill the feed
				_, err = f.Admin().BackFill(x.Ctx, nil)
			}
			if y.Feed = f; err != nil {
				x.Fatalf("killed at n=%d (%s): %v", n, before, err)
			}
			var all []int64
			for _, row := range x.List("SELECT id FROM kv ORDER BY id") {
				var id int64
				fmt.Sscan(row, &id)
				all = append(all, id)
			}
			var got []int64
			for _, id := range slices.Concat(y.IDs(0), y.IDs(3)) {
				got = append(got, int64(id))
			}
			if slices.Sort(got); !slices.Equal(got, all) {
				x.Fatalf("killed at n=%d (%s): rows %v\nwant %v", n, before, got, all)
			}
			if dump := x.DB.Dump(x.T); dump != undisturbed {
				x.Fatalf("killed at n=%d (%s): the schema is\n%s\nwant\n%s", n, before, dump, undisturbed)
			}
			if before == "" && round%2 == 1 {
				break
			}
		}
		y.WantSound(y.Feed)
	})
}
