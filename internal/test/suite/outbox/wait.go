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

// TestOutboxWait (M59, M69): who waits at the head of a shard is woken by a record of it, also
// where nobody publishes; one of another shard wakes nobody, be others waiting for that one
// or not. Who is not to move records waits for whoever does, and reads nothing in vain.
func TestOutboxWait(t *testing.T) {
	suite.EachOutbox(t, func(x *suite.Events) {
		var looked, pages, eights atomic.Int64
		hooks := testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if x.Looks(ev) {
				looked.Add(1)
			}
			if strings.HasPrefix(ev.SQL, "SELECT f.generation, COALESCE") {
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
		for range 2 { // the shard's first record, and a later one
			seven := asking(x, f, rowfeed.Request{After: cursors[7], Shards: rowfeed.One(7), Wait: time.Hour})
			eight := asking(x, f, rowfeed.Request{After: cursors[8], Shards: rowfeed.One(8), Wait: time.Hour})
			x.Eventually("both wait", waits(2))
			id++
			x.Appended(id, 9, time.Time{})
			before, read := looked.Load(), pages.Load()
			x.Eventually("they wait on", func() bool { return looked.Load() > before+5 })
			if n := pages.Load() - read; n > 0 {
				t.Errorf("%d pages were read in vain", n)
			}
			id++
			read = eights.Load()
			x.Appended(id, 7, time.Time{})
			page := answered(x, seven)
			x.WantIDs(page, false, id)
			cursors[7] = page.Cursor
			before = looked.Load()
			x.Eventually("the other waits on", func() bool { return looked.Load() > before+5 })
			if n := eights.Load() - read; n > 0 {
				t.Errorf("%d pages of the other shard were read in vain", n)
			}
			id++
			x.Appended(id, 8, time.Time{})
			page = answered(x, eight)
			x.WantIDs(page, false, id)
			cursors[8] = page.Cursor
		}
		if eights.Load() == 0 {
			t.Error("no page of the other shard was seen")
		}
		f = x.Other(hooks, &rowfeed.Config{WatchPoll: time.Millisecond, NoPublish: true})
		seven := asking(x, f, rowfeed.Request{After: cursors[7], Shards: rowfeed.One(7), Wait: time.Hour})
		x.Eventually("it waits", waits(1))
		x.Appended(id+1, 7, time.Time{})
		before, read := looked.Load(), pages.Load()
		x.Eventually("it waits on", func() bool { return looked.Load() > before+5 })
		if n := pages.Load() - read; n > 0 {
			t.Errorf("%d pages were read in vain", n)
		}
		x.Publish(x.Feed)
		x.WantIDs(answered(x, seven), false, id+1)
	})
}

// TestOutboxWaitRace (M69): a record that is committed between the page that showed nothing and
// the waiting, or while a look is on its way back with old news, is not waited for.
func TestOutboxWaitRace(t *testing.T) {
	suite.EachOutbox(t, func(x *suite.Events) {
		cursor := rowfeed.Beginning
		for id, moment := range []string{"after the read", "while a look is under way", "while it looks for records"} {
			g := suite.NewGate()
			cfg := &rowfeed.Config{WatchPoll: 2 * time.Millisecond, Observer: &rowfeed.Observer{}}
			hooks := testdb.Hooks{After: func(_ context.Context, ev testdb.TapEvent, err error) error {
				if moment == "while a look is under way" && suite.ReadsStandings(ev) ||
					moment == "while it looks for records" && strings.Contains(ev.SQL, "SELECT shard FROM (SELECT shard") {
					g.Pass()
				}
				return err
			}}
			if moment == "after the read" {
				cfg.Observer.Fetched = func(rowfeed.FetchEvent) { g.Pass() }
			}
			result := asking(x, x.Other(hooks, cfg), rowfeed.Request{After: cursor, Shards: rowfeed.One(4), Wait: time.Hour})
			<-g.Reached
			x.Appended(id+1, 4, time.Time{})
			close(g.Open)
			page := answered(x, result)
			x.WantIDs(page, false, id+1)
			cursor = page.Cursor
		}
	})
}

// TestOutboxCrowd (M69): however many wait for a shard, they cost one look, and when a record
// comes one move and a page or two.
func TestOutboxCrowd(t *testing.T) {
	suite.EachOutbox(t, func(x *suite.Events) {
		const crowd = 2000
		var looked, asked, moved, pages atomic.Int64
		f := x.Other(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			switch {
			case x.Looks(ev):
				looked.Add(1)
			case strings.Contains(ev.SQL, "SELECT shard FROM (SELECT shard"):
				asked.Add(1)
			case suite.PlacesRecords(ev):
				moved.Add(1)
			case strings.HasPrefix(ev.SQL, "SELECT f.generation, COALESCE"):
				pages.Add(1)
			}
			return nil
		}}, nil)
		results := make([]<-chan suite.Fetched, crowd)
		for i := range results {
			results[i] = asking(x, f, rowfeed.Request{Shards: rowfeed.One(4), Wait: time.Hour})
		}
		x.Eventually("all wait", func() bool { return x.Parked("watch.(*Watcher).Wait(") == crowd })
		before, once, read := looked.Load(), asked.Load(), pages.Load()
		x.Eventually("they wait on", func() bool { return looked.Load() > before+5 })
		if n, looks := asked.Load()-once, looked.Load()-before; n > looks+1 {
			t.Errorf("%d questions about records in %d looks", n, looks)
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
			t.Errorf("%d moves", n)
		}
		if n := pages.Load() - read; n > 3 {
			t.Errorf("%d pages", n)
		}
	})
}

// TestOutboxPageInTwo (M59, H1): where a page is two statements, a record that is moved between them is
// shown by the page, or said to be there.
func TestOutboxPageInTwo(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.InnoDB...) // elsewhere a page is one statement
	suite.EachOutbox(t, func(x *suite.Events) {
		x.Appended(1, 0, time.Time{})
		held := testdb.Hold(func(ev testdb.TapEvent) bool {
			return ev.Kind == testdb.Query && strings.HasPrefix(ev.SQL, "SELECT f.generation, COALESCE")
		})
		f := x.Other(testdb.Hooks{Before: held.Before}, nil)
		asked := asking(x, f, rowfeed.Request{Shards: rowfeed.One(0)})
		<-held.Reached
		x.Publish(x.Feed)
		held.Release()
		x.WantIDs(answered(x, asked), false, 1)
		// A key whose place moves between them is above the head that the page was read to.
		x.Appended(2, 0, time.Time{})
		x.Appended(3, 0, time.Time{})
		x.Publish(x.Feed)
		x.Exec("INSERT INTO rowfeed_outbox_events (id) VALUES (2)")
		held = testdb.Hold(func(ev testdb.TapEvent) bool {
			return ev.Kind == testdb.Query && strings.HasPrefix(ev.SQL, "SELECT f.generation, COALESCE")
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
