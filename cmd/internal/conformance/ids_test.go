package conformance

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestShardIDs (M16, M17, M22, M47): a consumer without any count of shards reads every shard of a feed
// each of which is one by itself, negative ones too; one that comes while it runs is found, and
// begins at its beginning; a page without entries leaves every cursor alone.
func TestShardIDs(t *testing.T) {
	testdb.Quick(t)
	eachKind(t, func(r *taker) {
		c := r.consumer(r.feed, r.rf)
		r.once(c) // no shard yet
		r.wantCursors("test")
		r.add(77, 1, 5)
		r.add(-5, 10, 10)
		r.once(c)
		r.wantApplied("-5: 10", "77: 1 2 3 4 5")
		heads := []string{"-5/1 " + string(r.headOf(-5)), "77/1 " + string(r.headOf(77))}
		r.wantCursors("test", heads...)
		r.once(c)
		r.wantCursors("test", heads...)

		stop := r.run(c)
		r.add(3, 20, 24)
		r.awaitApplied("the new shard is found", "-5: 10", "3: 20 21 22 23 24", "77: 1 2 3 4 5")
		r.add(77, 6, 6)
		r.awaitApplied("a shard goes on", "-5: 10", "3: 20 21 22 23 24", "77: 1 2 3 4 5 6")
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		r.wantCursors("test", heads[0], "3/1 "+string(r.headOf(3)), "77/1 "+string(r.headOf(77)))
	})
}

// TestShardIDsStart (M22): where a consumer begins is looked up for the shards that there are; one that
// comes later begins at its beginning, also where nobody ran meanwhile.
func TestShardIDsStart(t *testing.T) {
	eachKind(t, func(r *taker) {
		early := r.consumer(r.feed, r.rf)
		early.Name, early.Start = "early", rowfeed.Now
		r.once(early) // on a feed without any shard
		r.add(1, 1, 3)
		r.once(early)
		r.wantApplied("1: 1 2 3")
		r.exec("DELETE FROM applied")
		r.headOf(1) // what waits in an outbox is behind the head
		c := r.consumer(r.feed, r.rf)
		c.Start = rowfeed.Now
		r.once(c)
		r.wantApplied()
		r.add(2, 10, 11)
		r.add(1, 4, 4)
		r.once(c)
		r.wantApplied("1: 4", "2: 10 11")
		stop := r.run(c)
		r.add(1, 5, 5)
		r.awaitApplied("it is at work", "1: 4 5", "2: 10 11")
		r.add(9, 20, 20)
		r.awaitApplied("a shard that comes at work begins at its beginning", "1: 4 5", "2: 10 11", "9: 20")
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestShardIDsLate (M22): a row whose ULID was taken before, and is used late, moves no shard's state,
// and is read all the same.
func TestShardIDsLate(t *testing.T) {
	eachULID(t, func(x *events) {
		r := x.taker(func(shard, first, last int) { x.write(shard, first, last) })
		tx := x.begin(sql.LevelReadCommitted)
		u := x.lock(tx, rowfeed.LockRequest{Shards: []int{3}})
		x.event(tx, 1, 3, x.at(u, 3, 0), "")
		late := x.at(u, 3, 1)
		x.commit(tx)
		stop := r.run(r.consumer(r.feed, r.rf))
		r.awaitApplied("it is at the head", "3: 1")
		tx = x.begin(sql.LevelReadCommitted)
		x.event(tx, 2, 3, late, "")
		x.commit(tx)
		r.awaitApplied("the late one is read", "3: 1 2")
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
	eachULID(t, func(x *events) {
		r := x.taker(func(shard, first, last int) { x.write(shard, first, last) })
		tx := x.begin(sql.LevelReadCommitted)
		all := make([]int, 100)
		for i := range all {
			all[i] = i
		}
		u := x.lock(tx, rowfeed.LockRequest{Shards: all})
		for i, shard := range all {
			x.event(tx, i+1, shard, x.at(u, shard, 0), "")
		}
		x.commit(tx)
		source := &behindSource{Feed: r.feed, shard: 50}
		stop := r.run(r.consumer(source, r.rf))
		r.eventually("all are at the head", func() bool { return r.scalar("SELECT count(*) FROM applied") == 100 })
		source.lags.Store(3)
		r.add(50, 1000, 1000)
		r.eventually("the shard is read again", func() bool { return r.scalar("SELECT count(*) FROM applied WHERE id = 1000") == 1 })
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

func init() {
	testdb.RegisterChild("shard ids", func() {
		err := crashingOn(func(ctx context.Context, rf *rowfeed.DB, _ *sql.DB) error {
			f, err := rf.Feed(ctx, "events")
			if err != nil {
				return err
			}
			return (&taker{}).consumer(f, rf).RunOnce(ctx)
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
	eachKind(t, func(r *taker) {
		r.add(-5, 1, 4)
		r.add(77, 11, 12)
		for n := 1; ; n++ {
			child := testdb.CrashChild(r.T, "shard ids", "URL="+r.db.URL, fmt.Sprint("N=", n))
			blocked := child.WaitMarker(r.ctx)
			child.Kill()
			r.once(r.consumer(r.feed, r.rf))
			r.wantApplied("-5: 1 2 3 4", "77: 11 12")
			if !blocked {
				return
			}
			if _, err := r.rf.Admin().DropConsumer(r.ctx, rowfeed.ConsumerID{Consumer: "test"}); err != nil {
				t.Fatal(err)
			}
			r.exec("DELETE FROM applied")
		}
	})
}
