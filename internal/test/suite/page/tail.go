package page

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// tail is a feed that counts the statements that read its pages. A gate holds the next of these statements, before it
// runs or after it has run.
type tail struct {
	*suite.Env
	feed          *rowfeed.Feed
	pages         atomic.Int64
	shared        atomic.Int64 // pages that were shared
	before, after atomic.Pointer[suite.Gate]
	fail          atomic.Pointer[error] // the error of a shared page
}

// newTail makes a feed of 8 data shards with the rows 1 to n. The tapped DB publishes them, so it knows the head.
func newTail(x *suite.Env, n int, cfg rowfeed.Config) *tail {
	x.Helper()
	x.Shards = 8
	x.AddKV()
	t := &tail{Env: x}
	cfg.Observer = &rowfeed.Observer{Fetched: func(e rowfeed.FetchEvent) {
		if e.Shared {
			t.shared.Add(1)
		}
	}}
	if cfg.WatchPoll == 0 {
		cfg.WatchPoll = suite.Never
	}
	t.feed = x.Tapped(testdb.Hooks{
		Before: func(_ context.Context, ev testdb.TapEvent) error {
			if !pageReads(ev) {
				return nil
			}
			t.pages.Add(1)
			if g := t.before.Swap(nil); g != nil {
				g.Pass()
			}
			if err := t.fail.Load(); err != nil && t.pages.Load() > 1 {
				t.fail.Store(nil)
				return *err
			}
			return nil
		},
		After: func(_ context.Context, ev testdb.TapEvent, err error) error {
			if pageReads(ev) {
				if g := t.after.Swap(nil); g != nil {
					g.Pass()
				}
			}
			return err
		}}, &cfg)
	x.InsertKV(1, n+1)
	x.Publish(t.feed)
	return t
}

// hold starts a fetch whose page is held before or after its statement, until open is called.
func (t *tail) hold(where *atomic.Pointer[suite.Gate], req rowfeed.Request) (open func(), got <-chan suite.Fetched) {
	t.Helper()
	g := suite.NewGate()
	where.Store(g)
	t.pages.Store(0)
	t.shared.Store(0)
	got = t.ask(req)
	<-g.Reached
	return func() { close(g.Open) }, got
}

// ask fetches in the background.
func (t *tail) ask(req rowfeed.Request) <-chan suite.Fetched {
	result := make(chan suite.Fetched, 1)
	go func() {
		page, err := t.feed.Fetch(t.Ctx, req)
		result <- suite.Fetched{Page: page, Err: err}
	}()
	return result
}

// tailPatience is how long a request waits for a shared page before it reads one of its own. If a busy machine takes
// longer until all requests wait, a round shows nothing, and the test makes another round.
const tailPatience = 5 * time.Second

// gather waits until n requests wait for a shared page, or tailPatience is over.
func (t *tail) gather(n int) {
	t.Helper()
	began := time.Now()
	t.Eventually("all requests wait for a shared page", func() bool {
		asking := 0
		for stack := range strings.SplitSeq(suite.Stacks(), "\n\n") {
			if strings.Contains(stack, "[select") && strings.Contains(stack, ".fromTail(") {
				asking++
			}
		}
		return asking == n || time.Since(began) > tailPatience
	})
}

// inTime makes rounds until one has taken less than tailPatience.
func (t *tail) inTime(round func() (took time.Duration)) {
	t.Helper()
	for range 10 {
		if round() < tailPatience || t.Failed() {
			return
		}
	}
	t.Fatalf("ten rounds of more than %s each", tailPatience)
}

// text formats a page, with the shards of its entries.
func text(p rowfeed.Page) string {
	lines := []string{}
	for _, e := range p.Entries {
		lines = append(lines, fmt.Sprint(e.Position, " ", e.Shard, " ", suite.Line(e)))
	}
	return fmt.Sprintf("%s|%s|%v", strings.Join(lines, "\n"), p.Cursor, p.More)
}

