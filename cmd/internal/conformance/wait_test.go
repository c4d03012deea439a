package conformance

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// never is a pause between looks in which no test ends.
const never = time.Hour

// hasArg tells whether a value goes with a statement: beside it, or in it, where the dialect
// writes values there.
func hasArg(ev testdb.TapEvent, value any) bool {
	if slices.ContainsFunc(ev.Args, func(a driver.NamedValue) bool { return fmt.Sprint(a.Value) == fmt.Sprint(value) }) {
		return true // drivers have different types of integers
	}
	if text, is := value.(string); is {
		return strings.Contains(ev.SQL, "'"+text+"'")
	}
	return regexp.MustCompile(fmt.Sprintf(` = %v\b`, value)).MatchString(ev.SQL)
}

// looks matches the watcher's statements, readsStandings the one that reads how far feeds are, pageReads the
// one that reads a page's rows.
func looks(ev testdb.TapEvent) bool {
	return readsStandings(ev) || ev.Kind == testdb.Query &&
		(strings.HasPrefix(ev.SQL, "SELECT CASE WHEN pg_is_in_recovery() THEN '' ELSE CAST(pg_current_snapshot()") || strings.Contains(ev.SQL, ", -1, 0, NULL, 0 FROM ("))
}

func readsStandings(ev testdb.TapEvent) bool {
	return ev.Kind == testdb.Query && strings.HasPrefix(ev.SQL, "SELECT s.name, f.generation, s.value, ")
}

func pageReads(ev testdb.TapEvent) bool {
	return ev.Kind == testdb.Query && strings.HasPrefix(ev.SQL, "SELECT f.generation, f.tombstones_below")
}

// fetched is what a Fetch answered.
type fetched struct {
	page rowfeed.Page
	err  error
}

// waiter fetches in the background, for at most as long as a test may take.
func (x *env) waiter(f rowfeed.Source, after rowfeed.Cursor) <-chan fetched {
	result := make(chan fetched, 1)
	ctx, cancel := context.WithTimeout(x.ctx, patience())
	x.Cleanup(cancel)
	go func() {
		page, err := f.Fetch(ctx, rowfeed.Request{After: after, Wait: never})
		result <- fetched{page, err}
	}()
	return result
}

// wantWoken asserts what a waiter was answered.
func (x *env) wantWoken(result <-chan fetched, cursor rowfeed.Cursor, want ...string) {
	x.Helper()
	got := <-result
	if got.err != nil {
		x.Fatal(got.err)
	}
	var lines []string
	for _, e := range got.page.Entries {
		lines = append(lines, line(e))
	}
	if strings.Join(lines, "\n") != strings.Join(want, "\n") || got.page.Cursor != cursor {
		x.Fatalf("woken with %q and cursor %q, want %q and %q", lines, got.page.Cursor, want, cursor)
	}
}

// gate lets the first caller through only when it is opened, and says that it came.
type gate struct {
	once          sync.Once
	reached, open chan struct{}
}

func newGate() *gate { return &gate{reached: make(chan struct{}), open: make(chan struct{})} }

func (g *gate) pass() {
	g.once.Do(func() {
		close(g.reached)
		<-g.open
	})
}

