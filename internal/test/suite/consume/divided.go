package consume

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestConsumersGoOnAfterReshard (M18, M22, H24, H25): a consumer of the whole feed and one of four parts go on when
// the feed gets another number of data shards. Nothing is asked of an operator. The whole consumer gets only what is
// new, and so does the one of parts from 1 to 1024 data shards. After another change it begins at its lowest cursor,
// with the dead letters of the keys that each part has now, and misses nothing.
func TestConsumersGoOnAfterReshard(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddKV(), x.Receiver()
		x.Fill(100)
		x.Publish(f)
		handed := map[string]int{}
		consumer := func(name string, count int, fail int64) *rowfeed.Consumer {
			c := r.ShardsOf(f, x.RF, count)
			c.Name, c.OnFailure = name, rowfeed.SetAside
			c.Options.OnRefused = func(_ context.Context, _ *sql.Tx, err error) error {
				x.Errorf("%s starts again: %v", name, err)
				return nil
			}
			c.Handle = func(_ context.Context, _ *sql.Tx, entries []rowfeed.Entry) error {
				for _, e := range entries {
					if id, _ := e.Key.Get("id"); id == fail {
						return errors.New("not this one")
					}
				}
				handed[name] += len(entries)
				return nil
			}
			return c
		}
		once := func(c *rowfeed.Consumer) int {
			x.Helper()
			handed[c.Name] = 0
			if err := c.RunOnce(x.Ctx); err != nil {
				x.Fatal(err)
			}
			return handed[c.Name]
		}
		once(consumer("whole", 1, 0))
		if n := once(consumer("test", 4, 7)); n != 99 {
			x.Errorf("the parts have %d entries", n)
		}
		for step, shards := range []int{1024, 6, 64, 1} {
			x.Exec(fmt.Sprintf("UPDATE kv SET v = %d WHERE id > 80", step+1))
			x.Publish(f)
			x.Reshard(f, shards)
			if n := once(consumer("whole", 1, 0)); n != 20 {
				x.Errorf("to %d data shards: the consumer of the whole feed gets %d entries of 20", shards, n)
			}
			n := once(consumer("test", 4, 7))
			if n < 20 || n > 40 || shards == 1024 && n != 20 {
				x.Errorf("to %d data shards: the consumer of parts gets %d entries of 20", shards, n)
			}
			wantLettersWithTheirKeys(r, feedtype.Division(shards), 4, 7)
			if n := once(consumer("test", 4, 7)); n != 0 {
				x.Errorf("to %d data shards: %d entries without a change", shards, n)
			}
		}
		err := consumer("test", 1025, 0).RunOnce(x.Ctx)
		x.WantCode(err, rowfeed.InvalidRequest)
	})
}
