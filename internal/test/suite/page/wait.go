package page

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// pageReads matches the statement that reads a page.
func pageReads(ev testdb.TapEvent) bool {
	return ev.Kind == testdb.Query && strings.HasPrefix(ev.SQL, "SELECT f.generation, f.tombstones_below")
}

// waiter starts a Fetch that waits for an entry, for at most suite.Patience.
func waiter(x *suite.Env, f rowfeed.Source, after rowfeed.Cursor) <-chan suite.Fetched {
	result := make(chan suite.Fetched, 1)
	ctx, cancel := context.WithTimeout(x.Ctx, suite.Patience())
	x.Cleanup(cancel)
	go func() {
		page, err := f.Fetch(ctx, rowfeed.Request{After: after, Wait: suite.Never})
		result <- suite.Fetched{Page: page, Err: err}
	}()
	return result
}

// TestNoLostWakeUp (M69, H30): a waiter gets an entry that is published before it reads, after it has read nothing and
// before it waits, or while the watcher's poll is in progress. The publisher is in another process, or in the same one
// without any poll.
func TestNoLostWakeUp(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		x.AddKV()
		x.Fill(1)
		other, err := x.RF.Feed(x.Ctx, "kv") // of another DB, as in another process
		if err != nil {
			x.Fatal(err)
		}
		x.Publish(other)
		head := 1
		for _, moment := range []string{"before the read", "after the read", "during a poll"} {
			for _, same := range []bool{true, false} {
				if same && moment == "during a poll" {
					continue
				}
				x.Logf("%s, publisher of the same process: %v", moment, same)
				g := suite.NewGate()
				cfg := &rowfeed.Config{WatchPoll: 2 * time.Millisecond, Observer: &rowfeed.Observer{}}
				if same {
					cfg.WatchPoll = suite.Never
				}
				hooks := testdb.Hooks{}
				switch moment {
				case "before the read":
					hooks.Before = func(_ context.Context, ev testdb.TapEvent) error {
						if pageReads(ev) {
							g.Pass()
						}
						return nil
					}
				case "after the read":
					cfg.Observer.Fetched = func(rowfeed.FetchEvent) { g.Pass() }
				default:
					hooks.After = func(_ context.Context, ev testdb.TapEvent, err error) error {
						if suite.ReadsStandings(ev) {
							g.Pass()
						}
						return err
					}
				}
				f := x.Tapped(hooks, cfg)
				result := waiter(x, f, rowfeed.Cursor(fmt.Sprint(head)))
				<-g.Reached
				head++
				x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", head))
				if same {
					x.Publish(f)
				} else {
					x.Publish(other)
				}
				close(g.Open)
				x.WantWoken(result, rowfeed.Cursor(fmt.Sprint(head)), suite.KV(head, "k", 0))
			}
		}
	})
}

// TestWaitOutlastsEmptyWakeUps (M69, H30): a position without an entry does not end a wait, and neither does an entry
// of another feed. The waiter reads no position twice: after such a position, it waits above it.
func TestWaitOutlastsEmptyWakeUps(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		reads := make(chan rowfeed.FetchEvent, 100)
		x := suite.NewEnv(t, e, &rowfeed.Config{WatchPoll: suite.Never, Observer: &rowfeed.Observer{
			Fetched: func(e rowfeed.FetchEvent) { reads <- e },
		}})
		x.Migrate()
		f := x.AddKV()
		x.Exec("CREATE TABLE other (id BIGINT NOT NULL PRIMARY KEY)")
		g := x.Add(rowfeed.FeedSpec{Name: "other", Table: "other"})
		x.Fill(1)
		x.Publish(f)
		head := x.Fetch(f, rowfeed.Now, 1).Cursor
		<-reads
		result := waiter(x, f, head) // the process knows that this is the head, so it reads no page
		x.Exec("INSERT INTO other VALUES (1)")
		x.Publish(g)
		x.Exec("INSERT INTO kv VALUES (2, 'k', 0)", "DELETE FROM kv WHERE id = 2")
		x.Publish(f) // position 2 has no entry
		if e := <-reads; e.Entries != 0 {
			x.Fatalf("read %+v", e)
		}
		select {
		case got := <-result:
			x.Fatalf("the wait has ended with %d entries, %v", len(got.Page.Entries), got.Err)
		default:
		}
		x.Exec("INSERT INTO kv VALUES (3, 'k', 0)")
		x.Publish(f)
		x.WantWoken(result, "3", suite.KV(3, "k", 0))
		if e := <-reads; e.Entries != 1 || len(reads) != 0 {
			x.Errorf("read %+v and %d more pages, want one page with one entry", e, len(reads))
		}
	})
}

