package outbox

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestRecordWakesOnlyWaitersOfItsShard (M59, M69): a record wakes the readers that wait at the head of its shard, also
// without a publisher, and reads no page for readers of other shards. In a process that does not publish, readers wait
// until another process has moved the record.
func TestRecordWakesOnlyWaitersOfItsShard(t *testing.T) {
	suite.EachOutbox(t, func(x *suite.Events) {
		var polled, pages, eights atomic.Int64
		hooks := testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if x.Looks(ev) {
				polled.Add(1)
			}
			if suite.ReadsULIDPage(ev) {
				pages.Add(1)
				if suite.HasArg(ev, 8) {
					eights.Add(1)
				}
			}
			return nil
		}}
		f := x.Other(hooks, &rowfeed.Config{WatchPoll: time.Millisecond})
		waits := func(n int) func() bool {
			return func() bool { return x.Parked("watch.(*Watcher).Wait(") == n }
		}
		cursors := map[int]rowfeed.Cursor{}
		id := 0
		for range 2 { // first record of the shards, then later ones
			seven := asking(x, f, rowfeed.Request{After: cursors[7], Shards: rowfeed.One(7), Wait: time.Hour})
			eight := asking(x, f, rowfeed.Request{After: cursors[8], Shards: rowfeed.One(8), Wait: time.Hour})
			x.Eventually("both readers wait", waits(2))
			id++
			x.Appended(id, 9, time.Time{})
			before, read := polled.Load(), pages.Load()
			x.Eventually("both readers still wait", func() bool { return polled.Load() > before+5 })
			if n := pages.Load() - read; n > 0 {
				t.Errorf("%d pages were read although no record was for them", n)
			}
			id++
			read = eights.Load()
			x.Appended(id, 7, time.Time{})
			page := answered(x, seven)
			x.WantIDs(page, false, id)
			cursors[7] = page.Cursor
			before = polled.Load()
			x.Eventually("the other reader still waits", func() bool { return polled.Load() > before+5 })
			if n := eights.Load() - read; n > 0 {
				t.Errorf("%d pages of shard 8 were read although the record is in shard 7", n)
			}
			id++
			x.Appended(id, 8, time.Time{})
			page = answered(x, eight)
			x.WantIDs(page, false, id)
			cursors[8] = page.Cursor
		}
		if eights.Load() == 0 {
			t.Error("no page of shard 8 was read, so the test sees none")
		}
		f = x.Other(hooks, &rowfeed.Config{WatchPoll: time.Millisecond, NoPublish: true})
		seven := asking(x, f, rowfeed.Request{After: cursors[7], Shards: rowfeed.One(7), Wait: time.Hour})
		x.Eventually("the reader waits", waits(1))
		x.Appended(id+1, 7, time.Time{})
		before, read := polled.Load(), pages.Load()
		x.Eventually("the reader still waits", func() bool { return polled.Load() > before+5 })
		if n := pages.Load() - read; n > 0 {
			t.Errorf("%d pages were read although no record was for them", n)
		}
		x.Publish(x.Feed)
		x.WantIDs(answered(x, seven), false, id+1)
	})
}

// TestWaiterMissesNoRecord (M69): a record is committed between a reader's empty page and its wait, or while a poll has
// read but not yet answered. The reader gets it at once.
func TestWaiterMissesNoRecord(t *testing.T) {
	suite.EachOutbox(t, func(x *suite.Events) {
		cursor := rowfeed.Beginning
		for id, moment := range []string{"after the read", "while a poll is under way", "while a poll reads records"} {
			g := suite.NewGate()
			cfg := &rowfeed.Config{WatchPoll: 2 * time.Millisecond, Observer: &rowfeed.Observer{}}
			hooks := testdb.Hooks{After: func(_ context.Context, ev testdb.TapEvent, err error) error {
				readsShards := strings.Contains(ev.SQL, "SELECT shard FROM (SELECT shard")
				if moment == "while a poll is under way" && suite.ReadsStandings(ev) ||
					moment == "while a poll reads records" && readsShards {
					g.Pass()
				}
				return err
			}}
			if moment == "after the read" {
				cfg.Observer.Fetched = func(rowfeed.FetchEvent) { g.Pass() }
			}
			result := asking(x, x.Other(hooks, cfg),
				rowfeed.Request{After: cursor, Shards: rowfeed.One(4), Wait: time.Hour})
			<-g.Reached
			x.Appended(id+1, 4, time.Time{})
			close(g.Open)
			page := answered(x, result)
			x.WantIDs(page, false, id+1)
			cursor = page.Cursor
		}
	})
}

