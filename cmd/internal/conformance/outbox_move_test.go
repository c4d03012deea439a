package conformance

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// other opens the feed once more, as another process would, with hooks.
func (x *events) other(h testdb.Hooks, cfg *rowfeed.Config) *rowfeed.Feed {
	x.Helper()
	f, err := x.tappedDB(h, cfg).Feed(x.ctx, "events")
	if err != nil {
		x.Fatal(err)
	}
	return f
}

// unhurried is PostgreSQL's dialect but for the bound on how long a mover's transaction may stand still.
type unhurried struct{ dialect.Dialect }

func (u unhurried) Settings(p dialect.Purpose, n dialect.Names) []string {
	return append(slices.Clone(u.Dialect.Settings(p, n)), "SET LOCAL idle_in_transaction_session_timeout = 0")
}

// still is other for a mover that a test holds in its transaction, for as long as the test takes.
func (x *events) still(h testdb.Hooks) *rowfeed.Feed {
	x.Helper()
	if x.family() != "postgres" {
		return x.other(h, nil)
	}
	rf, err := rowfeed.Open(x.ctx, x.db.OpenTapped(x.T, h), unhurried{x.dialect}, nil)
	if err != nil {
		x.Fatal(err)
	}
	f, err := rf.Feed(x.ctx, "events")
	if err != nil {
		x.Fatal(err)
	}
	return f
}

// asking fetches in the background.
func (x *events) asking(f *rowfeed.Feed, req rowfeed.Request) <-chan fetched {
	result := make(chan fetched, 1)
	go func() {
		page, err := f.Fetch(x.ctx, req)
		result <- fetched{page, err}
	}()
	return result
}

// answered is a page that was asked for.
func (x *events) answered(result <-chan fetched) rowfeed.Page {
	x.Helper()
	got := <-result
	if got.err != nil {
		x.Fatal(got.err)
	}
	return got.page
}

// all is everything that a shard has, as one page.
func (x *events) all(shard int) (all rowfeed.Page) {
	x.Helper()
	for all.More = true; all.More; {
		page := x.page(x.feed, shard, all.Cursor, 0)
		all.Entries, all.Cursor, all.More = append(all.Entries, page.Entries...), page.Cursor, page.More
	}
	return all
}

// placesRecords matches the statement that gives records their places, takesRecords the one that reads them.
func placesRecords(ev testdb.TapEvent) bool {
	return (strings.HasPrefix(ev.SQL, "INSERT") || strings.HasPrefix(ev.SQL, "WITH own")) && strings.Contains(ev.SQL, "feed_events")
}

func takesRecords(ev testdb.TapEvent) bool {
	return strings.HasPrefix(ev.SQL, "SELECT order_sequence, time_hint")
}

// TestOutboxShardsApart (M30, M59): who reads a shard moves its records, and none of those of
// other shards that lie between them; who asks for now moves nothing, and is given what waited
// then by the next page.
func TestOutboxShardsApart(t *testing.T) {
	eachOutbox(t, func(x *events) {
		for id := range 9 {
			x.appended(id, []int{0, 77, -5}[id%3], time.Time{})
		}
		x.wantIDs(x.page(x.feed, 77, "", 2), true, 1, 4)
		if n := x.scalar("SELECT count(*) FROM rowfeed_outbox_events"); n != 6 {
			t.Errorf("%d records are left, want those of the other shards", n)
		}
		now := x.page(x.feed, 0, rowfeed.Now, 10)
		x.wantIDs(now, false)
		x.wantIDs(x.page(x.feed, -5, "", 10), false, 2, 5, 8)
		x.wantIDs(x.page(x.feed, 0, now.Cursor, 10), false, 0, 3, 6)
		x.appended(10, 0, time.Time{})
		now = x.page(x.feed, 0, rowfeed.Now, 10)
		x.wantIDs(x.page(x.feed, 0, now.Cursor, 10), false, 10)
		x.wantSound(x.feed)
	})
}

