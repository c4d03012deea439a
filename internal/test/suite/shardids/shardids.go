package shardids

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestShardIDs (M16, M17, M22, M47): a consumer without any count of shards reads every shard of a feed
// each of which is one by itself, negative ones too; one that comes while it runs is found, and
// begins at its beginning; a page without entries leaves every cursor alone.
func TestShardIDs(t *testing.T) {
	testdb.Quick(t)
	suite.EachKind(t, func(r *suite.Taker) {
		c := r.Consumer(r.Feed, r.RF)
		r.Once(c) // no shard yet
		r.WantCursors("test")
		r.Add(77, 1, 5)
		r.Add(-5, 10, 10)
		r.Once(c)
		r.WantApplied("-5: 10", "77: 1 2 3 4 5")
		heads := []string{"-5/1 " + string(headOf(r, -5)), "77/1 " + string(headOf(r, 77))}
		r.WantCursors("test", heads...)
		r.Once(c)
		r.WantCursors("test", heads...)

		stop := r.Run(c)
		r.Add(3, 20, 24)
		r.AwaitApplied("the new shard is found", "-5: 10", "3: 20 21 22 23 24", "77: 1 2 3 4 5")
		r.Add(77, 6, 6)
		r.AwaitApplied("a shard goes on", "-5: 10", "3: 20 21 22 23 24", "77: 1 2 3 4 5 6")
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		r.WantCursors("test", heads[0], "3/1 "+string(headOf(r, 3)), "77/1 "+string(headOf(r, 77)))
	})
}

// TestShardIDsStart (M22): where a consumer begins is looked up for the shards that there are; one that
// comes later begins at its beginning, also where nobody ran meanwhile.
func TestShardIDsStart(t *testing.T) {
	suite.EachKind(t, func(r *suite.Taker) {
		early := r.Consumer(r.Feed, r.RF)
		early.Name, early.Options.Start = "early", rowfeed.Now
		r.Once(early) // on a feed without any shard
		r.Add(1, 1, 3)
		r.Once(early)
		r.WantApplied("1: 1 2 3")
		r.Exec("DELETE FROM applied")
		headOf(r, 1) // what waits in an outbox is behind the head
		c := r.Consumer(r.Feed, r.RF)
		c.Options.Start = rowfeed.Now
		r.Once(c)
		r.WantApplied()
		r.Add(2, 10, 11)
		r.Add(1, 4, 4)
		r.Once(c)
		r.WantApplied("1: 4", "2: 10 11")
		stop := r.Run(c)
		r.Add(1, 5, 5)
		r.AwaitApplied("it is at work", "1: 4 5", "2: 10 11")
		r.Add(9, 20, 20)
		r.AwaitApplied("a shard that comes at work begins at its beginning", "1: 4 5", "2: 10 11", "9: 20")
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestShardIDsLate (M22): a row whose ULID was taken before, and is used late, moves no shard's state,
// and is read all the same.
func TestShardIDsLate(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		r := x.Taker(func(shard, first, last int) { x.Write(shard, first, last) })
		tx := x.Begin(sql.LevelReadCommitted)
		u := x.Lock(tx, rowfeed.LockRequest{Shards: []int{3}})
		x.Event(tx, 1, 3, x.At(u, 3, 0), "")
		late := x.At(u, 3, 1)
		x.Commit(tx)
		stop := r.Run(r.Consumer(r.Feed, r.RF))
		r.AwaitApplied("it is at the head", "3: 1")
		tx = x.Begin(sql.LevelReadCommitted)
		x.Event(tx, 2, 3, late, "")
		x.Commit(tx)
		r.AwaitApplied("the late one is read", "3: 1 2")
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

// behindSource is a source whose pages of a shard are behind what it says of its standings, as where
// one address leads to several servers.
type behindSource struct {
	*rowfeed.Feed
	shard int
	lags  atomic.Int64 // so many pages more
}

func (l *behindSource) Fetch(ctx context.Context, req rowfeed.Request) (rowfeed.Page, error) {
	if shard, _ := req.Shards.Numbers(); shard == l.shard && l.lags.Add(-1) >= 0 {
		return rowfeed.Page{Cursor: req.After, Standing: "as before"}, nil
	}
	return l.Feed.Fetch(ctx, req)
}

// TestShardIDsLag (M24): a shard whose page does not show what the source says is there is read again,
// until it does; not only when its turn comes among a hundred that nothing is known of.
func TestShardIDsLag(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		r := x.Taker(func(shard, first, last int) { x.Write(shard, first, last) })
		tx := x.Begin(sql.LevelReadCommitted)
		all := make([]int, 100)
		for i := range all {
			all[i] = i
		}
		u := x.Lock(tx, rowfeed.LockRequest{Shards: all})
		for i, shard := range all {
			x.Event(tx, i+1, shard, x.At(u, shard, 0), "")
		}
		x.Commit(tx)
		source := &behindSource{Feed: r.Feed, shard: 50}
		stop := r.Run(r.Consumer(source, r.RF))
		r.Eventually("all are at the head", func() bool { return r.Scalar("SELECT count(*) FROM applied") == 100 })
		source.lags.Store(3)
		r.Add(50, 1000, 1000)
		r.Eventually("the shard is read again", func() bool { return r.Scalar("SELECT count(*) FROM applied WHERE id = 1000") == 1 })
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

func init() {
	testdb.RegisterChild("shard ids", func() {
		err := suite.CrashingOn(func(ctx context.Context, rf *rowfeed.DB, _ *sql.DB) error {
			f, err := rf.Feed(ctx, "events")
			if err != nil {
				return err
			}
			return (&suite.Taker{}).Consumer(f, rf).RunOnce(ctx)
		})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	})
}

// TestShardIDsKilledAtEveryStatement (M8, M17, M47): a consumer of several shards is killed before
// each of its statements in turn; whatever it had done, every row takes effect once.
func TestShardIDsKilledAtEveryStatement(t *testing.T) {
	suite.EachKind(t, func(r *suite.Taker) {
		r.Add(-5, 1, 4)
		r.Add(77, 11, 12)
		for n := 1; ; n++ {
			child := testdb.CrashChild(r.T, "shard ids", "URL="+r.DB.URL, fmt.Sprint("N=", n))
			blocked := child.WaitMarker(r.Ctx)
			child.Kill()
			r.Once(r.Consumer(r.Feed, r.RF))
			r.WantApplied("-5: 1 2 3 4", "77: 11 12")
			if !blocked {
				return
			}
			if _, err := r.RF.Admin().DropConsumer(r.Ctx, rowfeed.ConsumerID{Consumer: "test"}); err != nil {
				t.Fatal(err)
			}
			r.Exec("DELETE FROM applied")
		}
	})
}