// TestWaitEndsWithPage (M17, M69): a wait that ends without an entry returns an empty page. Its cursor is that of the
// request or a later one, and "" only if the feed has no entry at all. If another process has just published an entry,
// the page has it.
func TestWaitEndsWithPage(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		wait := func(after rowfeed.Cursor, d time.Duration) rowfeed.Page {
			x.Helper()
			page, err := f.Fetch(x.Ctx, rowfeed.Request{After: after, Wait: d})
			if err != nil {
				x.Fatal(err)
			}
			return page
		}
		for _, d := range []time.Duration{1, 200 * time.Millisecond} { // without a poll, and with some
			for _, after := range []rowfeed.Cursor{"", "0", "now"} {
				page := wait(after, d)
				if page.Cursor != "" || page.More || page.Entries == nil || len(page.Entries) != 0 {
					x.Errorf("waited from %q: %+v", after, page)
				}
			}
		}
		x.Fill(2)
		x.Exec("INSERT INTO kv VALUES (3, 'k', 0)", "DELETE FROM kv WHERE id = 3")
		x.Publish(f) // head 3
		for _, d := range []time.Duration{1, 200 * time.Millisecond} {
			for _, after := range []rowfeed.Cursor{"2", "3", "now"} {
				page := wait(after, d)
				if suite.Place(page.Cursor) != "3" || page.More || len(page.Entries) != 0 || len(page.Columns) != 3 {
					x.Errorf("waited from %q: %+v", after, page)
				}
			}
			if page := wait("1", d); suite.Place(page.Cursor) != "3" || page.More || len(page.Entries) != 1 {
				x.Errorf("waited from 1: %+v", page)
			}
		}
		// This process has read that the head is 4, and another one publishes. A request that waits for less than a
		// poll takes still gets the entry.
		reader := x.Tapped(testdb.Hooks{}, &rowfeed.Config{WatchPoll: suite.Never})
		x.Fetch(reader, "3", 0)
		x.Exec("INSERT INTO kv VALUES (4, 'k', 0)")
		x.Publish(reader)
		x.Exec("INSERT INTO kv VALUES (5, 'k', 0)")
		x.Publish(f)
		page, err := reader.Fetch(x.Ctx, rowfeed.Request{After: "4", Wait: 1})
		if err != nil || len(page.Entries) != 1 || suite.Place(page.Cursor) != "5" {
			x.Errorf("%+v, %v: want the entry at 5", page, err)
		}
		_, err = f.Fetch(x.Ctx, rowfeed.Request{Wait: -1})
		x.WantCode(err, rowfeed.InvalidRequest)
	})
}

// TestWaitersOfChangedFeedAreRefused (M69): a waiter is refused at once if its feed is dropped, dropped and added
// again, set back, or bumped.
func TestWaitersOfChangedFeedAreRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		vanish func(x *suite.Env)
		want   rowfeed.Code
	}{
		{"dropped", func(x *suite.Env) { x.Drop() }, rowfeed.UnknownFeed},
		{"added again", func(x *suite.Env) {
			x.Drop()
			x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
		}, rowfeed.GenerationChanged},
		{"set back", func(x *suite.Env) {
			x.Exec("UPDATE rowfeed_sequences SET value = value - 1")
		}, rowfeed.HistoryLost},
		{"bumped", func(x *suite.Env) {
			x.Exec("UPDATE rowfeed_feeds SET generation = generation + 1")
		}, rowfeed.GenerationChanged},
	} {
		t.Run(c.name, func(t *testing.T) {
			suite.Each(t, func(x *suite.Env) {
				x.AddKV()
				x.Fill(2)
				var looked atomic.Int64
				var still sync.Mutex // keeps the watcher from polling while the feed changes
				f := x.Tapped(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
					if x.Looks(ev) {
						still.Lock()
						defer still.Unlock()
						looked.Add(1)
					}
					return nil
				}}, &rowfeed.Config{WatchPoll: 2 * time.Millisecond})
				x.Publish(f)
				read := waiter(x, f, "2")   // at the head, which the process knows
				unread := waiter(x, f, "0") // gets its page at once
				if got := <-unread; got.Err != nil || len(got.Page.Entries) != 2 {
					x.Fatalf("%+v", got)
				}
				x.Eventually("the watcher polls", func() bool { return looked.Load() > 1 })
				still.Lock()
				c.vanish(x)
				still.Unlock()
				x.WantCode((<-read).Err, c.want)
			})
		})
	}
}

