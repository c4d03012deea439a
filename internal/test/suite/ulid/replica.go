package ulid

import (
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestReplicaShowsULIDsBeforePrimary (H26): a replica shows the rows of a shard before the primary does. While the
// writer's transaction is open, the primary only asks a reader with a cursor from the replica to try again. That is so
// for a shard that has rows and for a new one. Afterwards the reader continues.
func TestReplicaShowsULIDsBeforePrimary(t *testing.T) {
	suite.EachReplicated(t, func(r *suite.Replicated) {
		r.MakeEvents()
		x := &suite.Events{Env: r.Env, Feed: r.Add(suite.EventsSpec())}
		x.Write(0, 1, 1)
		y, _ := r.On(rowfeed.Config{Replica: true})
		var there *rowfeed.Feed
		x.Eventually("the replica has the rows", func() (ok bool) {
			var err error
			if there, err = y.RF.Feed(x.Ctx, "events"); err != nil {
				return false
			}
			page, err := there.Fetch(x.Ctx, rowfeed.Request{Shards: rowfeed.One(0)})
			return err == nil && len(page.Entries) == 1
		})
		for shard := range 2 {
			id := 2 + shard
			before := x.Page(there, shard, rowfeed.Now, 1).Cursor
			release := x.DB.Server().HoldCommits(t)
			written := make(chan struct{})
			go func() {
				defer close(written)
				x.Write(shard, id, id)
			}()
			ahead := before
			x.Eventually("the replica shows the commit", func() bool {
				ahead = x.Page(there, shard, rowfeed.Now, 1).Cursor
				return ahead != before
			})
			_, err := x.Feed.Fetch(x.Ctx, rowfeed.Request{After: ahead, Shards: rowfeed.One(shard)})
			x.WantCode(err, rowfeed.Locked)
			release()
			<-written
			x.Write(shard, id+10, id+10)
			x.WantIDs(x.Page(x.Feed, shard, ahead, 10), false, id+10)
		}
	})
}
