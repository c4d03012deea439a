package ulidconsumer

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// lockedShard is a feed whose shard 5 another transaction has locked.
type lockedShard struct{ *rowfeed.Feed }

func (s lockedShard) Fetch(ctx context.Context, req rowfeed.Request) (rowfeed.Page, error) {
	if req.Shards == rowfeed.One(5) {
		return rowfeed.Page{}, &rowfeed.Error{Code: rowfeed.Locked, Cause: "another transaction has locked it"}
	}
	return s.Feed.Fetch(ctx, req)
}

// TestRunOnceSkipsLockedShard (M59): one shard is locked. RunOnce consumes all other shards to their heads, and returns
// the error of the locked one.
func TestRunOnceSkipsLockedShard(t *testing.T) {
	testdb.Only(t, testdb.SQLite) // the test is about no database
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

// TestLockedShardDoesNotDelayOthers (M59): another transaction locks a shard of a running consumer. The consumer
// reports that, and consumes its other shards meanwhile.
func TestLockedShardDoesNotDelayOthers(t *testing.T) {
	suite.EachHeld(t, func(x *suite.Events, hold func() func()) {
		r := x.Taker(nil)
		var troubles suite.Troubles
		c := r.Consumer(x.Feed, x.TappedDB(testdb.Hooks{}, &rowfeed.Config{Observer: troubles.Observer()}))
		r.Once(c)
		release := hold()
		x.Appended(3, 0, time.Time{})
		stop := r.Run(c)
		for id := 10; id < 13; id++ {
			x.Appended(id, 1, time.Time{})
		}
		r.AwaitApplied("the other shard is consumed", "0: 1", "1: 2 10 11 12")
		x.Eventually("the observer gets an error of the shard", func() bool {
			return troubles.Like(`feed "events", shard 0: `) > 0
		})
		release()
		r.AwaitApplied("the shard is consumed after it was locked", "0: 1 3", "1: 2 10 11 12")
		if err := stop(); err != nil && err != context.Canceled {
			t.Fatal(err)
		}
	})
}
