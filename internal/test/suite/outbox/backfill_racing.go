package outbox

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestConcurrentBackFillsLoseNothing (M62): two back-fills run concurrently with writers, and with readers that move
// what is written. Each reader at the head sees every live row once, in one order, and nothing else. From the beginning
// every row is there once.
func TestConcurrentBackFillsLoseNothing(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		const old, writers, turns = 2500, 3, 60
		x.OldRows(0)
		spec := suite.BackfillSpec()
		spec.TimeColumn = "" // all rows get the same time
		y := &suite.Events{Env: x, Feed: x.Add(spec)}
		unrecorded(y.Env, 1, old)
		var start [2]rowfeed.Cursor
		x.Exec("INSERT INTO kv VALUES (100000, 0, NULL)", "INSERT INTO kv VALUES (100001, 3, NULL)")
		x.Publish(y.Feed)
		for i, shard := range []int{0, 3} {
			start[i] = y.Page(y.Feed, shard, rowfeed.Now, 10).Cursor
		}
		var writing, reading sync.WaitGroup
		var done atomic.Bool
		for w := range writers {
			pool := y.Writer(testdb.Hooks{})
			writing.Go(func() {
				for turn := range turns {
					id := 10_000*(w+1) + turn
					insert := fmt.Sprintf("INSERT INTO kv VALUES (%d, %d, NULL)", id, 3*(turn%2))
					if _, err := pool.ExecContext(x.Ctx, insert); err != nil {
						x.Error(err)
						return
					}
				}
			})
		}
		var orders [2][2][]int
		for r := range orders {
			reading.Go(func() {
				after := start
				for last := false; !last; {
					last = done.Load()
					for i, shard := range []int{0, 3} {
						for more := true; more; {
							page, err := y.TryPage(y.Feed, shard, after[i], 20)
							if err != nil {
								x.Error(err)
								return
							}
							for _, e := range page.Entries {
								orders[r][i] = append(orders[r][i], idOf(e))
							}
							after[i], more = page.Cursor, page.More || len(page.Entries) > 0
						}
					}
				}
			})
		}
		errs := make(chan error, 2)
		for range 2 {
			go func() { errs <- backFill(x, "kv", testdb.Hooks{}) }()
		}
		writing.Wait()
		if err := errors.Join(<-errs, <-errs); err != nil {
			x.Error(err)
		}
		done.Store(true)
		reading.Wait()
		for i, shard := range []int{0, 3} {
			if !slices.Equal(orders[0][i], orders[1][i]) || len(orders[0][i]) != writers*turns/2 {
				x.Errorf("shard %d: one reader saw %d rows, the other %d:\n%v\n%v", shard, len(orders[0][i]),
					len(orders[1][i]), orders[0][i], orders[1][i])
			}
			want := slices.Concat(rowsOf(shard, 1, old), []int{100000 + shard/3}, orders[0][i])
			got := y.IDs(shard)
			slices.Sort(want)
			if slices.Sort(got); !slices.Equal(got, want) {
				x.Errorf("shard %d has %d rows, want %d", shard, len(got), len(want))
			}
		}
		y.WantSound(y.Feed)
	})
}
