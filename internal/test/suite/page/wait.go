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

func pageReads(ev testdb.TapEvent) bool {
	return ev.Kind == testdb.Query && strings.HasPrefix(ev.SQL, "SELECT f.generation, f.tombstones_below")
}

// waiter fetches in the background, for at most as long as a test may take.
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

// TestNoLostWakeUp (M69, H30): an entry that is published between the read that found
// nothing and the waiting is not waited for; nor is one that comes before that read,
// nor one that comes while the watcher's look is on its way back with old news. The
// publisher is of the same process, and then nothing looks at all, or of another.
func TestNoLostWakeUp(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		x.AddKV()
		x.Fill(1)
		other, err := x.RF.Feed(x.Ctx, "kv") // another DB: as good as another process
		if err != nil {
			x.Fatal(err)
		}
		x.Publish(other)
		head := 1
		for _, moment := range []string{"before the read", "after the read", "while a look is under way"} {
			for _, same := range []bool{true, false} {
				if same && moment == "while a look is under way" {
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

// TestWokenForNothing (M69, H30): a wake-up that brings nothing to show does not end the
// wait: neither a position whose key is gone again, nor another feed's entry. And what
// was passed over is not passed over twice: the cursor has moved on.
func TestWokenForNothing(t *testing.T) {
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
		result := waiter(x, f, "1") // it knows that it is at the head, and reads nothing yet
		x.Exec("INSERT INTO other VALUES (1)")
		x.Publish(g)
		x.Exec("INSERT INTO kv VALUES (2, 'k', 0)", "DELETE FROM kv WHERE id = 2")
		x.Publish(f) // position 2: nobody will see it
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
			x.Errorf("read %+v and %d more pages; the other feed's entry is none of ours", e, len(reads))
		}
	})
}

// TestWaitEnds (M17, M69): when the wait is over without an entry, an empty page
// answers the cursor given or a greater one, and "" only while there is no entry at all;
// what was published by somebody else a moment before is on it.
func TestWaitEnds(t *testing.T) {
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
		for _, d := range []time.Duration{1, 200 * time.Millisecond} { // without a look, and with some
			for _, after := range []rowfeed.Cursor{"", "0", "now"} {
				if page := wait(after, d); page.Cursor != "" || page.More || page.Entries == nil || len(page.Entries) != 0 {
					x.Errorf("waited from %q: %+v", after, page)
				}
			}
		}
		x.Fill(2)
		x.Exec("INSERT INTO kv VALUES (3, 'k', 0)", "DELETE FROM kv WHERE id = 3")
		x.Publish(f) // head 3
		for _, d := range []time.Duration{1, 200 * time.Millisecond} {
			for _, after := range []rowfeed.Cursor{"2", "3", "now"} {
				if page := wait(after, d); page.Cursor != "3" || page.More || len(page.Entries) != 0 || len(page.Columns) != 3 {
					x.Errorf("waited from %q: %+v", after, page)
				}
			}
			if page := wait("1", d); page.Cursor != "3" || page.More || len(page.Entries) != 1 {
				x.Errorf("waited from 1: %+v", page)
			}
		}
		// This process believes that the head is 3. Another one publishes; who then asks,
		// and waits for less than a look takes, is not told that there is nothing.
		reader := x.Tapped(testdb.Hooks{}, &rowfeed.Config{WatchPoll: suite.Never})
		x.Fetch(reader, "3", 0)
		x.Exec("INSERT INTO kv VALUES (4, 'k', 0)")
		x.Publish(reader)
		x.Exec("INSERT INTO kv VALUES (5, 'k', 0)")
		x.Publish(f)
		page, err := reader.Fetch(x.Ctx, rowfeed.Request{After: "4", Wait: 1})
		if err != nil || len(page.Entries) != 1 || page.Cursor != "5" {
			x.Errorf("%+v, %v: want the entry at 5", page, err)
		}
		_, err = f.Fetch(x.Ctx, rowfeed.Request{Wait: -1})
		x.WantCode(err, rowfeed.InvalidRequest)
	})
}