// TestOutboxBatches (M59): a backlog of many batches is read in order however large the pages
// are, and moved by a publisher in batches, shard by shard.
func TestOutboxBatches(t *testing.T) {
	eachOutbox(t, func(x *events) {
		const each = 1100
		tx := x.begin(sql.LevelReadCommitted)
		want := make([][]int, 3)
		for id := range 3 * each {
			if err := x.append(tx, id, id%3, time.Time{}); err != nil {
				t.Fatal(err)
			}
			want[id%3] = append(want[id%3], id)
		}
		x.commit(tx)
		var passes []int
		f := x.other(testdb.Hooks{}, &rowfeed.Config{BatchSize: 400, Observer: &rowfeed.Observer{Published: func(e rowfeed.PublishEvent) { passes = append(passes, e.Changes) }}})
		x.wantIDs(x.page(f, 1, "", 3), true, want[1][:3]...)
		x.wantIDs(x.page(f, 1, "", 1000), true, want[1][:500]...)
		if !slices.Equal(passes, []int{500}) {
			t.Errorf("moved %v", passes)
		}
		if n, err := f.Publish(x.ctx); n != 3*each-500 || err != nil {
			t.Errorf("%d moved, %v", n, err)
		}
		if len(passes) < 5 {
			t.Errorf("moved %v", passes)
		}
		for shard := range 3 {
			x.wantIDs(x.page(f, shard, "", 2*each), false, want[shard]...)
		}
		x.wantSound(f)
	})
}

// TestOutboxMovers (M59, H1, H9): two movers of one shard take turns. The second reads
// the records when it has the lock, not before: those that the first has moved are gone, one that
// came meanwhile stands behind them, and both have read the same. On the way no writer waits,
// nor a mover of another shard, even where sessions are REPEATABLE READ by default.
func TestOutboxMovers(t *testing.T) {
	eachOutbox(t, func(x *events) {
		x.appended(1, 0, time.Time{})
		x.appended(2, 0, time.Time{})
		x.appended(3, 1, time.Time{})
		var placed atomic.Bool
		held := testdb.Hold(func(ev testdb.TapEvent) bool { return ev.Kind == testdb.Commit && placed.Load() })
		first := x.still(testdb.Hooks{Before: func(ctx context.Context, ev testdb.TapEvent) error {
			if placesRecords(ev) {
				placed.Store(true)
			}
			return held.Before(ctx, ev)
		}})
		one := x.asking(first, rowfeed.Request{Shards: rowfeed.One(0)})
		<-held.Reached
		asks := make(chan struct{}, 100)
		second := x.other(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if ev.Kind != testdb.Query && strings.Contains(ev.SQL, "rowfeed_shards") || strings.HasSuffix(ev.SQL, "FOR UPDATE") || x.family() == "sqlite" && ev.Kind == testdb.Begin {
				asks <- struct{}{}
			}
			return nil
		}}, nil)
		two := x.asking(second, rowfeed.Request{Shards: rowfeed.One(0), Wait: time.Hour})
		<-asks
		if x.family() != "sqlite" {
			x.appended(4, 0, time.Time{})
			x.wantIDs(x.page(x.feed, 1, "", 10), false, 3)
		}
		held.Release()
		a, b := x.answered(one), x.answered(two)
		if x.family() == "sqlite" {
			x.wantIDs(a, false, 1, 2)
			x.wantIDs(b, false, 1, 2)
			return
		}
		x.wantIDs(x.all(0), false, 1, 2, 4)
		for _, page := range []rowfeed.Page{a, b} {
			ids := 0
			for i, e := range page.Entries {
				if id, _ := e.Key.Get("id"); id != int64([]int{1, 2, 4}[i]) {
					t.Errorf("a reader saw\n%s", lines(page))
				}
				ids++
			}
			if ids < 2 {
				t.Errorf("a reader saw\n%s", lines(page))
			}
		}
		x.wantSound(x.feed)
	})
}

// TestOutboxMovedByOthers (G3, M59): a record that waits when a page is read, and is moved
// by somebody else before its reader can, is on the page all the same: "more: false" means that
// everything committed before was shown.
func TestOutboxMovedByOthers(t *testing.T) {
	eachOutbox(t, func(x *events) {
		x.appended(1, 0, time.Time{})
		var read sync.Once
		var moves, moved atomic.Bool
		f := x.other(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if ev.Kind == testdb.Begin && moves.CompareAndSwap(true, false) {
				x.publish(x.feed) // the page has been read
				moved.Store(true)
			}
			return nil
		}, After: func(_ context.Context, ev testdb.TapEvent, err error) error {
			if strings.HasPrefix(ev.SQL, "SELECT f.generation, COALESCE") {
				read.Do(func() { moves.Store(true) })
			}
			return err
		}}, nil)
		x.wantIDs(x.page(f, 0, "", 10), false, 1)
		if !moved.Load() {
			t.Error("nobody else has moved it")
		}
	})
}

