package consume

import (
	"context"
	"database/sql"
	"testing"

	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestShardAheadRestartsAllShards (H2, H24): a cursor above the head proves that the feed has lost positions, and that
// other keys have them since. All shards restart together with the refused one: by the time that the others fetch, the
// head may be above their cursors.
func TestShardAheadRestartsAllShards(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddShards(8), x.Receiver()
		c := r.ShardsOf(f, x.RF, 2)
		refused := 0
		c.Options.OnRefused = func(context.Context, *sql.Tx, error) error {
			refused++
			return nil
		}
		x.InsertKV(1, 11)
		x.Publish(f)
		r.Once(c)
		// A restored backup: the feed is at 10, and its consumer was at 12 and 15.
		x.Exec("UPDATE rowfeed_cursors SET value = '12' WHERE shard = 0",
			"UPDATE rowfeed_cursors SET value = '15' WHERE shard = 1")
		if _, err := x.RF.Admin().PauseConsumer(x.Ctx, shardID(0)); err != nil {
			x.Fatal(err)
		}
		_ = c.RunOnce(x.Ctx)                         // one shard is paused
		x.InsertIDs(suite.IDsOf(100, 3, 8, 0, 4)...) // positions 11 to 13, all of them the paused shard's
		x.Publish(f)
		if _, err := x.RF.Admin().ResumeConsumer(x.Ctx, shardID(0)); err != nil {
			x.Fatal(err)
		}
		r.Once(c)
		if n := x.Scalar("SELECT count(*) FROM applied WHERE id >= 100"); n != 3 || refused != 1 {
			x.Errorf("of 3 new rows %d were applied, after %d refusals; cursors %v", n, refused, x.Cursors("test"))
		}
	})
}

// TestRunOnceReachesHeadAfterRestart (H2, H24): RunOnce brings all shards to the head. That includes shards that had
// reached the head before the refusal of another shard restarted all of them.
func TestRunOnceReachesHeadAfterRestart(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddShards(8), x.Receiver()
		c := r.ShardsOf(f, x.RF, 2)
		c.Options.OnRefused = func(context.Context, *sql.Tx, error) error { return nil }
		x.InsertKV(1, 11)
		x.Publish(f)
		r.Once(c)
		x.Exec("UPDATE rowfeed_cursors SET value = '15' WHERE shard = 1")
		r.Once(c)
		if at, _ := x.Positions("test"); at[0] != 10 || at[1] != 10 {
			x.Errorf("cursors %v", x.Cursors("test"))
		}
	})
}
