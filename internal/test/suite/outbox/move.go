package outbox

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
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// unhurried is PostgreSQL's dialect but for the bound on how long a mover's transaction may stand still.
type unhurried struct{ dialect.Dialect }

func (u unhurried) Settings(p dialect.Purpose, n dialect.Names) []string {
	return append(slices.Clone(u.Dialect.Settings(p, n)), "SET LOCAL idle_in_transaction_session_timeout = 0")
}

// still is other for a mover that a test holds in its transaction, for as long as the test takes.
func still(x *suite.Events, h testdb.Hooks) *rowfeed.Feed {
	x.Helper()
	if x.Family() != "postgres" {
		return x.Other(h, nil)
	}
	rf, err := rowfeed.Open(x.Ctx, x.DB.OpenTapped(x.T, h), unhurried{x.Dialect}, nil)
	if err != nil {
		x.Fatal(err)
	}
	f, err := rf.Feed(x.Ctx, "events")
	if err != nil {
		x.Fatal(err)
	}
	return f
}

// asking fetches in the background.
func asking(x *suite.Events, f *rowfeed.Feed, req rowfeed.Request) <-chan suite.Fetched {
	result := make(chan suite.Fetched, 1)
	go func() {
		page, err := f.Fetch(x.Ctx, req)
		result <- suite.Fetched{Page: page, Err: err}
	}()
	return result
}

// answered is a page that was asked for.
func answered(x *suite.Events, result <-chan suite.Fetched) rowfeed.Page {
	x.Helper()
	got := <-result
	if got.Err != nil {
		x.Fatal(got.Err)
	}
	return got.Page
}

func takesRecords(ev testdb.TapEvent) bool {
	return strings.HasPrefix(ev.SQL, "SELECT order_sequence, time_hint")
}

// TestOutboxShardsApart (M30, M59): who reads a shard moves its records, and none of those of
// other shards that lie between them; who asks for now moves nothing, and is given what waited
// then by the next page.
func TestOutboxShardsApart(t *testing.T) {
	suite.EachOutbox(t, func(x *suite.Events) {
		for id := range 9 {
			x.Appended(id, []int{0, 77, -5}[id%3], time.Time{})
		}
		x.WantIDs(x.Page(x.Feed, 77, "", 2), true, 1, 4)
		if n := x.Scalar("SELECT count(*) FROM rowfeed_outbox_events"); n != 6 {
			t.Errorf("%d records are left, want those of the other shards", n)
		}
		now := x.Page(x.Feed, 0, rowfeed.Now, 10)
		x.WantIDs(now, false)
		x.WantIDs(x.Page(x.Feed, -5, "", 10), false, 2, 5, 8)
		x.WantIDs(x.Page(x.Feed, 0, now.Cursor, 10), false, 0, 3, 6)
		x.Appended(10, 0, time.Time{})
		now = x.Page(x.Feed, 0, rowfeed.Now, 10)
		x.WantIDs(x.Page(x.Feed, 0, now.Cursor, 10), false, 10)
		x.WantSound(x.Feed)
	})
}

// TestOutboxBatches (M59): a backlog of many batches is read in order however large the pages
// are, and moved by a publisher in batches, shard by shard.
func TestOutboxBatches(t *testing.T) {
	suite.EachOutbox(t, func(x *suite.Events) {
		const each = 1100
		tx := x.Begin(sql.LevelReadCommitted)
		want := make([][]int, 3)
		for id := range 3 * each {
			if err := x.Append(tx, id, id%3, time.Time{}); err != nil {
				t.Fatal(err)
			}
			want[id%3] = append(want[id%3], id)
		}
		x.Commit(tx)
		var passes []int
		f := x.Other(testdb.Hooks{}, &rowfeed.Config{BatchSize: 400, Observer: &rowfeed.Observer{Published: func(e rowfeed.PublishEvent) { passes = append(passes, e.Changes) }}})
		x.WantIDs(x.Page(f, 1, "", 3), true, want[1][:3]...)
		x.WantIDs(x.Page(f, 1, "", 1000), true, want[1][:500]...)
		if !slices.Equal(passes, []int{500}) {
			t.Errorf("moved %v", passes)
		}
		if n, err := f.Publish(x.Ctx); n != 3*each-500 || err != nil {
			t.Errorf("%d moved, %v", n, err)
		}
		if len(passes) < 5 {
			t.Errorf("moved %v", passes)
		}
		for shard := range 3 {
			x.WantIDs(x.Page(f, shard, "", 2*each), false, want[shard]...)
		}
		x.WantSound(f)
	})
}