// TestReadersShareOneTailPage (H26): requests near the head of a feed that arrive while a page is being read share one
// further page, whatever their cursors, limits and parts. Each gets the result that it would have got alone, as new as
// the further page.
func TestReadersShareOneTailPage(t *testing.T) {
	suite.Each(t, func(x *suite.Env) { tailIsReadOnce(x, 0) })
}

// TestSharedPageAtItsLimitHasMore (H26): if a shared page ends at its limit of bytes, each request still gets the
// result that it would have got alone.
func TestSharedPageAtItsLimitHasMore(t *testing.T) {
	suite.Each(t, func(x *suite.Env) { tailIsReadOnce(x, 300) })
}

func tailIsReadOnce(x *suite.Env, bytes int) {
	tl := newTail(x, 40, rowfeed.Config{TailBytes: bytes})
	x.Exec("UPDATE kv SET v = 2 WHERE id <= 5", "DELETE FROM kv WHERE id BETWEEN 10 AND 13")
	x.Publish(tl.feed)
	x.Exec("DELETE FROM kv WHERE id = 20", "UPDATE kv SET v = 3 WHERE id = 21") // not published yet
	var asks []rowfeed.Request
	for _, after := range []rowfeed.Cursor{"1", "17", "40", "45", "49", rowfeed.Now} {
		for _, limit := range []int{1, 3, 100} {
			for _, shards := range []rowfeed.Shards{
				{}, rowfeed.Part(0, 3), rowfeed.Part(2, 3), rowfeed.One(5), rowfeed.Part(6, 7),
			} {
				asks = append(asks, rowfeed.Request{After: after, Limit: limit, Shards: shards})
			}
		}
	}
	alone := x.Tapped(testdb.Hooks{}, &rowfeed.Config{TailBytes: -1})
	tl.inTime(func() time.Duration {
		req := rowfeed.Request{After: "48", Limit: 7}
		before := text(x.Fetch(alone, req.After, req.Limit))
		began := time.Now()
		open, held := tl.hold(&tl.after, req)
		x.Exec("UPDATE kv SET v = v + 1 WHERE id IN (22, 23)")
		x.Publish(feedOf(x, "kv")) // another process; in the first round, positions 50 and 51
		x.Exec("UPDATE kv SET v = v + 1 WHERE id = 23")
		results := make([]<-chan suite.Fetched, len(asks))
		for i, req := range asks {
			results[i] = tl.ask(req)
		}
		tl.gather(len(asks) + 1)
		open()
		first, answers := <-held, make([]suite.Fetched, len(asks))
		for i := range asks {
			answers[i] = <-results[i]
		}
		took := time.Since(began)
		inTime := took < tailPatience
		if got := text(first.Page); first.Err != nil || got != before && inTime {
			x.Fatalf("the held page: %v\n%s\nwant\n%s", first.Err, got, before)
		}
		for i, req := range asks {
			got := answers[i]
			want, err := alone.Fetch(x.Ctx, req)
			if err != nil || got.Err != nil || text(got.Page) != text(want) {
				x.Errorf("%+v: %v, %v\n%s\nwant\n%s", req, got.Err, err, text(got.Page), text(want))
			}
		}
		if got := tl.pages.Load(); got != 2 && bytes == 0 && inTime {
			x.Errorf("%d pages were read for %d concurrent requests", got, len(asks)+1)
		}
		if got := tl.shared.Load(); got != int64(len(asks)-1) && bytes == 0 && inTime {
			x.Errorf("%d of %d requests report a shared page", got, len(asks))
		}
		return took
	})
}

// feedOf opens a feed as another process does.
func feedOf(x *suite.Env, name string) *rowfeed.Feed {
	x.Helper()
	f, err := x.RF.Feed(x.Ctx, name)
	if err != nil {
		x.Fatal(err)
	}
	return f
}

