package shardids

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestStandingsShared (M24): who waits for all shards of a feed is answered with what the watcher's look has
// shown, which all share, and sends no statement of its own; what it is told is how far the shards are.
func TestStandingsShared(t *testing.T) {
	suite.EachKind(t, func(r *suite.Taker) {
		type mark struct{}
		var own atomic.Int64
		rf := r.TappedDB(testdb.Hooks{Before: func(ctx context.Context, ev testdb.TapEvent) error {
			if (ev.Kind == testdb.Query || ev.Kind == testdb.Exec) && ctx.Value(mark{}) != nil {
				own.Add(1)
			}
			return nil
		}}, nil)
		f, err := rf.Feed(r.Ctx, "events")
		if err != nil {
			t.Fatal(err)
		}
		r.Add(1, 1, 1)
		r.Add(2, 2, 2)
		ctx := context.WithValue(r.Ctx, mark{}, true)
		now, err := f.Standings(ctx, "", 0)
		if err != nil || own.Load() == 0 {
			t.Fatalf("%d statements, %v", own.Load(), err)
		}
		for id := 10; id < 13; id++ {
			own.Store(0)
			news := make(chan *feedtype.Standings, 2)
			for range cap(news) {
				go func() {
					next, err := f.Standings(ctx, now.Digest, time.Minute)
					if err != nil {
						t.Error(err)
					}
					news <- next
				}()
			}
			r.Add(2, id, id)
			headOf(r, 2) // an outbox's record is moved, which is news, too
			for range cap(news) {
				next := <-news
				if next == nil || next.Digest == now.Digest || len(next.Shards) != 2 || next.Shards[1] != now.Shards[1] || next.Shards[2] == now.Shards[2] {
					t.Fatalf("%+v, before %+v", next, now)
				}
			}
			if n := own.Load(); n > 0 {
				t.Errorf("%d statements of those who wait", n)
			}
			if now, err = f.Standings(ctx, "", 0); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestMovedUnderALook (M24): a record that is moved between two statements of one look is in one of
// them, at least: its shard, moved for the first time, is never told of as if it had nothing.
func TestMovedUnderALook(t *testing.T) {
	suite.EachOutbox(t, func(x *suite.Events) {
		type mark struct{}
		shard, at, statements := 0, 0, 0
		rf := x.TappedDB(testdb.Hooks{Before: func(ctx context.Context, ev testdb.TapEvent) error {
			if ctx.Value(mark{}) == nil || ev.Kind != testdb.Query {
				return nil
			}
			if statements++; statements == at {
				x.Page(x.Feed, shard, rowfeed.Beginning, 100)
			}
			return nil
		}}, nil)
		f, err := rf.Feed(x.Ctx, "events")
		if err != nil {
			x.Fatal(err)
		}
		ctx := context.WithValue(x.Ctx, mark{}, true)
		for at = 1; at <= max(statements, 1); at++ {
			shard, statements = at, 0
			x.Appended(at, shard, time.Time{})
			now, err := f.Standings(ctx, "", 0)
			if err != nil {
				x.Fatal(err)
			}
			if now.Shards[shard] == "" || now.Shards[shard] == "1:0" {
				x.Errorf("moved before statement %d of a look, shard %d is told of as %q (%v)", at, shard, now.Shards[shard], now.Shards)
			}
		}
		if at < 3 {
			x.Fatalf("a look of %d statements", at-1)
		}
	})
}

// disagreeing are two servers at one address that do not agree, neither now nor later.
type disagreeing struct {
	*rowfeed.Feed
	asked atomic.Int64
}

func (d *disagreeing) Standings(ctx context.Context, _ string, _ time.Duration) (*feedtype.Standings, error) {
	n := d.asked.Add(1)
	now, err := d.Feed.Standings(ctx, "", 0)
	if err == nil {
		now = &feedtype.Standings{Digest: fmt.Sprint(n % 2), Shards: now.Shards}
	}
	return now, err
}

// TestShardIDsDisagree (M24): a worker that is told of news again and again, which bring nothing to do, asks
// ever less often.
func TestShardIDsDisagree(t *testing.T) {
	testdb.Only(t, testdb.SQLite) // the database has no part in it
	suite.EachULID(t, func(x *suite.Events) {
		r := x.Taker(func(shard, first, last int) { x.Write(shard, first, last) })
		r.Add(5, 1, 1)
		var checks atomic.Int64 // one a second
		rf := r.TappedDB(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if ev.Kind == testdb.Query && strings.HasPrefix(ev.SQL, "SELECT shard_count, version FROM ") {
				checks.Add(1)
			}
			return nil
		}}, nil)
		source := &disagreeing{Feed: r.Feed}
		stop := r.Run(r.Consumer(source, rf))
		r.AwaitApplied("the first", "5: 1")
		from := checks.Load()
		r.Eventually("it checks", func() bool { return checks.Load() > from })
		asked, from := source.asked.Load(), checks.Load()
		r.Eventually("it checks again", func() bool { return checks.Load() > from+1 })
		if n := source.asked.Load() - asked; n > 100 {
			t.Errorf("asked %d times in two seconds", n)
		}
		r.Add(5, 2, 2)
		r.AwaitApplied("what comes is read", "5: 1 2")
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestShardIDsCheck (M24): what a worker writes behind its pages does not have it, or others, read all cursors
// again; what an operator moves does.
func TestShardIDsCheck(t *testing.T) {
	testdb.Only(t, testdb.SQLite) // the statements are the same everywhere
	suite.EachULID(t, func(x *suite.Events) {
		r := x.Taker(func(shard, first, last int) { x.Write(shard, first, last) })
		r.Add(5, 1, 1)
		r.Add(6, 2, 2)
		var checks, reads atomic.Int64
		rf := r.TappedDB(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			switch {
			case strings.HasPrefix(ev.SQL, "SELECT shard_count, version FROM "):
				checks.Add(1)
			case strings.HasPrefix(ev.SQL, "SELECT consumer, feed, shard, ") && strings.HasSuffix(ev.SQL, " ORDER BY shard"):
				reads.Add(1)
			}
			return nil
		}}, nil)
		f, err := rf.Feed(r.Ctx, "events")
		if err != nil {
			t.Fatal(err)
		}
		stop := r.Run(r.Consumer(f, rf))
		next := func() {
			from := checks.Load()
			r.Eventually("it checks", func() bool { return checks.Load() > from+1 })
		}
		r.AwaitApplied("both are read", "5: 1", "6: 2")
		next() // what it made itself it has read
		before := reads.Load()
		r.Add(5, 3, 3)
		r.AwaitApplied("it goes on", "5: 1 3", "6: 2")
		next()
		if n := reads.Load() - before; n > 0 {
			t.Errorf("all cursors were read %d times, and nobody has moved one", n)
		}
		if _, err := r.RF.Admin().ResetConsumer(r.Ctx, eventID(6)); err != nil {
			t.Fatal(err)
		}
		r.AwaitApplied("it comes again", "5: 1 3", "6: 2 2")
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestShardIDsDeposedAtRest (M24, M54): a worker whose cursors were claimed under a later lease ends, also
// where nothing comes that it would have to write.
func TestShardIDsDeposedAtRest(t *testing.T) {
	testdb.Only(t, testdb.SQLite) // the statements are the same everywhere
	suite.EachULID(t, func(x *suite.Events) {
		r := x.Taker(func(shard, first, last int) { x.Write(shard, first, last) })
		r.Add(5, 1, 1)
		former := &rowfeed.RelayConsumer{Consumer: *r.Consumer(r.Feed, r.RF), Epoch: 1}
		later := &rowfeed.RelayConsumer{Consumer: *r.Consumer(r.Feed, r.RF), Epoch: 2}
		ctx, cancel := context.WithTimeout(r.Ctx, suite.Patience())
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- former.Run(ctx) }()
		r.AwaitApplied("the first", "5: 1")
		r.Once(later)
		r.WantCode(<-ended, rowfeed.LeaseLost)
	})
}