// TestOutboxMovers (M59, H1, H9): two movers of one shard take turns. The second reads
// the records when it has the lock, not before: those that the first has moved are gone, one that
// came meanwhile stands behind them, and both have read the same. On the way no writer waits,
// nor a mover of another shard, even where sessions are REPEATABLE READ by default.
func TestOutboxMovers(t *testing.T) {
	suite.EachOutbox(t, func(x *suite.Events) {
		x.Appended(1, 0, time.Time{})
		x.Appended(2, 0, time.Time{})
		x.Appended(3, 1, time.Time{})
		var placed atomic.Bool
		held := testdb.Hold(func(ev testdb.TapEvent) bool { return ev.Kind == testdb.Commit && placed.Load() })
		first := still(x, testdb.Hooks{Before: func(ctx context.Context, ev testdb.TapEvent) error {
			if suite.PlacesRecords(ev) {
				placed.Store(true)
			}
			return held.Before(ctx, ev)
		}})
		one := asking(x, first, rowfeed.Request{Shards: rowfeed.One(0)})
		<-held.Reached
		asks := make(chan struct{}, 100)
		second := x.Other(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if ev.Kind != testdb.Query && strings.Contains(ev.SQL, "rowfeed_shards") || strings.HasSuffix(ev.SQL, "FOR UPDATE") || x.Family() == "sqlite" && ev.Kind == testdb.Begin {
				asks <- struct{}{}
			}
			return nil
		}}, nil)
		two := asking(x, second, rowfeed.Request{Shards: rowfeed.One(0), Wait: time.Hour})
		<-asks
		if x.Family() != "sqlite" {
			x.Appended(4, 0, time.Time{})
			x.WantIDs(x.Page(x.Feed, 1, "", 10), false, 3)
		}
		held.Release()
		a, b := answered(x, one), answered(x, two)
		if x.Family() == "sqlite" {
			x.WantIDs(a, false, 1, 2)
			x.WantIDs(b, false, 1, 2)
			return
		}
		x.WantIDs(x.All(0), false, 1, 2, 4)
		for _, page := range []rowfeed.Page{a, b} {
			ids := 0
			for i, e := range page.Entries {
				if id, _ := e.Key.Get("id"); id != int64([]int{1, 2, 4}[i]) {
					t.Errorf("a reader saw\n%s", suite.Lines(page))
				}
				ids++
			}
			if ids < 2 {
				t.Errorf("a reader saw\n%s", suite.Lines(page))
			}
		}
		x.WantSound(x.Feed)
	})
}

// TestOutboxMovedByOthers (G3, M59): a record that waits when a page is read, and is moved
// by somebody else before its reader can, is on the page all the same: "more: false" means that
// everything committed before was shown.
func TestOutboxMovedByOthers(t *testing.T) {
	suite.EachOutbox(t, func(x *suite.Events) {
		x.Appended(1, 0, time.Time{})
		var read sync.Once
		var moves, moved atomic.Bool
		f := x.Other(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if ev.Kind == testdb.Begin && moves.CompareAndSwap(true, false) {
				x.Publish(x.Feed) // the page has been read
				moved.Store(true)
			}
			return nil
		}, After: func(_ context.Context, ev testdb.TapEvent, err error) error {
			if strings.HasPrefix(ev.SQL, "SELECT f.generation, COALESCE") {
				read.Do(func() { moves.Store(true) })
			}
			return err
		}}, nil)
		x.WantIDs(x.Page(f, 0, "", 10), false, 1)
		if !moved.Load() {
			t.Error("nobody else has moved it")
		}
	})
}

// TestOutboxReplaced (M59, H15): nobody moves records in a database that is not the one it was.
func TestOutboxReplaced(t *testing.T) {
	suite.EachOutbox(t, func(x *suite.Events) {
		x.Appended(1, 0, time.Time{})
		if x.Scalar("SELECT count(*) FROM rowfeed_feeds WHERE database_identity IS NULL") == 0 {
			x.Exec("UPDATE rowfeed_feeds SET database_identity = 'another'")
			_, err := x.Other(testdb.Hooks{}, nil).Fetch(x.Ctx, rowfeed.Request{})
			x.WantCode(err, rowfeed.DatabaseChanged)
			_, err = x.Other(testdb.Hooks{}, nil).Publish(x.Ctx)
			x.WantCode(err, rowfeed.DatabaseChanged)
			if n := x.Scalar("SELECT count(*) FROM rowfeed_outbox_events"); n != 1 {
				t.Errorf("%d records wait", n)
			}
			x.Exec("UPDATE rowfeed_feeds SET database_identity = NULL")
		}
		x.WantIDs(x.Page(x.Feed, 0, "", 10), false, 1)
		x.Appended(2, 0, time.Time{})
		x.Exec("UPDATE rowfeed_shards SET ulid_low = ulid_low - 1")
		_, err := x.Feed.Publish(x.Ctx)
		x.WantCode(err, rowfeed.DatabaseChanged)
	})
}