// TestCanceledWaitersStopTheWatcher (M69): a waiter returns at once when its context ends, also during a poll. Without
// waiters the watcher does not poll, and it polls again for the next waiter.
func TestCanceledWaitersStopTheWatcher(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.AddKV()
		x.Fill(1)
		held := testdb.Hold(x.Looks)
		var looked atomic.Int64
		f := x.Tapped(testdb.Hooks{Before: func(ctx context.Context, ev testdb.TapEvent) error {
			if x.Looks(ev) {
				looked.Add(1)
			}
			return held.Before(ctx, ev)
		}}, &rowfeed.Config{WatchPoll: time.Millisecond})
		x.Publish(f)
		ctx, cancel := context.WithCancel(x.Ctx)
		ended := make(chan error, 100)
		for range cap(ended) {
			go func() {
				_, err := f.Fetch(ctx, rowfeed.Request{After: "1", Wait: suite.Never})
				ended <- err
			}()
		}
		<-held.Reached
		cancel()
		for range cap(ended) {
			if err := <-ended; !errors.Is(err, context.Canceled) {
				x.Errorf("a waiter ended with %v", err)
			}
		}
		held.Release() // the last poll ends
		x.Eventually("the watcher has stopped", func() bool {
			return !strings.Contains(suite.Stacks(), "watch.(*Watcher).run(")
		})
		n := looked.Load()
		x.Fetch(f, "1", 0)
		if looked.Load() != n {
			x.Error("the watcher polls without waiters")
		}
		result := waiter(x, f, "1")
		x.Exec("INSERT INTO kv VALUES (2, 'k', 0)")
		x.Publish(f)
		x.WantWoken(result, "2", suite.KV(2, "k", 0))
	})
}

// TestWaitersOutliveTheServer (M69): while the database is down, waiters keep waiting. A wait that ends meanwhile
// returns an error. When the database runs again, waiters get their entries.
func TestWaitersOutliveTheServer(t *testing.T) {
	testdb.Only(t, testdb.Postgres15, testdb.MariaDB)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		server := e.Dedicated(t)
		x := suite.OpenEnv(t, server.NewDatabase(t), nil)
		x.Migrate()
		x.AddKV()
		x.Fill(1)
		var failed atomic.Int64
		f := x.Tapped(testdb.Hooks{After: func(_ context.Context, ev testdb.TapEvent, err error) error {
			if x.Looks(ev) && err != nil {
				failed.Add(1)
			}
			return err
		}}, &rowfeed.Config{WatchPoll: 2 * time.Millisecond})
		x.Publish(f)
		result := waiter(x, f, "1")
		x.Eventually("the reader waits", func() bool { return x.Parked("watch.(*Watcher).Wait(") == 1 })
		server.Kill(t)
		x.Eventually("the watcher has noticed", func() bool {
			_, err := f.Fetch(x.Ctx, rowfeed.Request{After: "1", Wait: 20 * time.Millisecond})
			if !suite.IsCode(err, rowfeed.Unavailable) {
				x.Fatalf("error %v, want code %s", err, rowfeed.Unavailable)
			}
			return failed.Load() > 0
		})
		x.Restart(server)
		x.Eventually("the table can be written again", func() bool {
			// The row may be there after a failure in COMMIT.
			_, err := x.DB.Admin().ExecContext(x.Ctx, "INSERT INTO kv SELECT 2, 'k', 0 FROM kv HAVING COUNT(*) = 1")
			return err == nil
		})
		other, err := x.RF.Feed(x.Ctx, "kv") // another process
		if err != nil {
			t.Fatal(err)
		}
		x.Eventually("the feed can be published again", func() bool {
			_, err := other.Publish(x.Ctx)
			return err == nil
		})
		x.WantWoken(result, "2", suite.KV(2, "k", 0))
	})
}

// TestUncommittedWakeUpsCauseNoBusyLoop (M69): in READ UNCOMMITTED, a poll sees a head whose entries no page shows yet.
// A waiter that is woken by it reads again after the watcher's next poll, not in a loop, and gets the entry in the end.
func TestUncommittedWakeUpsCauseNoBusyLoop(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.InnoDB...) // elsewhere sessions see only what is committed
	suite.Each(t, func(x *suite.Env) {
		x.AddKV()
		x.Fill(1)
		var looked, read atomic.Int64
		pool := x.DB.OpenTapped(x.T, testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			switch {
			case x.Looks(ev):
				looked.Add(1)
			case pageReads(ev):
				read.Add(1)
			}
			return nil
		}}, x.ReadUncommitted())
		rf, err := rowfeed.Open(x.Ctx, pool, x.Dialect, &rowfeed.Config{WatchPoll: time.Millisecond})
		if err != nil {
			x.Fatal(err)
		}
		f, err := rf.Feed(x.Ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		x.Publish(f)
		result := waiter(x, f, "1")
		open := x.Begin(sql.LevelReadCommitted)
		x.In(open, "UPDATE rowfeed_sequences SET value = value + 1 WHERE name = 'kv'")
		x.Eventually("the waiter was woken without an entry", func() bool { return read.Load() > 5 })
		looksThen, readsThen := looked.Load(), read.Load()
		x.Eventually("the watcher polls on", func() bool { return looked.Load() > looksThen+20 })
		if reads, looks := read.Load()-readsThen, looked.Load()-looksThen; reads > looks+2 {
			x.Errorf("%d pages were read during %d polls", reads, looks)
		}
		if err := open.Rollback(); err != nil {
			x.Fatal(err)
		}
		x.Exec("INSERT INTO kv VALUES (2, 'k', 0)")
		x.Publish(f)
		x.WantWoken(result, "2", suite.KV(2, "k", 0))
	})
}
