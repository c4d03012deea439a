package shardids

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// lockedShard is a feed whose shard 5 others have.
type lockedShard struct{ *rowfeed.Feed }

func (s lockedShard) Fetch(ctx context.Context, req rowfeed.Request) (rowfeed.Page, error) {
	if req.Shards == rowfeed.One(5) {
		return rowfeed.Page{}, &rowfeed.Error{Code: rowfeed.Locked, Cause: "somebody has it"}
	}
	return s.Feed.Fetch(ctx, req)
}

// TestHeldShardOnce (M59): who consumes to the heads once does so with all shards that are to be had, and is
// told of the one that is not.
func TestHeldShardOnce(t *testing.T) {
	testdb.Only(t, testdb.SQLite) // no database makes a difference
	suite.EachOutbox(t, func(x *suite.Events) {
		r := x.Taker(nil)
		c := r.Consumer(lockedShard{x.Feed}, x.RF)
		c.Options.Retry.Backoff, c.Options.Retry.MaxBackoff, c.Options.Limit = 1, 1, 1
		x.Appended(1, 5, time.Time{})
		want := "6:"
		for id := 10; id < 40; id++ {
			x.Appended(id, 6, time.Time{})
			want += fmt.Sprint(" ", id)
		}
		x.WantCode(c.RunOnce(x.Ctx), rowfeed.Locked)
		r.WantApplied(want)
	})
}

// TestHeldShardConsumer (M59): a worker whose shard somebody has goes on with its others.
func TestHeldShardConsumer(t *testing.T) {
	suite.EachHeld(t, func(x *suite.Events, hold func() func()) {
		r := x.Taker(nil)
		var told suite.Troubles
		c := r.Consumer(x.Feed, x.TappedDB(testdb.Hooks{}, &rowfeed.Config{Observer: told.Observer()}))
		r.Once(c)
		letGo := hold()
		x.Appended(3, 0, time.Time{})
		stop := r.Run(c)
		for id := 10; id < 13; id++ {
			x.Appended(id, 1, time.Time{})
		}
		r.AwaitApplied("the other shard while one is held", "0: 1", "1: 2 10 11 12")
		x.Eventually("it tells of the shard", func() bool { return told.Like(`feed "events", shard 0: `) > 0 })
		letGo()
		r.AwaitApplied("the shard that was held", "0: 1 3", "1: 2 10 11 12")
		if err := stop(); err != nil && err != context.Canceled {
			t.Fatal(err)
		}
	})
}