// TestOutboxNoPublish (M59): where it is for others to publish, readers move nothing, a publisher is
// refused, and consistent pages are; what others have moved is read.
func TestOutboxNoPublish(t *testing.T) {
	suite.EachOutbox(t, func(x *suite.Events) {
		x.Appended(1, 0, time.Time{})
		for _, cfg := range []*rowfeed.Config{{NoPublish: true}, {Replica: true}} {
			f := x.Other(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
				if suite.PlacesRecords(ev) || takesRecords(ev) {
					t.Errorf("it moves: %s", ev.SQL)
				}
				return nil
			}}, cfg)
			x.WantIDs(x.Page(f, 0, "", 10), false)
			_, err := f.Publish(x.Ctx)
			if want := rowfeed.Refused; cfg.NoPublish {
				x.WantCode(err, want)
			} else {
				x.WantCode(err, rowfeed.ReadOnly)
			}
			_, err = f.Fetch(x.Ctx, rowfeed.Request{Consistent: true, Shards: rowfeed.One(0)})
			x.WantCode(err, rowfeed.InvalidRequest)
			x.Publish(x.Feed)
			x.WantIDs(x.Page(f, 0, "", 10), false, 1)
			x.Exec("DELETE FROM rowfeed_feed_events")
			tx := x.Begin(sql.LevelReadCommitted)
			if err := x.Feed.AppendOutbox(x.Ctx, rowfeed.InTx(tx), rowfeed.OutboxRecord{Key: rowfeed.Key{int64(1)}}); err != nil {
				t.Fatal(err)
			}
			x.Commit(tx)
		}
	})
}

func init() {
	testdb.RegisterChild("move", func() {
		_ = suite.Crashing(func(ctx context.Context, rf *rowfeed.DB) error {
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
	suite.EachOutbox(t, func(x *suite.Events) {
		want := []int{}
		for n := 1; ; n++ {
			for range 3 {
				want = append(want, len(want)+1)
				x.Appended(len(want), 0, time.Time{})
			}
			before := x.Killed("move", n)
			want = append(want, len(want)+1)
			x.Appended(len(want), 0, time.Time{})
			x.WantIDs(x.All(0), false, want...)
			if n := x.Scalar("SELECT count(*) FROM rowfeed_outbox_events"); n != 0 {
				t.Fatalf("killed before %s: %d records are left", before, n)
			}
			if before == "" {
				if n < 8 {
					t.Fatalf("it had %d statements", n)
				}
				x.WantSound(x.Feed)
				return
			}
		}
	})
}

// TestOutboxPublisher (M55, M59): publishers move ahead of readers, one of them at a time, until they
// are told to end.
func TestOutboxPublisher(t *testing.T) {
	suite.EachOutbox(t, func(x *suite.Events) {
		var holders atomic.Int64
		ctx, stop := context.WithCancel(x.Ctx)
		ended := make(chan error, 2)
		for range 2 {
			f := x.Other(testdb.Hooks{}, &rowfeed.Config{IdlePoll: time.Millisecond, PublisherLease: time.Hour, Observer: &rowfeed.Observer{Lease: func(e rowfeed.LeaseEvent) {
				if e.Mine {
					holders.Add(1)
				}
			}}})
			go func() { ended <- f.RunPublisher(ctx) }()
		}
		reader := x.Other(testdb.Hooks{}, &rowfeed.Config{NoPublish: true, WatchPoll: time.Millisecond})
		cursor := rowfeed.Beginning
		for id := 1; id <= 5; id++ {
			x.Appended(id, 3, time.Time{})
			page, err := reader.Fetch(x.Ctx, rowfeed.Request{After: cursor, Shards: rowfeed.One(3), Wait: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			x.WantIDs(page, false, id)
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
	suite.EachOutbox(t, func(x *suite.Events) {
		x.Appended(1, 0, time.Time{})
		x.Appended(2, 1, time.Time{})
		x.WantIDs(x.Page(x.Feed, 0, "", 10), false, 1)
		for id := 3; id < 10; id++ {
			x.Appended(id, 0, time.Time{})
		}
		var open *sql.Tx
		if x.Family() != "sqlite" {
			open = x.Begin(sql.LevelReadCommitted)
			if err := x.Append(open, 100, 0, time.Time{}); err != nil {
				t.Fatal(err)
			}
		}
		more := 10
		f := x.Other(testdb.Hooks{After: func(_ context.Context, ev testdb.TapEvent, err error) error {
			if strings.HasPrefix(ev.SQL, "SELECT order_sequence FROM") { // the newest is known: others go on
				x.Appended(more, 0, time.Time{})
				more++
			}
			return err
		}}, nil)
		x.WantIDs(x.Page(f, 0, "", 10), true, 1) // what waits is no part of a page as such
		page, err := f.Fetch(x.Ctx, rowfeed.Request{Shards: rowfeed.One(0), Consistent: true, Limit: 4})
		if err != nil {
			t.Fatal(err)
		}
		x.WantIDs(page, true, 1, 3, 4, 5)
		if n := x.Scalar("SELECT count(*) FROM rowfeed_outbox_events WHERE shard = 1"); n != 1 {
			t.Errorf("%d records of the other shard wait", n)
		}
		_, err = f.Fetch(x.Ctx, rowfeed.Request{Consistent: true})
		if x.WantCode(err, rowfeed.InvalidRequest); !strings.Contains(fmt.Sprint(err), "0, 1") {
			t.Error(err)
		}
		if open == nil {
			return
		}
		x.Commit(open)
		page, err = f.Fetch(x.Ctx, rowfeed.Request{After: page.Cursor, Shards: rowfeed.One(0), Consistent: true})
		if err != nil {
			t.Fatal(err)
		}
		x.WantIDs(page, false, 6, 7, 8, 9, 10, 100, 11)
	})
}