// TestNoLostWakeUp (M69, H30): an entry that is published between the read that found
// nothing and the waiting is not waited for; nor is one that comes before that read,
// nor one that comes while the watcher's look is on its way back with old news. The
// publisher is of the same process, and then nothing looks at all, or of another.
func TestNoLostWakeUp(t *testing.T) {
	testdb.Quick(t)
	eachCapture(t, func(x *env) {
		x.addKV()
		x.fill(1)
		other, err := x.rf.Feed(x.ctx, "kv") // another DB: as good as another process
		if err != nil {
			x.Fatal(err)
		}
		x.publish(other)
		head := 1
		for _, moment := range []string{"before the read", "after the read", "while a look is under way"} {
			for _, same := range []bool{true, false} {
				if same && moment == "while a look is under way" {
					continue
				}
				x.Logf("%s, publisher of the same process: %v", moment, same)
				g := newGate()
				cfg := &rowfeed.Config{WatchPoll: 2 * time.Millisecond, Observer: &rowfeed.Observer{}}
				if same {
					cfg.WatchPoll = never
				}
				hooks := testdb.Hooks{}
				switch moment {
				case "before the read":
					hooks.Before = func(_ context.Context, ev testdb.TapEvent) error {
						if pageReads(ev) {
							g.pass()
						}
						return nil
					}
				case "after the read":
					cfg.Observer.Fetched = func(rowfeed.FetchEvent) { g.pass() }
				default:
					hooks.After = func(_ context.Context, ev testdb.TapEvent, err error) error {
						if readsStandings(ev) {
							g.pass()
						}
						return err
					}
				}
				f := x.tapped(hooks, cfg)
				result := x.waiter(f, rowfeed.Cursor(fmt.Sprint(head)))
				<-g.reached
				head++
				x.exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", head))
				if same {
					x.publish(f)
				} else {
					x.publish(other)
				}
				close(g.open)
				x.wantWoken(result, rowfeed.Cursor(fmt.Sprint(head)), kv(head, "k", 0))
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
		x := newEnv(t, e, &rowfeed.Config{WatchPoll: never, Observer: &rowfeed.Observer{
			Fetched: func(e rowfeed.FetchEvent) { reads <- e },
		}})
		x.migrate()
		f := x.addKV()
		x.exec("CREATE TABLE other (id BIGINT NOT NULL PRIMARY KEY)")
		g := x.add(rowfeed.FeedSpec{Name: "other", Table: "other"})
		x.fill(1)
		x.publish(f)
		result := x.waiter(f, "1") // it knows that it is at the head, and reads nothing yet
		x.exec("INSERT INTO other VALUES (1)")
		x.publish(g)
		x.exec("INSERT INTO kv VALUES (2, 'k', 0)", "DELETE FROM kv WHERE id = 2")
		x.publish(f) // position 2: nobody will see it
		if e := <-reads; e.Entries != 0 {
			x.Fatalf("read %+v", e)
		}
		select {
		case got := <-result:
			x.Fatalf("the wait has ended with %d entries, %v", len(got.page.Entries), got.err)
		default:
		}
		x.exec("INSERT INTO kv VALUES (3, 'k', 0)")
		x.publish(f)
		x.wantWoken(result, "3", kv(3, "k", 0))
		if e := <-reads; e.Entries != 1 || len(reads) != 0 {
			x.Errorf("read %+v and %d more pages; the other feed's entry is none of ours", e, len(reads))
		}
	})
}

// TestWaitEnds (M17, M69): when the wait is over without an entry, an empty page
// answers the cursor given or a greater one, and "" only while there is no entry at all;
// what was published by somebody else a moment before is on it.
func TestWaitEnds(t *testing.T) {
	each(t, func(x *env) {
		f := x.addKV()
		wait := func(after rowfeed.Cursor, d time.Duration) rowfeed.Page {
			x.Helper()
			page, err := f.Fetch(x.ctx, rowfeed.Request{After: after, Wait: d})
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
		x.fill(2)
		x.exec("INSERT INTO kv VALUES (3, 'k', 0)", "DELETE FROM kv WHERE id = 3")
		x.publish(f) // head 3
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
		reader := x.tapped(testdb.Hooks{}, &rowfeed.Config{WatchPoll: never})
		x.fetch(reader, "3", 0)
		x.exec("INSERT INTO kv VALUES (4, 'k', 0)")
		x.publish(reader)
		x.exec("INSERT INTO kv VALUES (5, 'k', 0)")
		x.publish(f)
		page, err := reader.Fetch(x.ctx, rowfeed.Request{After: "4", Wait: 1})
		if err != nil || len(page.Entries) != 1 || page.Cursor != "5" {
			x.Errorf("%+v, %v: want the entry at 5", page, err)
		}
		_, err = f.Fetch(x.ctx, rowfeed.Request{Wait: -1})
		x.wantCode(err, rowfeed.InvalidRequest)
	})
}

// TestWaitersOfAFeedThatGoes (M69): whoever waits on a feed that is dropped, dropped and added
// again, or set back, is told, and does not wait for what will not come.
func TestWaitersOfAFeedThatGoes(t *testing.T) {
	for _, c := range []struct {
		name   string
		vanish func(x *env)
		want   rowfeed.Code
	}{
		{"dropped", func(x *env) { x.drop() }, rowfeed.UnknownFeed},
		{"added again", func(x *env) { x.drop(); x.add(rowfeed.FeedSpec{Name: "kv", Table: "kv"}) }, rowfeed.GenerationChanged},
		{"set back", func(x *env) { x.exec("UPDATE rowfeed_sequences SET value = value - 1") }, rowfeed.DatabaseChanged},
		{"bumped", func(x *env) { x.exec("UPDATE rowfeed_feeds SET generation = generation + 1") }, rowfeed.GenerationChanged},
	} {
		t.Run(c.name, func(t *testing.T) {
			each(t, func(x *env) {
				x.addKV()
				x.fill(2)
				var looked atomic.Int64
				var still sync.Mutex // nobody looks while the feed goes
				f := x.tapped(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
					if looks(ev) {
						still.Lock()
						defer still.Unlock()
						looked.Add(1)
					}
					return nil
				}}, &rowfeed.Config{WatchPoll: 2 * time.Millisecond})
				x.publish(f)
				read := x.waiter(f, "2")   // known to be at the head: reads nothing
				unread := x.waiter(f, "0") // served at once
				if got := <-unread; got.err != nil || len(got.page.Entries) != 2 {
					x.Fatalf("%+v", got)
				}
				x.eventually("somebody waits", func() bool { return looked.Load() > 1 })
				still.Lock()
				c.vanish(x)
				still.Unlock()
				x.wantCode((<-read).err, c.want)
			})
		})
	}
}

func (x *env) drop() {
	x.Helper()
	if err := x.rf.DropFeed(x.ctx, "kv"); err != nil {
		x.Fatal(err)
	}
}

// TestWaitCancelled (M69): the end of the context frees a waiter at once, whatever it is at,
// and when nobody waits any more nothing is asked of the database.
func TestWaitCancelled(t *testing.T) {
	each(t, func(x *env) {
		x.addKV()
		x.fill(1)
		held := testdb.Hold(looks)
		var looked atomic.Int64
		f := x.tapped(testdb.Hooks{Before: func(ctx context.Context, ev testdb.TapEvent) error {
			if looks(ev) {
				looked.Add(1)
			}
			return held.Before(ctx, ev)
		}}, &rowfeed.Config{WatchPoll: time.Millisecond})
		x.publish(f)
		ctx, cancel := context.WithCancel(x.ctx)
		ended := make(chan error, 100)
		for range cap(ended) {
			go func() {
				_, err := f.Fetch(ctx, rowfeed.Request{After: "1", Wait: never})
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
		x.eventually("the watcher has gone", func() bool { return x.inside("watch.(*Watcher).run(") == 0 })
		n := looked.Load()
		x.fetch(f, "1", 0)
		if looked.Load() != n {
			x.Error("it looks although nobody waits")
		}
		// And it starts again for the next who waits.
		result := x.waiter(f, "1")
		x.exec("INSERT INTO kv VALUES (2, 'k', 0)")
		x.publish(f)
		x.wantWoken(result, "2", kv(2, "k", 0))
	})
}

// TestWaitersOutliveTheServer (M69): while the database is away those who wait go on waiting;
// who comes to the end of the wait is told; and when it is back, entries arrive.
func TestWaitersOutliveTheServer(t *testing.T) {
	testdb.Only(t, testdb.Postgres15, testdb.MariaDB)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		server := e.Dedicated(t)
		x := openEnv(t, server.NewDatabase(t), nil)
		x.migrate()
		x.addKV()
		x.fill(1)
		var failed atomic.Int64
		f := x.tapped(testdb.Hooks{After: func(_ context.Context, ev testdb.TapEvent, err error) error {
			if looks(ev) && err != nil {
				failed.Add(1)
			}
			return err
		}}, &rowfeed.Config{WatchPoll: 2 * time.Millisecond})
		x.publish(f)
		result := x.waiter(f, "1")
		x.eventually("it waits", func() bool { return x.parked("watch.(*Watcher).Wait(") == 1 })
		server.Kill(t)
		x.eventually("the watcher has noticed", func() bool {
			_, err := f.Fetch(x.ctx, rowfeed.Request{After: "1", Wait: 20 * time.Millisecond})
			if !isCode(err, rowfeed.Unavailable) {
				x.Fatalf("an empty page, or the wrong error: %v", err)
			}
			return failed.Load() > 0
		})
		x.restart(server)
		x.eventually("it can be written to again", func() bool {
			// Who loses the server in a COMMIT does not know whether the row is there.
			_, err := x.db.Admin().ExecContext(x.ctx, "INSERT INTO kv SELECT 2, 'k', 0 FROM kv HAVING COUNT(*) = 1")
			return err == nil
		})
		other, err := x.rf.Feed(x.ctx, "kv") // another process
		if err != nil {
			t.Fatal(err)
		}
		x.eventually("it can be published again", func() bool { _, err := other.Publish(x.ctx); return err == nil })
		x.wantWoken(result, "2", kv(2, "k", 0))
	})
}

// TestWokenByWhatIsNotCommitted (M69): where a look shows more than a page does (sessions in
// READ UNCOMMITTED, pools that lead to servers which lag), a waiter looks again when the
// watcher does, and not as fast as it can; and it is not lost.
func TestWokenByWhatIsNotCommitted(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.InnoDB...) // elsewhere nothing uncommitted is seen
	each(t, func(x *env) {
		x.addKV()
		x.fill(1)
		var looked, read atomic.Int64
		pool := x.db.OpenTapped(x.T, testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			switch {
			case looks(ev):
				looked.Add(1)
			case pageReads(ev):
				read.Add(1)
			}
			return nil
		}}, x.readUncommitted())
		rf, err := rowfeed.Open(x.ctx, pool, x.dialect, &rowfeed.Config{WatchPoll: time.Millisecond})
		if err != nil {
			x.Fatal(err)
		}
		f, err := rf.Feed(x.ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		x.publish(f)
		result := x.waiter(f, "1")
		open := x.begin(sql.LevelReadCommitted)
		x.in(open, "UPDATE rowfeed_sequences SET value = value + 1 WHERE name = 'kv'")
		x.eventually("it was woken in vain", func() bool { return read.Load() > 5 })
		looksThen, readsThen := looked.Load(), read.Load()
		x.eventually("it goes on", func() bool { return looked.Load() > looksThen+20 })
		if reads, looks := read.Load()-readsThen, looked.Load()-looksThen; reads > looks+2 {
			x.Errorf("%d pages were read in the time of %d looks", reads, looks)
		}
		if err := open.Rollback(); err != nil {
			x.Fatal(err)
		}
		x.exec("INSERT INTO kv VALUES (2, 'k', 0)")
		x.publish(f)
		x.wantWoken(result, "2", kv(2, "k", 0))
	})
}