// TestWaitersOfAFeedThatGoes (M69): whoever waits on a feed that is dropped, dropped and added
// again, or set back, is told, and does not wait for what will not come.
func TestWaitersOfAFeedThatGoes(t *testing.T) {
	for _, c := range []struct {
		name   string
		vanish func(x *suite.Env)
		want   rowfeed.Code
	}{
		{"dropped", func(x *suite.Env) { x.Drop() }, rowfeed.UnknownFeed},
		{"added again", func(x *suite.Env) { x.Drop(); x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv"}) }, rowfeed.GenerationChanged},
		{"set back", func(x *suite.Env) { x.Exec("UPDATE rowfeed_sequences SET value = value - 1") }, rowfeed.DatabaseChanged},
		{"bumped", func(x *suite.Env) { x.Exec("UPDATE rowfeed_feeds SET generation = generation + 1") }, rowfeed.GenerationChanged},
	} {
		t.Run(c.name, func(t *testing.T) {
			suite.Each(t, func(x *suite.Env) {
				x.AddKV()
				x.Fill(2)
				var looked atomic.Int64
				var still sync.Mutex // nobody looks while the feed goes
				f := x.Tapped(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
					if x.Looks(ev) {
						still.Lock()
						defer still.Unlock()
						looked.Add(1)
					}
					return nil
				}}, &rowfeed.Config{WatchPoll: 2 * time.Millisecond})
				x.Publish(f)
				read := waiter(x, f, "2")   // known to be at the head: reads nothing
				unread := waiter(x, f, "0") // served at once
				if got := <-unread; got.Err != nil || len(got.Page.Entries) != 2 {
					x.Fatalf("%+v", got)
				}
				x.Eventually("somebody waits", func() bool { return looked.Load() > 1 })
				still.Lock()
				c.vanish(x)
				still.Unlock()
				x.WantCode((<-read).Err, c.want)
			})
		})
	}
}

// TestWaitCancelled (M69): the end of the context frees a waiter at once, whatever it is at,
// and when nobody waits any more nothing is asked of the database.
func TestWaitCancelled(t *testing.T) {
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
		held.Release() // the look ends, and is the last one
		x.Eventually("the watcher has gone", func() bool { return inside(x, "watch.(*Watcher).run(") == 0 })
		n := looked.Load()
		x.Fetch(f, "1", 0)
		if looked.Load() != n {
			x.Error("it looks although nobody waits")
		}
		// And it starts again for the next who waits.
		result := waiter(x, f, "1")
		x.Exec("INSERT INTO kv VALUES (2, 'k', 0)")
		x.Publish(f)
		x.WantWoken(result, "2", suite.KV(2, "k", 0))
	})
}

// TestWaitersOutliveTheServer (M69): while the database is away those who wait go on waiting;
// who comes to the end of the wait is told; and when it is back, entries arrive.
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
		x.Eventually("it waits", func() bool { return x.Parked("watch.(*Watcher).Wait(") == 1 })
		server.Kill(t)
		x.Eventually("the watcher has noticed", func() bool {
			_, err := f.Fetch(x.Ctx, rowfeed.Request{After: "1", Wait: 20 * time.Millisecond})
			if !suite.IsCode(err, rowfeed.Unavailable) {
				x.Fatalf("an empty page, or the wrong error: %v", err)
			}
			return failed.Load() > 0
		})
		x.Restart(server)
		x.Eventually("it can be written to again", func() bool {
			// Who loses the server in a COMMIT does not know whether the row is there.
			_, err := x.DB.Admin().ExecContext(x.Ctx, "INSERT INTO kv SELECT 2, 'k', 0 FROM kv HAVING COUNT(*) = 1")
			return err == nil
		})
		other, err := x.RF.Feed(x.Ctx, "kv") // another process
		if err != nil {
			t.Fatal(err)
		}
		x.Eventually("it can be published again", func() bool { _, err := other.Publish(x.Ctx); return err == nil })
		x.WantWoken(result, "2", suite.KV(2, "k", 0))
	})
}

// TestWokenByWhatIsNotCommitted (M69): where a look shows more than a page does (sessions in
// READ UNCOMMITTED, pools that lead to servers which lag), a waiter looks again when the
// watcher does, and not as fast as it can; and it is not lost.
func TestWokenByWhatIsNotCommitted(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.InnoDB...) // elsewhere nothing uncommitted is seen
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
		x.Eventually("it was woken in vain", func() bool { return read.Load() > 5 })
		looksThen, readsThen := looked.Load(), read.Load()
		x.Eventually("it goes on", func() bool { return looked.Load() > looksThen+20 })
		if reads, looks := read.Load()-readsThen, looked.Load()-looksThen; reads > looks+2 {
			x.Errorf("%d pages were read in the time of %d looks", reads, looks)
		}
		if err := open.Rollback(); err != nil {
			x.Fatal(err)
		}
		x.Exec("INSERT INTO kv VALUES (2, 'k', 0)")
		x.Publish(f)
		x.WantWoken(result, "2", suite.KV(2, "k", 0))
	})
}
