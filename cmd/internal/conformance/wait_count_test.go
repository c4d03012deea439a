package conformance

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// waiters is how many wait at once: ROWFEED_TEST_WAITERS, 1,000 when it is not set.
func (x *env) waiters() int { x.Helper(); return int(x.number("ROWFEED_TEST_WAITERS", 1000)) }

// crowd lets n callers wait, dealt out over the feeds, each at its feed's head, and
// returns when all of them do. What they are answered goes to the channel.
func (x *env) crowd(ctx context.Context, n int, feeds []*rowfeed.Feed, answers chan<- fetched) {
	x.Helper()
	heads := make([]rowfeed.Cursor, len(feeds))
	for i, f := range feeds {
		heads[i] = x.fetch(f, rowfeed.Now, 0).Cursor
	}
	for i := range n {
		f, after := feeds[i%len(feeds)], heads[i%len(feeds)]
		go func() {
			page, err := f.Fetch(ctx, rowfeed.Request{After: after, Wait: never})
			answers <- fetched{page, err}
		}()
	}
	x.eventually("all wait", func() bool { return x.parked("watch.(*Watcher).Wait(") == n })
}

// counter counts the statements that clients send to the server, by the server's own
// account, less those that ask for it; on SQLite, which has none, by what goes through
// the driver.
func (x *env) counter(tapped *atomic.Int64) (count func() int64) {
	x.Helper()
	var own int64
	switch x.family() {
	case "mysql":
		return func() int64 {
			var name string
			var n int64
			if err := x.db.Admin().QueryRowContext(x.ctx, "SHOW GLOBAL STATUS LIKE 'Questions'").Scan(&name, &n); err != nil {
				x.Fatal(err)
			}
			own++
			return n - own
		}
	case "postgres":
		x.exec("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
		return func() int64 {
			own++
			return x.scalar("SELECT sum(calls)::bigint FROM pg_stat_statements WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())") - own
		}
	}
	return tapped.Load
}

// TestWaitersCostNothing (M69): while nothing happens the database is asked as often
// for a thousand who wait as for one, and for a hundred feeds as for one: once an
// interval, and nothing else. Counted over as many looks as there are intervals in
// ROWFEED_TEST_WAIT_SECONDS (1); with 10 and ROWFEED_TEST_WAITERS=10000 in full. A machine
// that is busy may look late, and then looks less often: over time only the most is
// asserted, and what is compared are the statements beside the looks.
func TestWaitersCostNothing(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		var db *testdb.Database
		if e.Family == "postgres" {
			db = e.Dedicated(t, testdb.Setting("shared_preload_libraries=pg_stat_statements")).NewDatabase(t)
		} else {
			db = e.New(t)
		}
		x := openEnv(t, db, nil)
		x.migrate()
		seconds, n := int(x.number("ROWFEED_TEST_WAIT_SECONDS", 1)), x.waiters()
		const interval = 100 * time.Millisecond
		var tapped, looked atomic.Int64
		pool := db.OpenTapped(t, testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			tapped.Add(1)
			if looks(ev) {
				looked.Add(1)
			}
			return nil
		}})
		rf, err := rowfeed.Open(x.ctx, pool, x.dialect, &rowfeed.Config{WatchPoll: interval})
		if err != nil {
			t.Fatal(err)
		}
		var feeds []*rowfeed.Feed
		add := func(upTo int) {
			for len(feeds) < upTo {
				name := fmt.Sprintf("kv%d", len(feeds))
				x.exec("CREATE TABLE " + name + " (id BIGINT NOT NULL PRIMARY KEY)")
				f, err := rf.AddFeed(x.ctx, rowfeed.FeedSpec{Name: name, Table: name}, nil)
				if err != nil {
					t.Fatal(err)
				}
				x.exec("INSERT INTO " + name + " VALUES (1)")
				x.publish(f)
				feeds = append(feeds, f)
			}
		}
		count := x.counter(&tapped)
		counts := func() (asked, looks int64) { // of one moment: no look begins in between
			for {
				looks, asked = looked.Load(), count()
				if looked.Load() == looks {
					return asked, looks
				}
			}
		}
		var extras []int64
		for _, c := range []struct{ waiters, feeds int }{{1, 1}, {n, 1}, {n, 100}} {
			add(c.feeds)
			ctx, cancel := context.WithCancel(x.ctx)
			answers := make(chan fetched, c.waiters)
			x.crowd(ctx, c.waiters, feeds[:c.feeds], answers)
			settled := looked.Load()
			x.eventually("it looks", func() bool { return looked.Load() > settled+2 })
			began := time.Now()
			before, first := counts()
			for i := range seconds {
				enough := first + int64(i+1)*int64(time.Second/interval)
				x.eventually("it looks on", func() bool { return looked.Load() >= enough })
			}
			asked, last := counts()
			asked -= before
			took := time.Since(began)
			extra, most := asked-(last-first), int64(took/interval)+2
			if x.dialect.Stamp() != "" {
				most += int64(took/(3*time.Second)) + 2 // now and then it asks although nothing was committed
			}
			t.Logf("%d waiting on %d feeds: %d statements, %d looks in %s", c.waiters, c.feeds, asked, last-first, took)
			if asked > most || extra > 2 || extra < -2 {
				t.Errorf("%d waiting on %d feeds: %d statements in %s, of which %d were looks; want at most %d, and nothing else", c.waiters, c.feeds, asked, took, last-first, most)
			}
			extras = append(extras, extra)
			cancel()
			for range c.waiters {
				<-answers
			}
		}
		if slices.Max(extras)-slices.Min(extras) > 2 {
			t.Errorf("statements beside the looks: %v; more who wait or more feeds cost more", extras)
		}
	})
}

// TestOnePageForAll (M69): whoever waits for the same entry gets it from one reading of
// the page, and goes back to waiting without another.
func TestOnePageForAll(t *testing.T) {
	each(t, func(x *env) {
		x.addKV()
		x.fill(1)
		var pages atomic.Int64
		f := x.tapped(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if pageReads(ev) {
				pages.Add(1)
			}
			return nil
		}}, &rowfeed.Config{WatchPoll: never, TailBytes: -1}) // by being woken together
		x.publish(f)
		n := x.waiters()
		answers := make(chan fetched, n)
		for i := 2; i < 5; i++ {
			before := pages.Load()
			x.crowd(x.ctx, n, []*rowfeed.Feed{f}, answers)
			if got := pages.Load() - before; got != 1 { // the one that asked for the head
				x.Errorf("%d readings of pages that are known to be empty", got-1)
			}
			before = pages.Load()
			x.exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", i))
			x.publish(f)
			for range n {
				got := <-answers
				if got.err != nil || len(got.page.Entries) != 1 || line(got.page.Entries[0]) != kv(i, "k", 0) {
					x.Fatalf("%+v", got)
				}
			}
			if got := pages.Load() - before; got != 1 {
				x.Errorf("%d readings of one page for %d", got, n)
			}
		}
	})
}
