package conformance

import (
	"context"
	"database/sql"
	"testing"
)

// TestOneShardAhead (H2, H24): a cursor above the head proves that the feed has lost
// positions, and that others have them since. The other shards begin again with the one that
// was refused: by the time that they ask, the head may be above them.
func TestOneShardAhead(t *testing.T) {
	each(t, func(x *env) {
		f, r := x.addShards(8), x.receiver()
		c := r.shardsOf(f, x.rf, 2)
		refused := 0
		c.OnRefused = func(context.Context, *sql.Tx, error) error {
			refused++
			return nil
		}
		x.insertKV(1, 11)
		x.publish(f)
		r.once(c)
		// As a restored backup leaves it: the feed is at 10, and its consumer was at 12 and 15.
		x.exec("UPDATE rowfeed_cursors SET value = '12' WHERE shard = 0", "UPDATE rowfeed_cursors SET value = '15' WHERE shard = 1")
		if _, err := x.rf.Admin().PauseConsumer(x.ctx, shardID(0)); err != nil {
			x.Fatal(err)
		}
		_ = c.RunOnce(x.ctx)                   // one shard is paused
		x.insertIDs(idsOf(100, 3, 8, 0, 4)...) // positions 11 to 13, all of them the paused shard's
		x.publish(f)
		if _, err := x.rf.Admin().ResumeConsumer(x.ctx, shardID(0)); err != nil {
			x.Fatal(err)
		}
		r.once(c)
		if n := x.scalar("SELECT count(*) FROM applied WHERE id >= 100"); n != 3 || refused != 1 {
			x.Errorf("of 3 new rows %d were applied, after %d refusals; cursors %v", n, refused, x.cursors("test"))
		}
	})
}

// TestShardsSetBackOnce (H2, H24): RunOnce brings all shards to the head, also those that
// were there when a later one was refused and set all of them back.
func TestShardsSetBackOnce(t *testing.T) {
	each(t, func(x *env) {
		f, r := x.addShards(8), x.receiver()
		c := r.shardsOf(f, x.rf, 2)
		c.OnRefused = func(context.Context, *sql.Tx, error) error { return nil }
		x.insertKV(1, 11)
		x.publish(f)
		r.once(c)
		x.exec("UPDATE rowfeed_cursors SET value = '15' WHERE shard = 1")
		r.once(c)
		if at, _ := x.positions("test"); at[0] != 10 || at[1] != 10 {
			x.Errorf("cursors %v", x.cursors("test"))
		}
	})
}
