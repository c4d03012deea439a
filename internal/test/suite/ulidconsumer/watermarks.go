package ulidconsumer

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

// TestWaitersShareWatermarks (M24): readers wait for the watermarks of all shards. They send no statement of their own,
// because the watcher's poll answers all of them. The answer has the new watermark of the shard that changed.
func TestWaitersShareWatermarks(t *testing.T) {
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
			answers := make(chan *feedtype.Standings, 2)
			for range cap(answers) {
				go func() {
					next, err := f.Standings(ctx, now.Digest, time.Minute)
					if err != nil {
						t.Error(err)
					}
					answers <- next
				}()
			}
			r.Add(2, id, id)
			headOf(r, 2) // moves the record of an outbox, which changes the watermark
			for range cap(answers) {
				next := <-answers
				if next == nil || next.Digest == now.Digest || len(next.Shards) != 2 ||
					next.Shards[1] != now.Shards[1] || next.Shards[2] == now.Shards[2] {
					t.Fatalf("a reader got %+v, and before it had %+v", next, now)
				}
			}
			if n := own.Load(); n > 0 {
				t.Errorf("waiting readers sent %d statements, want none", n)
			}
			if now, err = f.Standings(ctx, "", 0); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestRecordMovedDuringPollIsSeen (M24): a poll consists of several statements. The first record of a shard is moved
// before each of them in turn. The poll's answer always has a watermark for the shard.
func TestRecordMovedDuringPollIsSeen(t *testing.T) {
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
				x.Errorf("a record was moved before statement %d of a poll: shard %d has the watermark %q (%v)",
					at, shard, now.Shards[shard], now.Shards)
			}
		}
		if at < 3 {
			x.Fatalf("a poll had %d statements, want at least 2", at-1)
		}
	})
}

// disagreeing is a source like two servers at one address that answer with different digests.
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

// TestWatermarksWithoutRowsSlowRequestsDown (M24): a source reports new watermarks again and again, although there are
// no new rows. A worker sends its requests less and less often.
func TestWatermarksWithoutRowsSlowRequestsDown(t *testing.T) {
	testdb.Only(t, testdb.SQLite) // the test is about no database
	suite.EachULID(t, func(x *suite.Events) {
		r := x.Taker(func(shard, first, last int) { x.Write(shard, first, last) })
		r.Add(5, 1, 1)
		var checks atomic.Int64 // one each second
		rf := r.TappedDB(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if ev.Kind == testdb.Query && strings.HasPrefix(ev.SQL, "SELECT shard_count, version FROM ") {
				checks.Add(1)
			}
			return nil
		}}, nil)
		source := &disagreeing{Feed: r.Feed}
		stop := r.Run(r.Consumer(source, rf))
		r.AwaitApplied("the first row is consumed", "5: 1")
		from := checks.Load()
		r.Eventually("the worker checks its cursors", func() bool { return checks.Load() > from })
		asked, from := source.asked.Load(), checks.Load()
		r.Eventually("the worker checks its cursors again", func() bool { return checks.Load() > from+1 })
		if n := source.asked.Load() - asked; n > 100 {
			t.Errorf("the worker sent %d requests in two seconds", n)
		}
		r.Add(5, 2, 2)
		r.AwaitApplied("a new row is consumed", "5: 1 2")
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestOnlyMovedCursorsAreReadAgain (M24): a worker checks regularly whether operators have moved its cursors. Cursors
// that it stores itself do not make it read all cursors again, and those that an operator moves do.
func TestOnlyMovedCursorsAreReadAgain(t *testing.T) {
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
			case strings.HasPrefix(ev.SQL, "SELECT consumer, feed, shard, ") &&
				strings.HasSuffix(ev.SQL, " ORDER BY shard"):
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
			r.Eventually("the worker checks its cursors", func() bool { return checks.Load() > from+1 })
		}
		r.AwaitApplied("both shards are consumed", "5: 1", "6: 2")
		next() // the worker has read the cursors that it created
		before := reads.Load()
		r.Add(5, 3, 3)
		r.AwaitApplied("a new row is consumed", "5: 1 3", "6: 2")
		next()
		if n := reads.Load() - before; n > 0 {
			t.Errorf("all cursors were read %d times, although no operator moved one", n)
		}
		if _, err := r.RF.Admin().ResetConsumer(r.Ctx, eventID(6)); err != nil {
			t.Fatal(err)
		}
		r.AwaitApplied("the row of the reset shard is consumed again", "5: 1 3", "6: 2 2")
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestIdleStaleOwnerEnds (M24, M54): a worker's cursors are claimed under a later lease. The worker ends, even if there
// are no entries for which it would store a cursor.
func TestIdleStaleOwnerEnds(t *testing.T) {
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
		r.AwaitApplied("the row is consumed", "5: 1")
		r.Once(later)
		r.WantCode(<-ended, rowfeed.LeaseLost)
	})
}
