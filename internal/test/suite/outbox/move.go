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
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// unhurried begins transactions with further settings.
type unhurried struct {
	dialect.Core
	settings []string
}

func (u unhurried) Begin(p dialect.Purpose, n dialect.Names) dialect.Beginning {
	b := u.Core.Begin(p, n)
	b.First = append(slices.Clone(b.First), u.settings...)
	return b
}

// unhurriedFeed opens the feed in another process, whose movers may be idle in their transactions for as long as the
// test needs.
func unhurriedFeed(x *suite.Events, h testdb.Hooks) *rowfeed.Feed {
	x.Helper()
	settings := x.Statements("outbox.unlimited_idle_transaction")
	if len(settings) == 0 {
		return x.Other(h, nil)
	}
	d := *x.Dialect
	d.Core = unhurried{d.Core, settings}
	rf, err := rowfeed.Open(x.Ctx, x.DB.OpenTapped(x.T, h), &d, nil)
	if err != nil {
		x.Fatal(err)
	}
	f, err := rf.Feed(x.Ctx, "events")
	if err != nil {
		x.Fatal(err)
	}
	return f
}

// heldMover opens the feed in another process. Its first mover stops before COMMIT, until held is released.
func heldMover(x *suite.Events) (mover *rowfeed.Feed, held *testdb.Held) {
	x.Helper()
	var placed atomic.Bool
	held = testdb.Hold(func(ev testdb.TapEvent) bool { return ev.Kind == testdb.Commit && placed.Load() })
	return unhurriedFeed(x, testdb.Hooks{Before: func(ctx context.Context, ev testdb.TapEvent) error {
		if suite.PlacesRecords(ev) {
			placed.Store(true)
		}
		return held.Before(ctx, ev)
	}}), held
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

// TestReaderMovesOnlyItsShard (M30, M59): a reader of a shard moves its records, and none of other shards that lie
// between them. The cursor `now` moves nothing, and the next page has the records that waited then.
func TestReaderMovesOnlyItsShard(t *testing.T) {
	suite.EachOutbox(t, func(x *suite.Events) {
		for id := range 9 {
			x.Appended(id, []int{0, 77, -5}[id%3], time.Time{})
		}
		x.WantIDs(x.Page(x.Feed, 77, "", 2), true, 1, 4)
		if n := x.Scalar("SELECT count(*) FROM rowfeed_outbox_events"); n != 6 {
			t.Errorf("%d records wait, want the 6 of the other shards", n)
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

// TestBacklogMovesInBatches (M59): a backlog of many batches is read in order, whatever the size of pages. A publisher
// moves it in batches, shard by shard.
func TestBacklogMovesInBatches(t *testing.T) {
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
		observer := &rowfeed.Observer{Published: func(e rowfeed.PublishEvent) { passes = append(passes, e.Changes) }}
		f := x.Other(testdb.Hooks{}, &rowfeed.Config{BatchSize: 400, Observer: observer})
		x.WantIDs(x.Page(f, 1, "", 3), true, want[1][:3]...)
		x.WantIDs(x.Page(f, 1, "", 1000), true, want[1][:500]...)
		if !slices.Equal(passes, []int{500}) {
			t.Errorf("batches of %v records were moved", passes)
		}
		if n, err := f.Publish(x.Ctx); n != 3*each-500 || err != nil {
			t.Errorf("%d records moved, %v", n, err)
		}
		if len(passes) < 5 {
			t.Errorf("batches of %v records were moved", passes)
		}
		for shard := range 3 {
			x.WantIDs(x.Page(f, shard, "", 2*each), false, want[shard]...)
		}
		x.WantSound(f)
	})
}

// TestMoversOfAShardTakeTurns (M59, H1, H9): two movers want the same shard. The second reads the records after it has
// locked the shard, so that both see one order, and a record that came meanwhile is last. No writer waits for them, nor
// a mover of another shard, also if sessions are REPEATABLE READ by default.
func TestMoversOfAShardTakeTurns(t *testing.T) {
	suite.EachOutbox(t, func(x *suite.Events) {
		x.Appended(1, 0, time.Time{})
		x.Appended(2, 0, time.Time{})
		x.Appended(3, 1, time.Time{})
		first, held := heldMover(x)
		one := asking(x, first, rowfeed.Request{Shards: rowfeed.One(0)})
		<-held.Reached
		asks := make(chan struct{}, 100)
		second := x.Other(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			locks := ev.Kind != testdb.Query && strings.Contains(ev.SQL, "rowfeed_shards")
			if locks || suite.LocksRows(ev) || x.Has.OneWriter && ev.Kind == testdb.Begin {
				asks <- struct{}{}
			}
			return nil
		}}, nil)
		two := asking(x, second, rowfeed.Request{Shards: rowfeed.One(0), Wait: time.Hour})
		<-asks
		if !x.Has.OneWriter {
			x.Appended(4, 0, time.Time{})
			x.WantIDs(x.Page(x.Feed, 1, "", 10), false, 3)
		}
		held.Release()
		a, b := answered(x, one), answered(x, two)
		if x.Has.OneWriter {
			x.WantIDs(a, false, 1, 2)
			x.WantIDs(b, false, 1, 2)
			return
		}
		x.WantIDs(x.All(0), false, 1, 2, 4)
		for _, page := range []rowfeed.Page{a, b} {
			ids := 0
			for i, e := range page.Entries {
				if id, _ := e.Key.Get("id"); id != int64([]int{1, 2, 4}[i]) {
					t.Errorf("a reader has seen\n%s", suite.Lines(page))
				}
				ids++
			}
			if ids < 2 {
				t.Errorf("a reader has seen\n%s", suite.Lines(page))
			}
		}
		x.WantSound(x.Feed)
	})
}

// TestPageShowsRecordsMovedByOthers (G3, M59): another process moves a waiting record between a reader's page and its
// move. The page has the record all the same: "more: false" means that a page has everything that was committed before.
func TestPageShowsRecordsMovedByOthers(t *testing.T) {
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
			if suite.ReadsULIDPage(ev) {
				read.Do(func() { moves.Store(true) })
			}
			return err
		}}, nil)
		x.WantIDs(x.Page(f, 0, "", 10), false, 1)
		if !moved.Load() {
			t.Error("the other process has not moved the record")
		}
	})
}