// TestTailPageIsNotCached (H26): a request that arrives after a page was read does not get that page. It gets rows as
// they are now, also if no position has moved, and is refused if it would be refused alone.
func TestTailPageIsNotCached(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		tl := newTail(x, 20, rowfeed.Config{})
		page := func(req rowfeed.Request) rowfeed.Page {
			t.Helper()
			page, err := tl.feed.Fetch(x.Ctx, req)
			if err != nil {
				t.Fatal(err)
			}
			return page
		}
		page(rowfeed.Request{After: "15"})
		x.Exec("UPDATE kv SET v = 7 WHERE id = 20") // not published: its row is shown at the old position
		got := page(rowfeed.Request{After: "18", Limit: 50})
		if len(got.Entries) != 2 || !strings.Contains(suite.Line(got.Entries[1]), `"v":7`) {
			x.Errorf("the page has the row as it was: %s", text(got))
		}
		x.Publish(feedOf(x, "kv"))
		got = page(rowfeed.Request{After: "18", Limit: 50})
		if suite.Place(got.Cursor) != "21" || len(got.Entries) != 2 {
			x.Errorf("the page lacks an entry that was published: %s", text(got))
		}
		x.Exec("DELETE FROM kv WHERE id = 19")
		x.Publish(feedOf(x, "kv"))
		x.Exec("UPDATE rowfeed_feeds SET tombstones_below = 22") // as a purge does
		_, err := tl.feed.Fetch(x.Ctx, rowfeed.Request{After: "18", Limit: 50})
		x.WantCode(err, rowfeed.TombstonesExpired)
		page(rowfeed.Request{After: "22"})
		if _, err := feedOf(x, "kv").Admin().Bump(x.Ctx); err != nil {
			x.Fatal(err)
		}
		_, err = tl.feed.Fetch(x.Ctx, rowfeed.Request{After: "22", Limit: 50})
		x.WantCode(err, rowfeed.GenerationChanged)
	})
}

// TestWokenReadersShareTwoPages (M69, H26): readers of all parts wait for entries that are published together. Two
// pages are read for them: one for the first reader that is woken, and one that all others share.
func TestWokenReadersShareTwoPages(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		tl := newTail(x, 3, rowfeed.Config{})
		const parts, rows = 8, 36 // so many consecutive ids have all shards among them
		head := 3
		tl.inTime(func() time.Duration {
			results := make([]<-chan suite.Fetched, parts)
			for i := range results {
				results[i] = tl.ask(rowfeed.Request{
					After: rowfeed.Cursor(fmt.Sprint(head)), Wait: suite.Never,
					Shards: rowfeed.Part(i, parts), Limit: 10 + i,
				})
			}
			tl.Eventually("all readers wait", func() bool { return tl.Parked("watch.(*Watcher).Wait(") == parts })
			g := suite.NewGate()
			tl.before.Store(g)
			tl.pages.Store(0)
			began := time.Now()
			x.InsertKV(head+1, head+1+rows)
			x.Publish(tl.feed)
			<-g.Reached
			tl.gather(parts)
			close(g.Open)
			have := 0
			for i, result := range results {
				got := <-result
				if got.Err != nil {
					x.Fatal(got.Err)
				}
				for _, e := range got.Page.Entries {
					if e.Shard != i {
						x.Errorf("part %d has an entry of shard %d", i, e.Shard)
					}
				}
				have += len(got.Page.Entries)
			}
			took := time.Since(began)
			if head += rows; have != rows {
				x.Errorf("%d entries, want %d", have, rows)
			}
			if got := tl.pages.Load(); got != 2 && took < tailPatience {
				x.Errorf("%d pages were read, want 2", got)
			}
			return took
		})
	})
}

// TestTailIsRefusedWhileSharding (H26): requests for a data shard that share a page are refused while the feed's keys
// get other data shards, though the reader has not read the feed's record since.
func TestTailIsRefusedWhileSharding(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		tl := newTail(x, 20, rowfeed.Config{})
		open, held := tl.hold(&tl.after, rowfeed.Request{After: "18"})
		x.Exec("UPDATE rowfeed_feeds SET state = 'sharding', fill_after = NULL")
		var results []<-chan suite.Fetched
		for i := range 4 {
			results = append(results, tl.ask(rowfeed.Request{After: "18", Shards: rowfeed.One(i)}))
		}
		tl.gather(len(results) + 1)
		open()
		if got := <-held; got.Err != nil {
			x.Error(got.Err)
		}
		for _, result := range results {
			got := <-result
			x.WantCode(got.Err, rowfeed.Sharding)
		}
	})
}