// TestManyWaitersShareOnePoll (M69): 2,000 readers wait for a shard and cost one poll. A record costs one move and at
// most three pages.
func TestManyWaitersShareOnePoll(t *testing.T) {
	suite.EachOutbox(t, func(x *suite.Events) {
		const crowd = 2000
		var polled, asked, moved, pages atomic.Int64
		f := x.Other(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			switch {
			case x.Looks(ev):
				polled.Add(1)
			case strings.Contains(ev.SQL, "SELECT shard FROM (SELECT shard"):
				asked.Add(1)
			case suite.PlacesRecords(ev):
				moved.Add(1)
			case suite.ReadsULIDPage(ev):
				pages.Add(1)
			}
			return nil
		}}, nil)
		results := make([]<-chan suite.Fetched, crowd)
		for i := range results {
			results[i] = asking(x, f, rowfeed.Request{Shards: rowfeed.One(4), Wait: time.Hour})
		}
		x.Eventually("all readers wait", func() bool { return x.Parked("watch.(*Watcher).Wait(") == crowd })
		before, once, read := polled.Load(), asked.Load(), pages.Load()
		x.Eventually("all readers still wait", func() bool { return polled.Load() > before+5 })
		if n, polls := asked.Load()-once, polled.Load()-before; n > polls+1 {
			t.Errorf("%d queries for records in %d polls", n, polls)
		}
		tx := x.Begin(sql.LevelReadCommitted)
		for id := range 3 {
			if err := x.Append(tx, id, 4, time.Time{}); err != nil {
				t.Fatal(err)
			}
		}
		x.Commit(tx)
		for _, result := range results {
			x.WantIDs(answered(x, result), false, 0, 1, 2)
		}
		if n := moved.Load(); n != 1 {
			t.Errorf("the records were moved in %d moves", n)
		}
		if n := pages.Load() - read; n > 3 {
			t.Errorf("%d pages were read", n)
		}
	})
}

// TestPageOfTwoStatementsMissesNoRecord (M59, H1): on InnoDB a page is two statements. A record that is moved between
// them is on the page, or the page says that there is more.
func TestPageOfTwoStatementsMissesNoRecord(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.InnoDB...) // on other databases a page is one statement
	suite.EachOutbox(t, func(x *suite.Events) {
		x.Appended(1, 0, time.Time{})
		held := testdb.Hold(func(ev testdb.TapEvent) bool {
			return suite.ReadsULIDPage(ev)
		})
		f := x.Other(testdb.Hooks{Before: held.Before}, nil)
		asked := asking(x, f, rowfeed.Request{Shards: rowfeed.One(0)})
		<-held.Reached
		x.Publish(x.Feed)
		held.Release()
		x.WantIDs(answered(x, asked), false, 1)
		// An entry that moves between them gets a position above the head that the page was read to.
		x.Appended(2, 0, time.Time{})
		x.Appended(3, 0, time.Time{})
		x.Publish(x.Feed)
		x.Exec("INSERT INTO rowfeed_outbox_events (id) VALUES (2)")
		held = testdb.Hold(func(ev testdb.TapEvent) bool {
			return suite.ReadsULIDPage(ev)
		})
		f = x.Other(testdb.Hooks{Before: held.Before}, &rowfeed.Config{NoPublish: true})
		asked = asking(x, f, rowfeed.Request{Shards: rowfeed.One(0)})
		<-held.Reached
		x.Publish(x.Feed)
		held.Release()
		page := answered(x, asked)
		all := slices.Concat(page.Entries, x.Page(f, 0, page.Cursor, 10).Entries)
		x.WantIDs(rowfeed.Page{Entries: all}, false, 1, 3, 2)
	})
}
