package ulidconsumer

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

// TestConsumerReadsEveryShard (M16, M17, M22, M47): a consumer without a shard count reads every shard of a ULID feed,
// also negative ones. A shard that is added while it runs is read from its beginning. Pages without entries change no
// cursor.
func TestConsumerReadsEveryShard(t *testing.T) {
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
		r.AwaitApplied("the new shard is consumed", "-5: 10", "3: 20 21 22 23 24", "77: 1 2 3 4 5")
		r.Add(77, 6, 6)
		r.AwaitApplied("a new row is consumed", "-5: 10", "3: 20 21 22 23 24", "77: 1 2 3 4 5 6")
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		r.WantCursors("test", heads[0], "3/1 "+string(headOf(r, 3)), "77/1 "+string(headOf(r, 77)))
	})
}

// TestNewShardIsReadFromBeginning (M22): a consumer's Start applies to the shards that exist when it starts. Shards
// that are added later are read from their beginning, even if the consumer did not run at the time.
func TestNewShardIsReadFromBeginning(t *testing.T) {
	suite.EachKind(t, func(r *suite.Taker) {
		early := r.Consumer(r.Feed, r.RF)
		early.Name, early.Options.Start = "early", rowfeed.Now
		r.Once(early) // the feed has no shard
		r.Add(1, 1, 3)
		r.Once(early)
		r.WantApplied("1: 1 2 3")
		r.Exec("DELETE FROM applied")
		headOf(r, 1) // moves the records of an outbox, which would be after the head
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
		r.AwaitApplied("the consumer runs", "1: 4 5", "2: 10 11")
		r.Add(9, 20, 20)
		r.AwaitApplied("a new shard is read from its beginning", "1: 4 5", "2: 10 11", "9: 20")
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestRowWithEarlierULIDIsRead (M22): a row has a ULID that an earlier transaction locked, so that its commit does not
// change the shard's state. A running consumer reads it.
func TestRowWithEarlierULIDIsRead(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		r := x.Taker(func(shard, first, last int) { x.Write(shard, first, last) })
		tx := x.Begin(sql.LevelReadCommitted)
		u := x.Lock(tx, rowfeed.LockRequest{Shards: []int{3}})
		x.Event(tx, 1, 3, x.At(u, 3, 0), "")
		late := x.At(u, 3, 1)
		x.Commit(tx)
		stop := r.Run(r.Consumer(r.Feed, r.RF))
		r.AwaitApplied("the consumer is at the head", "3: 1")
		tx = x.Begin(sql.LevelReadCommitted)
		x.Event(tx, 2, 3, late, "")
		x.Commit(tx)
		r.AwaitApplied("the row with the earlier ULID is consumed", "3: 1 2")
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

// behindSource is a source whose pages of a shard are behind its watermarks, as if several servers had one address.
type behindSource struct {
	*rowfeed.Feed
	shard int
	lags  atomic.Int64 // the number of outdated pages
}

func (l *behindSource) Fetch(ctx context.Context, req rowfeed.Request) (rowfeed.Page, error) {
	if shard, _ := req.Shards.Numbers(); shard == l.shard && l.lags.Add(-1) >= 0 {
		return rowfeed.Page{Cursor: req.After, Standing: "as before"}, nil
	}
	return l.Feed.Fetch(ctx, req)
}

// TestShardIsReadUntilPageShowsWatermark (M24): a page does not show what the watermark of its shard says. The consumer
// reads the shard again until a page does, and does not wait for the shard's turn among all shards.
func TestShardIsReadUntilPageShowsWatermark(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		r := x.Taker(func(shard, first, last int) { x.Write(shard, first, last) })
		addToShards(x, 0, 100)
		source := &behindSource{Feed: r.Feed, shard: 50}
		stop := r.Run(r.Consumer(source, r.RF))
		r.Eventually("all shards are consumed", func() bool { return r.Scalar("SELECT count(*) FROM applied") == 100 })
		source.lags.Store(3)
		r.Add(50, 1000, 1000)
		r.Eventually("the row is consumed", func() bool {
			return r.Scalar("SELECT count(*) FROM applied WHERE id = 1000") == 1
		})
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

func init() {
	testdb.RegisterChild("ulid consumer once", func() {
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

// TestKilledConsumerAppliesRowsOnce (M8, M17, M47): a consumer of several shards is killed before each of its
// statements in turn. After another run every row has taken effect once.
func TestKilledConsumerAppliesRowsOnce(t *testing.T) {
	suite.EachKind(t, func(r *suite.Taker) {
		r.Add(-5, 1, 4)
		r.Add(77, 11, 12)
		n, step := r.Kills()
		for ; ; n += step {
			child := testdb.CrashChild(r.T, "ulid consumer once", "URL="+r.DB.URL, fmt.Sprint("N=", n))
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
