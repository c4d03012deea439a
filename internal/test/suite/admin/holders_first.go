package admin

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestHolderOfNewShardIsNamed (M44): two writers use a new shard at the same time. The error of the one whose wait
// ends is the same as for a shard that has been used before: it names the holder. Unblock ends the holder. The library
// and the functions lock alike.
func TestHolderOfNewShardIsNamed(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has one writer at a time, and names no sessions
	suite.EachULID(t, func(x *suite.Events) {
		library := func(tx *sql.Tx, shard int) error {
			_, err := x.Feed.Lock(x.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{shard}})
			return err
		}
		function := func(tx *sql.Tx, shard int) error {
			_, err := x.LockBySQL(tx, shard, "NULL")
			return err
		}
		x.Write(1, 1, 1)
		for i, lock := range []func(*sql.Tx, int) error{library, library, library, function, function} {
			shard := []int{1, 77, -5, 78, -2147483648}[i] // only shard 1 has been used before
			holder := x.BeginAs("has")
			id := x.Connection(holder)
			if err := lock(holder, shard); err != nil {
				x.Fatal(err)
			}
			w := x.Wait(shard)
			x.Eventually("holder and waiter are named", func() bool {
				_, s := x.ShardStatus(shard)
				return s.Holder != nil && s.Holder.Session == id && len(s.Waiting) == 1 && s.Waiting[0].Session == w.ID
			})
			for try := 1; ; try++ { // some databases renew what they tell of locks only from time to time
				late := x.BeginAs("late")
				req := rowfeed.LockRequest{Shards: []int{shard}, Wait: time.Second}
				_, err := x.Feed.Lock(x.Ctx, rowfeed.InTx(late), req)
				x.WantCode(err, rowfeed.Locked)
				late.Rollback()
				if strings.Contains(err.Error(), "longer than this one may wait: session "+id+" ") {
					break
				}
				if try == 5 {
					x.Fatalf("shard %d: %v", shard, err)
				}
			}
			found, err := x.Feed.Admin().Unblock(x.Ctx, admin.UnblockRequest{Shard: &shard})
			if err != nil || !found.Ended || found.Holder.Session != id {
				x.Fatalf("shard %d: %+v, %v", shard, found, err)
			}
			x.Got(w)
		}
		x.WantSound(x.Feed)
	})
}

// TestPreparedFirstHolderIsNamed (M44): the first transaction of a shard is a prepared one. Unblock names it.
func TestPreparedFirstHolderIsNamed(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...) // a transaction that InnoDB prepares (XA) keeps its session, or is not shown
	suite.EachULID(t, func(x *suite.Events) {
		tx := x.Begin(sql.LevelReadCommitted)
		x.Lock(tx, rowfeed.LockRequest{Shards: []int{5}})
		x.In(tx, x.Text("suite.prepare", "of "+x.DB.Name))
		tx.Rollback()
		_, err := x.Feed.Admin().Unblock(x.Ctx, admin.UnblockRequest{})
		if x.WantCode(err, rowfeed.Refused); !strings.Contains(err.Error(), x.Text("suite.prepare", "of "+x.DB.Name)) {
			x.Error(err)
		}
		x.Exec(x.Text("suite.rollback_prepared", "of "+x.DB.Name))
		x.Write(5, 2, 2)
	})
}