// TestOutboxReplaced (M59, H15): nobody moves records in a database that is not the one it was.
func TestOutboxReplaced(t *testing.T) {
	eachOutbox(t, func(x *events) {
		x.appended(1, 0, time.Time{})
		if x.scalar("SELECT count(*) FROM rowfeed_feeds WHERE database_identity IS NULL") == 0 {
			x.exec("UPDATE rowfeed_feeds SET database_identity = 'another'")
			_, err := x.other(testdb.Hooks{}, nil).Fetch(x.ctx, rowfeed.Request{})
			x.wantCode(err, rowfeed.DatabaseChanged)
			_, err = x.other(testdb.Hooks{}, nil).Publish(x.ctx)
			x.wantCode(err, rowfeed.DatabaseChanged)
			if n := x.scalar("SELECT count(*) FROM rowfeed_outbox_events"); n != 1 {
				t.Errorf("%d records wait", n)
			}
			x.exec("UPDATE rowfeed_feeds SET database_identity = NULL")
		}
		x.wantIDs(x.page(x.feed, 0, "", 10), false, 1)
		x.appended(2, 0, time.Time{})
		x.exec("UPDATE rowfeed_shards SET ulid_low = ulid_low - 1")
		_, err := x.feed.Publish(x.ctx)
		x.wantCode(err, rowfeed.DatabaseChanged)
	})
}

// TestOutboxNoPublish (M59): where it is for others to publish, readers move nothing, a publisher is
// refused, and consistent pages are; what others have moved is read.
func TestOutboxNoPublish(t *testing.T) {
	eachOutbox(t, func(x *events) {
		x.appended(1, 0, time.Time{})
		for _, cfg := range []*rowfeed.Config{{NoPublish: true}, {Replica: true}} {
			f := x.other(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
				if placesRecords(ev) || takesRecords(ev) {
					t.Errorf("it moves: %s", ev.SQL)
				}
				return nil
			}}, cfg)
			x.wantIDs(x.page(f, 0, "", 10), false)
			_, err := f.Publish(x.ctx)
			if want := rowfeed.Refused; cfg.NoPublish {
				x.wantCode(err, want)
			} else {
				x.wantCode(err, rowfeed.ReadOnly)
			}
			_, err = f.Fetch(x.ctx, rowfeed.Request{Consistent: true, Shards: rowfeed.One(0)})
			x.wantCode(err, rowfeed.InvalidRequest)
			x.publish(x.feed)
			x.wantIDs(x.page(f, 0, "", 10), false, 1)
			x.exec("DELETE FROM rowfeed_feed_events")
			tx := x.begin(sql.LevelReadCommitted)
			if err := x.feed.AppendOutbox(x.ctx, rowfeed.InTx(tx), rowfeed.OutboxRecord{Key: rowfeed.Key{int64(1)}}); err != nil {
				t.Fatal(err)
			}
			x.commit(tx)
		}
	})
}

func init() {
	testdb.RegisterChild("move", func() {
		_ = crashing(func(ctx context.Context, rf *rowfeed.DB) error {
			f, err := rf.Feed(ctx, "events")
			if err == nil {
				_, err = f.Fetch(ctx, rowfeed.Request{Shards: rowfeed.One(0), Limit: 2})
			}
			return err
		})
	})
}

