package page

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// waiters is how many wait at once: ROWFEED_TEST_WAITERS, 1,000 when it is not set.
func waiters(x *suite.Env) int { x.Helper(); return int(x.Number("ROWFEED_TEST_WAITERS", 1000)) }

// crowd lets n callers wait, dealt out over the feeds, each at its feed's head, and
// returns when all of them do. What they are answered goes to the channel.
func crowd(x *suite.Env, ctx context.Context, n int, feeds []*rowfeed.Feed, answers chan<- suite.Fetched) {
	x.Helper()
	heads := make([]rowfeed.Cursor, len(feeds))
	for i, f := range feeds {
		heads[i] = x.Fetch(f, rowfeed.Now, 0).Cursor
	}
	for i := range n {
		f, after := feeds[i%len(feeds)], heads[i%len(feeds)]
		go func() {
			page, err := f.Fetch(ctx, rowfeed.Request{After: after, Wait: suite.Never})
			answers <- suite.Fetched{Page: page, Err: err}
		}()
	}
	x.Eventually("all wait", func() bool { return x.Parked("watch.(*Watcher).Wait(") == n })
}

// counter counts the statements that clients send to the server, by the server's own
// account, less those that ask for it; on SQLite, which has none, by what goes through
// the driver.
func counter(x *suite.Env, tapped *atomic.Int64) (count func() int64) {
	x.Helper()
	var own int64
	switch x.Family() {
	case "mysql":
		return func() int64 {
			var name string
			var n int64
			if err := x.DB.Admin().QueryRowContext(x.Ctx, "SHOW GLOBAL STATUS LIKE 'Questions'").Scan(&name, &n); err != nil {
				x.Fatal(err)
			}
			own++
			return n - own
		}
	case "postgres":
		x.Exec("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
		return func() int64 {
			own++
			return x.Scalar("SELECT sum(calls)::bigint FROM pg_stat_statements WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())") - own
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
		x := suite.OpenEnv(t, db, nil)
		x.Migrate()
		seconds, n := int(x.Number("ROWFEED_TEST_WAIT_SECONDS", 1)), waiters(x)
		const interval = 100 * time.Millisecond
		var tapped, looked atomic.Int64
		pool := db.OpenTapped(t, testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			tapped.Add(1)
			if x.Looks(ev) {
				looked.Add(1)
			}
			return nil
		}})
		rf, err := rowfeed.Open(x.Ctx, pool, x.Dialect, &rowfeed.Config{WatchPoll: interval})
		if err != nil {
			t.Fatal(err)
		}
		var feeds []*rowfeed.Feed
		add := func(upTo int) {
			for len(feeds) < upTo {
				name := fmt.Sprintf("kv%d", len(feeds))
				x.Exec("CREATE TABLE " + name + " (id BIGINT NOT NULL PRIMARY KEY)")
				f, err := rf.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: name, Table: name}, nil)
				if err != nil {
					t.Fatal(err)
				}
				x.Exec("INSERT INTO " + name + " VALUES (1)")
				x.Publish(f)
				feeds = append(feeds, f)
			}
		}
		count := counter(x, &tapped)
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
			ctx, cancel := context.WithCancel(x.Ctx)
			answers := make(chan suite.Fetched, c.waiters)
			crowd(x, ctx, c.waiters, feeds[:c.feeds], answers)
			settled := looked.Load()
			x.Eventually("it looks", func() bool { return looked.Load() > settled+2 })
			began := time.Now()
			before, first := counts()
			for i := range seconds {
				enough := first + int64(i+1)*int64(time.Second/interval)
				x.Eventually("it looks on", func() bool { return looked.Load() >= enough })
			}
			asked, last := counts()
			asked -= before
			took := time.Since(began)
			extra, most := asked-(last-first), int64(took/interval)+2
			if x.Dialect.Stamp() != "" {
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
	suite.Each(t, func(x *suite.Env) {
		x.AddKV()
		x.Fill(1)
		var pages atomic.Int64
		f := x.Tapped(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if pageReads(ev) {
				pages.Add(1)
			}
			return nil
		}}, &rowfeed.Config{WatchPoll: suite.Never, TailBytes: -1}) // by being woken together
		x.Publish(f)
		n := waiters(x)
		answers := make(chan suite.Fetched, n)
		for i := 2; i < 5; i++ {
			before := pages.Load()
			crowd(x, x.Ctx, n, []*rowfeed.Feed{f}, answers)
			if got := pages.Load() - before; got != 1 { // the one that asked for the head
				x.Errorf("%d readings of pages that are known to be empty", got-1)
			}
			before = pages.Load()
			x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", i))
			x.Publish(f)
			for range n {
				got := <-answers
				if got.Err != nil || len(got.Page.Entries) != 1 || suite.Line(got.Page.Entries[0]) != suite.KV(i, "k", 0) {
					x.Fatalf("%+v", got)
				}
			}
			if got := pages.Load() - before; got != 1 {
				x.Errorf("%d readings of one page for %d", got, n)
			}
		}
	})
}