// TestFailedTailPageIsReadByEachRequest (H26): if a shared page fails or takes too long, each request reads a page of
// its own.
func TestFailedTailPageIsReadByEachRequest(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		tl := newTail(x, 20, rowfeed.Config{})
		tl.inTime(func() time.Duration {
			began := time.Now()
			open, held := tl.hold(&tl.before, rowfeed.Request{After: "18"})
			broken := errors.New("broken")
			tl.fail.Store(&broken)
			results := []<-chan suite.Fetched{
				tl.ask(rowfeed.Request{After: "18", Limit: 1}), tl.ask(rowfeed.Request{After: "17"}),
			}
			tl.gather(len(results) + 1)
			open()
			var answers []suite.Fetched
			for _, result := range append(results, held) {
				answers = append(answers, <-result)
			}
			took := time.Since(began)
			// After tailPatience, the injected error may have met a request that reads alone.
			for i, got := range answers {
				if took < tailPatience && (got.Err != nil || len(got.Page.Entries) == 0) {
					x.Errorf("%d: %+v", i, got)
				}
			}
			tl.fail.Store(nil)
			return took
		})
		ctx, cancel := context.WithTimeout(x.Ctx, suite.Patience())
		defer cancel()
		open, held := tl.hold(&tl.before, rowfeed.Request{After: "18"}) // its connection hangs
		page, err := tl.feed.Fetch(ctx, rowfeed.Request{After: "18", Limit: 1})
		if err != nil || len(page.Entries) != 1 {
			x.Errorf("while another page hangs: %+v, %v", page, err)
		}
		open()
		<-held
	})
}

// TestNegativeTailBytesSharesNoPage (H26): with TailBytes below 0 every request reads a page of its own.
func TestNegativeTailBytesSharesNoPage(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		tl := newTail(x, 20, rowfeed.Config{TailBytes: -1})
		open, held := tl.hold(&tl.before, rowfeed.Request{After: "18"})
		defer open()
		_ = held
		for i := range 3 {
			page, err := tl.feed.Fetch(x.Ctx, rowfeed.Request{After: "18", Shards: rowfeed.One(i)})
			if err != nil || suite.Place(page.Cursor) != "20" {
				x.Errorf("%+v, %v", page, err)
			}
		}
		if got := tl.pages.Load(); got != 4 {
			x.Errorf("%d pages were read, want 4", got)
		}
	})
}

// TestSharedPageHasEqualValues (H26): requests that share a page get the same values as a request that reads alone,
// also for values that rowfeed converts: documents, times and fractions.
func TestSharedPageHasEqualValues(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.Exec(x.Text("page.converted_values"))
		x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
		tl := &tail{Env: x}
		tl.feed = x.Tapped(testdb.Hooks{After: func(_ context.Context, ev testdb.TapEvent, err error) error {
			if pageReads(ev) {
				if g := tl.after.Swap(nil); g != nil {
					g.Pass()
				}
			}
			return err
		}}, &rowfeed.Config{WatchPoll: suite.Never})
		x.Exec(`INSERT INTO kv VALUES (1, '{"a": [1]}', '2026-01-31 12:00:00', 0.5),
			(2, '{"b": null}', '2026-01-31 12:00:01', 1), (3, 'null', NULL, NULL)`)
		x.Publish(tl.feed)
		want := text(x.Fetch(feedOf(x, "kv"), "1", 100))
		open, held := tl.hold(&tl.after, rowfeed.Request{After: "2"})
		var results []<-chan suite.Fetched
		for i := range 8 {
			results = append(results, tl.ask(rowfeed.Request{After: "1", Limit: 90 + i}))
		}
		tl.gather(len(results) + 1)
		open()
		if got := <-held; got.Err != nil {
			x.Fatal(got.Err)
		}
		for _, result := range results {
			if got := <-result; got.Err != nil || text(got.Page) != want {
				x.Errorf("%v\n%s\nwant\n%s", got.Err, text(got.Page), want)
			}
		}
	})
}