// TestOutboxMoverKilled (M8, M59, H18): a reader is killed before each of its statements in turn, while it
// moves records. Its move is done, or nothing of it; writers do not notice, and the next
// reader shows every record once, in order.
func TestOutboxMoverKilled(t *testing.T) {
	eachOutbox(t, func(x *events) {
		want := []int{}
		for n := 1; ; n++ {
			for range 3 {
				want = append(want, len(want)+1)
				x.appended(len(want), 0, time.Time{})
			}
			before := x.killed("move", n)
			want = append(want, len(want)+1)
			x.appended(len(want), 0, time.Time{})
			x.wantIDs(x.all(0), false, want...)
			if n := x.scalar("SELECT count(*) FROM rowfeed_outbox_events"); n != 0 {
				t.Fatalf("killed before %s: %d records are left", before, n)
			}
			if before == "" {
				if n < 8 {
					t.Fatalf("it had %d statements", n)
				}
				x.wantSound(x.feed)
				return
			}
		}
	})
}

// TestOutboxPublisher (M55, M59): publishers move ahead of readers, one of them at a time, until they
// are told to end.
func TestOutboxPublisher(t *testing.T) {
	eachOutbox(t, func(x *events) {
		var holders atomic.Int64
		ctx, stop := context.WithCancel(x.ctx)
		ended := make(chan error, 2)
		for range 2 {
			f := x.other(testdb.Hooks{}, &rowfeed.Config{IdlePoll: time.Millisecond, PublisherLease: time.Hour, Observer: &rowfeed.Observer{Lease: func(e rowfeed.LeaseEvent) {
				if e.Mine {
					holders.Add(1)
				}
			}}})
			go func() { ended <- f.RunPublisher(ctx) }()
		}
		reader := x.other(testdb.Hooks{}, &rowfeed.Config{NoPublish: true, WatchPoll: time.Millisecond})
		cursor := rowfeed.Beginning
		for id := 1; id <= 5; id++ {
			x.appended(id, 3, time.Time{})
			page, err := reader.Fetch(x.ctx, rowfeed.Request{After: cursor, Shards: rowfeed.One(3), Wait: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			x.wantIDs(page, false, id)
			cursor = page.Cursor
		}
		if n := holders.Load(); n != 1 {
			t.Errorf("%d publishers work", n)
		}
		stop()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
}

// TestOutboxConsistent (M59, H14): a consistent page has what was committed before it was asked
// for, in its shard; records of other shards it leaves alone, and for those that come while it
// works, or are not committed, it does not wait.
func TestOutboxConsistent(t *testing.T) {
	eachOutbox(t, func(x *events) {
		x.appended(1, 0, time.Time{})
		x.appended(2, 1, time.Time{})
		x.wantIDs(x.page(x.feed, 0, "", 10), false, 1)
		for id := 3; id < 10; id++ {
			x.appended(id, 0, time.Time{})
		}
		var open *sql.Tx
		if x.family() != "sqlite" {
			open = x.begin(sql.LevelReadCommitted)
			if err := x.append(open, 100, 0, time.Time{}); err != nil {
				t.Fatal(err)
			}
		}
		more := 10
		f := x.other(testdb.Hooks{After: func(_ context.Context, ev testdb.TapEvent, err error) error {
			if strings.HasPrefix(ev.SQL, "SELECT order_sequence FROM") { // the newest is known: others go on
				x.appended(more, 0, time.Time{})
				more++
			}
			return err
		}}, nil)
		x.wantIDs(x.page(f, 0, "", 10), true, 1) // what waits is no part of a page as such
		page, err := f.Fetch(x.ctx, rowfeed.Request{Shards: rowfeed.One(0), Consistent: true, Limit: 4})
		if err != nil {
			t.Fatal(err)
		}
		x.wantIDs(page, true, 1, 3, 4, 5)
		if n := x.scalar("SELECT count(*) FROM rowfeed_outbox_events WHERE shard = 1"); n != 1 {
			t.Errorf("%d records of the other shard wait", n)
		}
		_, err = f.Fetch(x.ctx, rowfeed.Request{Consistent: true})
		if x.wantCode(err, rowfeed.InvalidRequest); !strings.Contains(fmt.Sprint(err), "0, 1") {
			t.Error(err)
		}
		if open == nil {
			return
		}
		x.commit(open)
		page, err = f.Fetch(x.ctx, rowfeed.Request{After: page.Cursor, Shards: rowfeed.One(0), Consistent: true})
		if err != nil {
			t.Fatal(err)
		}
		x.wantIDs(page, false, 6, 7, 8, 9, 10, 100, 11)
	})
}
