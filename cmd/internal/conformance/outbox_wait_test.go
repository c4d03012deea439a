package conformance

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestOutboxWait (M59, M69): who waits at the head of a shard is woken by a record of it, also
// where nobody publishes; one of another shard wakes nobody, be others waiting for that one
// or not. Who is not to move records waits for whoever does, and reads nothing in vain.
func TestOutboxWait(t *testing.T) {
	eachOutbox(t, func(x *events) {
		var looked, pages, eights atomic.Int64
		hooks := testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if looks(ev) {
				looked.Add(1)
			}
			if strings.HasPrefix(ev.SQL, "SELECT f.generation, COALESCE") {
				pages.Add(1)
				if hasArg(ev, 8) {
					eights.Add(1)
				}
			}
			return nil
		}}
		f := x.other(hooks, &rowfeed.Config{WatchPoll: time.Millisecond})
		waits := func(n int) func() bool {
			return func() bool { return x.parked("watch.(*Watcher).Wait(") == n }
		}
		cursors := map[int]rowfeed.Cursor{}
		id := 0
		for range 2 { // the shard's first record, and a later one
			seven := x.asking(f, rowfeed.Request{After: cursors[7], Shards: rowfeed.One(7), Wait: time.Hour})
			eight := x.asking(f, rowfeed.Request{After: cursors[8], Shards: rowfeed.One(8), Wait: time.Hour})
			x.eventually("both wait", waits(2))
			id++
			x.appended(id, 9, time.Time{})
			before, read := looked.Load(), pages.Load()
			x.eventually("they wait on", func() bool { return looked.Load() > before+5 })
			if n := pages.Load() - read; n > 0 {
				t.Errorf("%d pages were read in vain", n)
			}
			id++
			read = eights.Load()
			x.appended(id, 7, time.Time{})
			page := x.answered(seven)
			x.wantIDs(page, false, id)
			cursors[7] = page.Cursor
			before = looked.Load()
			x.eventually("the other waits on", func() bool { return looked.Load() > before+5 })
			if n := eights.Load() - read; n > 0 {
				t.Errorf("%d pages of the other shard were read in vain", n)
			}
			id++
			x.appended(id, 8, time.Time{})
			page = x.answered(eight)
			x.wantIDs(page, false, id)
			cursors[8] = page.Cursor
		}
		if eights.Load() == 0 {
			t.Error("no page of the other shard was seen")
		}
		f = x.other(hooks, &rowfeed.Config{WatchPoll: time.Millisecond, NoPublish: true})
		seven := x.asking(f, rowfeed.Request{After: cursors[7], Shards: rowfeed.One(7), Wait: time.Hour})
		x.eventually("it waits", waits(1))
		x.appended(id+1, 7, time.Time{})
		before, read := looked.Load(), pages.Load()
		x.eventually("it waits on", func() bool { return looked.Load() > before+5 })
		if n := pages.Load() - read; n > 0 {
			t.Errorf("%d pages were read in vain", n)
		}
		x.publish(x.feed)
		x.wantIDs(x.answered(seven), false, id+1)
	})
}

// TestOutboxWaitRace (M69): a record that is committed between the page that showed nothing and
// the waiting, or while a look is on its way back with old news, is not waited for.
func TestOutboxWaitRace(t *testing.T) {
	eachOutbox(t, func(x *events) {
		cursor := rowfeed.Beginning
		for id, moment := range []string{"after the read", "while a look is under way", "while it looks for records"} {
			g := newGate()
			cfg := &rowfeed.Config{WatchPoll: 2 * time.Millisecond, Observer: &rowfeed.Observer{}}
			hooks := testdb.Hooks{After: func(_ context.Context, ev testdb.TapEvent, err error) error {
				if moment == "while a look is under way" && readsStandings(ev) ||
					moment == "while it looks for records" && strings.Contains(ev.SQL, "SELECT shard FROM (SELECT shard") {
					g.pass()
				}
				return err
			}}
			if moment == "after the read" {
				cfg.Observer.Fetched = func(rowfeed.FetchEvent) { g.pass() }
			}
			result := x.asking(x.other(hooks, cfg), rowfeed.Request{After: cursor, Shards: rowfeed.One(4), Wait: time.Hour})
			<-g.reached
			x.appended(id+1, 4, time.Time{})
			close(g.open)
			page := x.answered(result)
			x.wantIDs(page, false, id+1)
			cursor = page.Cursor
		}
	})
}

// TestOutboxCrowd (M69): however many wait for a shard, they cost one look, and when a record
// comes one move and a page or two.
func TestOutboxCrowd(t *testing.T) {
	eachOutbox(t, func(x *events) {
		const crowd = 2000
		var looked, asked, moved, pages atomic.Int64
		f := x.other(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			switch {
			case looks(ev):
				looked.Add(1)
			case strings.Contains(ev.SQL, "SELECT shard FROM (SELECT shard"):
				asked.Add(1)
			case placesRecords(ev):
				moved.Add(1)
			case strings.HasPrefix(ev.SQL, "SELECT f.generation, COALESCE"):
				pages.Add(1)
			}
			return nil
		}}, nil)
		results := make([]<-chan fetched, crowd)
		for i := range results {
			results[i] = x.asking(f, rowfeed.Request{Shards: rowfeed.One(4), Wait: time.Hour})
		}
		x.eventually("all wait", func() bool { return x.parked("watch.(*Watcher).Wait(") == crowd })
		before, once, read := looked.Load(), asked.Load(), pages.Load()
		x.eventually("they wait on", func() bool { return looked.Load() > before+5 })
		if n, looks := asked.Load()-once, looked.Load()-before; n > looks+1 {
			t.Errorf("%d questions about records in %d looks", n, looks)
		}
		tx := x.begin(sql.LevelReadCommitted)
		for id := range 3 {
			if err := x.append(tx, id, 4, time.Time{}); err != nil {
				t.Fatal(err)
			}
		}
		x.commit(tx)
		for _, result := range results {
			x.wantIDs(x.answered(result), false, 0, 1, 2)
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
	eachOutbox(t, func(x *events) {
		x.appended(1, 0, time.Time{})
		held := testdb.Hold(func(ev testdb.TapEvent) bool {
			return ev.Kind == testdb.Query && strings.HasPrefix(ev.SQL, "SELECT f.generation, COALESCE")
		})
		f := x.other(testdb.Hooks{Before: held.Before}, nil)
		asked := x.asking(f, rowfeed.Request{Shards: rowfeed.One(0)})
		<-held.Reached
		x.publish(x.feed)
		held.Release()
		x.wantIDs(x.answered(asked), false, 1)
		// A key whose place moves between them is above the head that the page was read to.
		x.appended(2, 0, time.Time{})
		x.appended(3, 0, time.Time{})
		x.publish(x.feed)
		x.exec("INSERT INTO rowfeed_outbox_events (id) VALUES (2)")
		held = testdb.Hold(func(ev testdb.TapEvent) bool {
			return ev.Kind == testdb.Query && strings.HasPrefix(ev.SQL, "SELECT f.generation, COALESCE")
		})
		f = x.other(testdb.Hooks{Before: held.Before}, &rowfeed.Config{NoPublish: true})
		asked = x.asking(f, rowfeed.Request{Shards: rowfeed.One(0)})
		<-held.Reached
		x.publish(x.feed)
		held.Release()
		page := x.answered(asked)
		all := slices.Concat(page.Entries, x.page(f, 0, page.Cursor, 10).Entries)
		x.wantIDs(rowfeed.Page{Entries: all}, false, 1, 3, 2)
	})
}
