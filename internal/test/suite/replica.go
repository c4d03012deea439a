package suite

import (
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// Replicated is a primary with a feed, and a replica of it.
type Replicated struct {
	*Env
	Feed    *rowfeed.Feed
	Replica *testdb.Server
}

// EachReplicated runs f on the engines that testdb can replicate, with the feed kv on the primary.
func EachReplicated(t *testing.T, f func(x *Replicated)) {
	for _, e := range []testdb.Engine{testdb.Postgres15, testdb.MariaDB} {
		t.Run(e.Name, func(t *testing.T) {
			e.Require(t)
			primary := e.Primary(t)
			replica := primary.Replica(t)
			x := OpenEnv(t, primary.NewDatabase(t), nil)
			x.Migrate()
			f(&Replicated{x, x.AddKV(), replica})
		})
	}
}

// On waits until the replica has the feed, and opens the feed there.
func (x *Replicated) On(cfg rowfeed.Config) (*Env, *rowfeed.Feed) {
	x.Helper()
	db := x.DB.On(x.T, x.Replica)
	x.Eventually("the feed is on the replica", func() bool {
		return db.Admin().QueryRow("SELECT 1 FROM rowfeed_positions_kv WHERE feed_sync_id = 0").Err() == nil
	})
	y := OpenEnv(x.T, db, &cfg)
	f, err := y.RF.Feed(x.Ctx, "kv")
	if err != nil {
		x.Fatal(err)
	}
	return y, f
}

// Reaches waits until the replica shows the head.
func (x *Replicated) Reaches(f *rowfeed.Feed, head rowfeed.Cursor) {
	x.Helper()
	x.Eventually("the replica shows the head", func() bool {
		return Place(x.Fetch(f, rowfeed.Now, 1).Cursor) == Place(head)
	})
}