// TestReplacedDatabaseMovesNothing (M59, H15): no process moves records if the database is another one, or was
// restored.
func TestReplacedDatabaseMovesNothing(t *testing.T) {
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

// TestNoPublishMovesNothing (M59): in a process that does not publish, readers move no records and get what others have
// moved. Publish and consistent pages are refused.
func TestNoPublishMovesNothing(t *testing.T) {
	suite.EachOutbox(t, func(x *suite.Events) {
		x.Appended(1, 0, time.Time{})
		for _, cfg := range []*rowfeed.Config{{NoPublish: true}, {Replica: true}} {
			f := x.Other(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
				if suite.PlacesRecords(ev) || takesRecords(ev) {
					t.Errorf("a process that does not publish runs %s", ev.SQL)
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
			record := rowfeed.OutboxRecord{Key: rowfeed.Key{int64(1)}}
			if err := x.Feed.AppendOutbox(x.Ctx, rowfeed.InTx(tx), record); err != nil {
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

// TestKilledMoverLosesNothing (M8, M59, H18): a reader that moves records is killed before each of its statements. Its
// move is complete or has not happened, writers do not fail, and the next reader gets every record once and in order.
func TestKilledMoverLosesNothing(t *testing.T) {
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
				t.Fatalf("killed before %s: %d records wait", before, n)
			}
			if before == "" {
				if n < 8 {
					t.Fatalf("the move had %d statements", n)
				}
				x.WantSound(x.Feed)
				return
			}
		}
	})
}

// TestStandbyMovesWhatHolderLeaves (M51, M59): the holder of the publishers' lease does nothing. A publisher that
// stands by moves the records of every shard, and reports the holder once.
func TestStandbyMovesWhatHolderLeaves(t *testing.T) {
	t.Parallel()
	suite.EachOutbox(t, func(x *suite.Events) {
		if _, err := x.RF.Lease(admin.PublisherLease("events"), suite.Long).TryAcquire(x.Ctx); err != nil {
			x.Fatal(err)
		}
		var stalls atomic.Int64
		observer := &rowfeed.Observer{Lease: func(e rowfeed.LeaseEvent) {
			if e.Stalled {
				stalls.Add(1)
			}
		}}
		standby := x.Other(testdb.Hooks{}, &rowfeed.Config{PublisherLease: suite.Long, Observer: observer})
		ctx, stop := context.WithCancel(x.Ctx)
		ended := make(chan error, 1)
		go func() { ended <- standby.RunPublisher(ctx) }()
		for id := 1; id <= 3; id++ {
			x.Appended(id, id, time.Time{})
			x.Appended(10+id, 3, time.Time{})
			x.Eventually("the standby moves the records", func() bool {
				return x.Scalar("SELECT count(*) FROM rowfeed_outbox_events") == 0
			})
		}
		x.Eventually("the standby reports the holder", func() bool { return stalls.Load() > 0 })
		stop()
		if err := <-ended; err != nil {
			x.Error(err)
		}
		if n := stalls.Load(); n != 1 {
			x.Errorf("the standby reports %d stalls", n)
		}
		x.WantIDs(x.All(3), false, 11, 12, 3, 13)
		x.WantSound(x.Feed)
	})
}

// TestOnePublisherMovesAheadOfReaders (M55, M59): of two publishers one moves records, and readers that move nothing
// get the entries. Both end when they are told to.
func TestOnePublisherMovesAheadOfReaders(t *testing.T) {
	suite.EachOutbox(t, func(x *suite.Events) {
		var holders atomic.Int64
		ctx, stop := context.WithCancel(x.Ctx)
		ended := make(chan error, 2)
		for range 2 {
			observer := &rowfeed.Observer{Lease: func(e rowfeed.LeaseEvent) {
				if e.Mine {
					holders.Add(1)
				}
			}}
			f := x.Other(testdb.Hooks{},
				&rowfeed.Config{IdlePoll: time.Millisecond, PublisherLease: time.Hour, Observer: observer})
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
			t.Errorf("%d publishers have held the lease", n)
		}
		stop()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
}

// TestConsistentPageHasEarlierCommits (M59, H14): a consistent page has the records of its shard that were committed
// before the request. It does not move records of other shards, and waits neither for later records nor for open
// transactions.
func TestConsistentPageHasEarlierCommits(t *testing.T) {
	suite.EachOutbox(t, func(x *suite.Events) {
		x.Appended(1, 0, time.Time{})
		x.Appended(2, 1, time.Time{})
		x.WantIDs(x.Page(x.Feed, 0, "", 10), false, 1)
		for id := 3; id < 10; id++ {
			x.Appended(id, 0, time.Time{})
		}
		var open *sql.Tx
		if !x.Has.OneWriter {
			open = x.Begin(sql.LevelReadCommitted)
			if err := x.Append(open, 100, 0, time.Time{}); err != nil {
				t.Fatal(err)
			}
		}
		more := 10
		f := x.Other(testdb.Hooks{After: func(_ context.Context, ev testdb.TapEvent, err error) error {
			if suite.ReadsNewestRecord(ev) { // the page's last record is known now
				x.Appended(more, 0, time.Time{})
				more++
			}
			return err
		}}, nil)
		x.WantIDs(x.Page(f, 0, "", 10), true, 1) // without Consistent, a page does not have what waits
		page, err := f.Fetch(x.Ctx, rowfeed.Request{Shards: rowfeed.One(0), Consistent: true, Limit: 4})
		if err != nil {
			t.Fatal(err)
		}
		x.WantIDs(page, true, 1, 3, 4, 5)
		if n := x.Scalar("SELECT count(*) FROM rowfeed_outbox_events WHERE shard = 1"); n != 1 {
			t.Errorf("%d records of shard 1 wait", n)
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
