package page

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/fixture"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// waiters returns the number of concurrent waiters: ROWFEED_TEST_WAITERS, or 1,000 if it is not set.
func waiters(x *suite.Env) int { x.Helper(); return int(x.Number("ROWFEED_TEST_WAITERS", 1000)) }

// crowd starts n callers that wait at the heads of the feeds, and returns when all of them wait. Their results go to
// the channel.
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
	x.Eventually("all callers wait", func() bool { return x.Parked("watch.(*Watcher).Wait(") == n })
}

// counter returns a function that counts the statements that clients have sent to the server. The server counts them,
// and the function subtracts its own queries. Without a server, the driver's statements are counted.
func counter(x *suite.Env, tapped *atomic.Int64) (count func() int64) {
	x.Helper()
	if !x.Has.StatementCounts {
		return tapped.Load
	}
	x.Exec(x.Statements("page.count_statements")...)
	query := x.Text("page.statement_count")
	var own int64
	return func() int64 {
		n := x.Scalar(query)
		own++
		return n - own
	}
}

// TestWaitersCostNothing (M69): without changes, the watcher polls once an interval, and there are no other statements.
// A thousand waiters cost no more than one, and a hundred feeds no more than one. The test counts statements over as
// many polls as there are intervals in ROWFEED_TEST_WAIT_SECONDS (1 by default). For a full test, set it to 10 and
// ROWFEED_TEST_WAITERS to 10000. A busy machine polls late and less often, so the test asserts a maximum of polls, and
// compares the numbers of other statements.
func TestWaitersCostNothing(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		var db *testdb.Database
		if setting := fixture.Of(e).Text(t, "page.counting_setting"); setting != "" {
			db = e.Dedicated(t, testdb.Setting(setting)).NewDatabase(t)
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
		counts := func() (asked, looks int64) { // of one moment: no poll begins in between
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
			x.Eventually("the watcher polls", func() bool { return looked.Load() > settled+2 })
			began := time.Now()
			before, first := counts()
			for i := range seconds {
				enough := first + int64(i+1)*int64(time.Second/interval)
				x.Eventually("the watcher polls again", func() bool { return looked.Load() >= enough })
			}
			asked, last := counts()
			asked -= before
			took := time.Since(began)
			extra, most := asked-(last-first), int64(took/interval)+2
			if x.Dialect.Stamp != "" {
				most += int64(took/(3*time.Second)) + 2 // the watcher sometimes reads watermarks without a commit
			}
			t.Logf("%d waiters on %d feeds: %d statements, %d polls in %s",
				c.waiters, c.feeds, asked, last-first, took)
			if asked > most || extra > 2 || extra < -2 {
				t.Errorf("%d waiters on %d feeds: %d statements in %s, want at most %d; %d are polls, want all",
					c.waiters, c.feeds, asked, took, most, last-first)
			}
			extras = append(extras, extra)
			cancel()
			for range c.waiters {
				<-answers
			}
		}
		if slices.Max(extras)-slices.Min(extras) > 2 {
			t.Errorf("statements that are no polls: %v; want as many for more waiters and feeds", extras)
		}
	})
}

// TestWaitersShareOnePage (M69): all waiters for the same entry get it from one page. When they wait again, no further
// page is read.
func TestWaitersShareOnePage(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.AddKV()
		x.Fill(1)
		var pages atomic.Int64
		f := x.Tapped(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if pageReads(ev) {
				pages.Add(1)
			}
			return nil
		}}, &rowfeed.Config{WatchPoll: suite.Never, TailBytes: -1}) // no tail pages, which are shared differently
		x.Publish(f)
		n := waiters(x)
		answers := make(chan suite.Fetched, n)
		for i := 2; i < 5; i++ {
			before := pages.Load()
			crowd(x, x.Ctx, n, []*rowfeed.Feed{f}, answers)
			if got := pages.Load() - before; got != 1 { // crowd reads the head
				x.Errorf("%d pages were read that are known to be empty", got-1)
			}
			before = pages.Load()
			x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", i))
			x.Publish(f)
			for range n {
				got := <-answers
				entries := got.Page.Entries
				if got.Err != nil || len(entries) != 1 || suite.Line(entries[0]) != suite.KV(i, "k", 0) {
					x.Fatalf("%+v", got)
				}
			}
			if got := pages.Load() - before; got != 1 {
				x.Errorf("%d pages were read for %d waiters, want 1", got, n)
			}
		}
	})
}
