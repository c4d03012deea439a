package outbox

import (
	"context"
	"database/sql"
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

// patient is the feed in a process whose sessions wait for two seconds where nobody says how
// long, so that a test need not wait for as long as InnoDB does by default.
func patient(x *suite.Events, h testdb.Hooks, cfg *rowfeed.Config) *rowfeed.Feed {
	x.Helper()
	var params []string
	if x.Family() == "mysql" {
		params = []string{"innodb_lock_wait_timeout=2"}
	}
	rf, err := rowfeed.Open(x.Ctx, x.DB.OpenTapped(x.T, h, params...), x.Dialect, cfg)
	if err != nil {
		x.Fatal(err)
	}
	f, err := rf.Feed(x.Ctx, "events")
	if err != nil {
		x.Fatal(err)
	}
	return f
}

// eachKeyHeld runs f where somebody has the place of key 1, as a mover has it that stands still:
// shard 1 has a record of that key, and shard 2 one of another.
func eachKeyHeld(t *testing.T, f func(x *suite.Events, letGo func())) {
	t.Helper()
	testdb.Only(t, testdb.Servers...) // SQLite has one writer at a time
	suite.EachOutbox(t, func(x *suite.Events) {
		for id := 1; id <= 3; id++ {
			x.Appended(id, id-1, time.Time{})
		}
		x.Publish(x.Feed)
		tx := x.Begin(sql.LevelReadCommitted)
		x.In(tx, "DELETE FROM rowfeed_feed_events WHERE id = 1")
		x.Exec("INSERT INTO rowfeed_outbox_events (shard, id) VALUES (1, 1)")
		x.Appended(10, 1, time.Time{})
		x.Appended(20, 2, time.Time{})
		f(x, func() { tx.Rollback() })
	})
}

// TestKeyHeldPublisher (M59): a key that somebody has holds up the shard that has a record of it, and no other:
// a publisher serves those, is no failure, tells what it waits for, and waits less the next time.
func TestKeyHeldPublisher(t *testing.T) {
	eachKeyHeld(t, func(x *suite.Events, letGo func()) {
		var told suite.Troubles
		var bound atomic.Bool
		var bounded atomic.Int64
		f := patient(x, testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			switch {
			case strings.HasPrefix(ev.SQL, "SET @rowfeed_lock_wait"):
				bound.Store(true)
			case strings.HasPrefix(ev.SQL, "SET SESSION innodb_lock_wait_timeout = @rowfeed_lock_wait"):
				bound.Store(false)
			case suite.PlacesRecords(ev) && bound.Load():
				bounded.Add(1)
			}
			return nil
		}}, &rowfeed.Config{IdlePoll: time.Millisecond, Observer: told.Observer()})
		if _, err := f.Publish(x.Ctx); !errors.Is(err, rowfeed.Locked) || !strings.Contains(err.Error(), `shard 1: `) || !strings.Contains(err.Error(), "one of its keys") {
			t.Errorf("publish: %v", err)
		}
		if n := x.Scalar("SELECT count(*) FROM rowfeed_outbox_events WHERE shard = 2"); n != 0 {
			t.Error("shard 2 was not served")
		}
		if _, err := f.Fetch(x.Ctx, rowfeed.Request{Shards: rowfeed.One(1), After: x.Page(patient(x, testdb.Hooks{}, &rowfeed.Config{NoPublish: true}), 1, rowfeed.Now, 1).Cursor}); !errors.Is(err, rowfeed.Locked) {
			t.Errorf("a reader of shard 1: %v", err)
		}
		if x.Family() == "mysql" && bounded.Load() == 0 {
			t.Error("who has waited in vain waits as long again")
		}
		ctx, stop := context.WithCancel(x.Ctx)
		ended := make(chan error, 1)
		go func() { ended <- f.RunPublisher(ctx) }()
		x.Appended(21, 2, time.Time{})
		x.Eventually("shard 2 is served", func() bool { return x.Scalar("SELECT count(*) FROM rowfeed_outbox_events WHERE shard = 2") == 0 })
		x.Eventually("it tells of the key", func() bool { return told.Like("one of its keys") > 0 })
		if problems := f.Problems(); len(problems) > 0 {
			t.Errorf("others are served, and it has problems: %q", problems)
		}
		letGo()
		x.Eventually("shard 1 is served", func() bool { return x.Scalar("SELECT count(*) FROM rowfeed_outbox_events") == 0 })
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		x.WantIDs(x.Page(x.Feed, 1, "", 10), false, 2, 1, 10)
		x.WantIDs(x.Page(x.Feed, 0, "", 10), false)
		x.WantSound(x.Feed)
	})
}

// TestKeyHeldPurge (M59): an entry that cannot be purged, since somebody has its place, does not keep
// those of other shards, and is told of as a shard that is held.
func TestKeyHeldPurge(t *testing.T) {
	eachKeyHeld(t, func(x *suite.Events, letGo func()) {
		x.Exec("DELETE FROM rowfeed_outbox_events")
		f := patient(x, testdb.Hooks{}, nil)
		x.Appended(11, 0, time.Time{})
		if _, err := f.Publish(x.Ctx); err != nil {
			t.Fatal(err)
		}
		x.Appended(30, 2, time.Time{})
		x.Publish(f)
		if err := f.Admin().SetRetention(x.Ctx, rowfeed.Retention{Count: 1}); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Admin().Purge(x.Ctx); !errors.Is(err, rowfeed.Locked) || !strings.Contains(err.Error(), "shard 0: ") {
			t.Errorf("purge: %v", err)
		}
		x.WantIDs(x.Page(x.Feed, 2, "", 10), false, 30)
		letGo()
		if n, err := f.Admin().Purge(x.Ctx); n != 1 || err != nil {
			t.Errorf("purged %d, %v", n, err)
		}
		x.WantIDs(x.Page(x.Feed, 0, "", 10), false, 11)
	})
}

// TestMoversInACircle (M57, M59): of two who wait for each other the mover is run again, and nobody is told.
func TestMoversInACircle(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...) // InnoDB sees circles at once, SQLite has one writer at a time
	suite.EachOutbox(t, func(x *suite.Events) {
		x.Appended(1, 0, time.Time{})
		x.Appended(2, 0, time.Time{})
		x.Appended(3, 1, time.Time{}) // who makes the row of a shard has a bound for that
		x.Publish(x.Feed)
		x.Exec("INSERT INTO rowfeed_outbox_events (shard, id) VALUES (1, 1), (1, 2)")
		// The server looks for a circle once, when the mover has waited for a second, and the mover gives the key up after two:
		// where the circle was not closed by then, nothing was shown, and it is made again.
		err := error(&rowfeed.Error{Code: rowfeed.Locked})
		var retried atomic.Int64
		for round := 0; suite.IsCode(err, rowfeed.Locked) && round < 20; round++ {
			tx := x.Begin(sql.LevelReadCommitted)
			x.In(tx, "SET LOCAL deadlock_timeout = '10min'", "UPDATE rowfeed_feed_events SET shard = shard WHERE id = 2")
			retried.Store(0)
			f := x.Other(testdb.Hooks{}, &rowfeed.Config{Observer: &rowfeed.Observer{Retried: func(rowfeed.RetryEvent) { retried.Add(1) }}})
			published := make(chan error, 1)
			go func() {
				_, err := f.Publish(x.Ctx)
				published <- err
			}()
			x.Eventually("it waits, or has waited", func() bool { return len(published) > 0 || x.Waits() })
			x.In(tx, "UPDATE rowfeed_feed_events SET shard = shard WHERE id = 1")
			x.Commit(tx)
			err = <-published
		}
		if err != nil {
			t.Error(err)
		}
		x.WantIDs(x.Page(x.Feed, 1, "", 10), false, 3, 1, 2)
		if retried.Load() == 0 {
			t.Error("nobody was ended: there was no circle")
		}
	})
}

// TestOutboxKeyRises (G2, M59): the positions of a key only rise, whatever shards and times its records have. A reader
// that remembers the highest position of each key therefore misses nothing.
func TestOutboxKeyRises(t *testing.T) {
	suite.EachOutbox(t, func(x *suite.Events) {
		for id := 1; id <= 3; id++ {
			x.Appended(id, 0, x.Now())
		}
		x.Publish(x.Feed)
		before := x.All(0).Entries
		long := x.Now().Add(-time.Hour).UnixMilli()
		x.Exec(fmt.Sprintf("INSERT INTO rowfeed_outbox_events (shard, time_hint, id) VALUES (1, %d, 2)", long))
		x.Appended(4, 1, x.Now().Add(-time.Hour))
		x.Exec(fmt.Sprintf("INSERT INTO rowfeed_outbox_events (shard, time_hint, id) VALUES (1, %d, 3), (1, %[1]d, 2)", long))
		x.Publish(x.Feed)
		x.WantIDs(x.Page(x.Feed, 1, "", 10), false, 4, 3, 2)
		x.WantIDs(x.Page(x.Feed, 0, "", 10), false, 1)
		after := x.All(1).Entries
		if low, high := after[0].Position, before[2].Position; low <= high {
			t.Errorf("the batch begins at %s, below the position %s that one of its keys had", low, high)
		}
		x.Exec(fmt.Sprintf("INSERT INTO rowfeed_outbox_events (shard, time_hint, id) VALUES (0, %d, 2)", long))
		x.Publish(x.Feed)
		x.WantIDs(x.Page(x.Feed, 0, "", 10), false, 1, 2)
		if now := x.All(0).Entries[1].Position; now <= after[2].Position {
			t.Errorf("a key went from %s back to %s", after[2].Position, now)
		}
		x.WantSound(x.Feed)
	})
}

// TestOutboxUnplaceableOrder (G2, M59): a mover that comes upon a record that cannot be placed tries halves,
// and another mover comes between them: what was committed late meanwhile stands before what was begun after
// that.
func TestOutboxUnplaceableOrder(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...) // elsewhere what a column takes its index takes, too
	suite.Each(t, func(env *suite.Env) {
		env.Exec("CREATE TABLE events (id text PRIMARY KEY, data text)")
		x := &suite.Events{Env: env, Feed: env.Add(rowfeed.FeedSpec{Name: "events", Table: "events", Mode: rowfeed.ModeOutbox})}
		row := func(id string) []string {
			return []string{"INSERT INTO events VALUES ('" + id + "', 'd')", "INSERT INTO rowfeed_outbox_events (id) VALUES ('" + id + "')"}
		}
		early := x.Begin(sql.LevelReadCommitted)
		x.In(early, row("A")...)
		x.Exec("INSERT INTO rowfeed_outbox_events (id) SELECT string_agg(md5(i::text), '') FROM generate_series(1, 200) i")
		x.Exec(row("c")...)
		takes, between := 0, false
		f := x.Other(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if takesRecords(ev) {
				takes++
			}
			if ev.Kind == testdb.Begin && takes == 2 && !between { // the first half was that record
				between = true
				if n, err := x.Feed.Publish(x.Ctx); n != 1 || !suite.IsCode(err, rowfeed.Failed) {
					t.Errorf("the other mover: %d, %v", n, err)
				}
				x.Commit(early)
				x.Exec(row("B")...)
			}
			return nil
		}}, nil)
		_, err := f.Publish(x.Ctx)
		x.WantCode(err, rowfeed.Failed)
		var got []string
		for _, e := range x.Page(x.Other(testdb.Hooks{}, &rowfeed.Config{NoPublish: true}), 0, "", 10).Entries {
			id, _ := e.Key.Get("id")
			got = append(got, id.(string))
		}
		if text := strings.Join(got, " "); !between || text != "c A B" {
			t.Errorf("%q; A was committed before B began (%v)", text, between)
		}
	})
}

// TestMoverStandsStill (M59): a mover that stands still before its COMMIT holds up its own shard only, also
// where its keys have come again or twice: others place new keys beside them, and purge theirs.
func TestMoverStandsStill(t *testing.T) {
	for id, records := range map[int]string{3: "(0, 3)", 4: "(0, 4), (0, 4)"} {
		t.Run(map[int]string{3: "a key that has a place", 4: "a new key, twice"}[id], func(t *testing.T) {
			suite.EachOutbox(t, func(x *suite.Events) {
				if x.Family() == "sqlite" {
					return // it has one writer at a time
				}
				for key := 1; key <= 3; key++ { // 3, the highest, is in shard 0
					x.Appended(key, 3-key, time.Time{})
				}
				x.Exec("INSERT INTO events VALUES (4, 'd')")
				var many []string
				for key := 101; key < 400; key++ {
					many = append(many, fmt.Sprintf("(-1, %d)", -key))
				}
				x.Exec("INSERT INTO rowfeed_outbox_events (shard, id) VALUES " + strings.Join(many, ", "))
				x.Publish(x.Feed)
				x.Retain(rowfeed.Retention{Count: 1})
				x.Exec(x.By(map[string]string{"postgres": "ANALYZE", "mysql": "ANALYZE TABLE rowfeed_feed_events"}))
				reader := x.Other(testdb.Hooks{}, &rowfeed.Config{NoPublish: true})
				x.Exec("INSERT INTO rowfeed_outbox_events (shard, id) VALUES " + records)
				var placed atomic.Bool
				held := testdb.Hold(func(ev testdb.TapEvent) bool { return ev.Kind == testdb.Commit && placed.Load() })
				defer held.Release()
				mover := still(x, testdb.Hooks{Before: func(ctx context.Context, ev testdb.TapEvent) error {
					if suite.PlacesRecords(ev) {
						placed.Store(true)
					}
					return held.Before(ctx, ev)
				}})
				moves := asking(x, mover, rowfeed.Request{Shards: rowfeed.One(0), After: x.Page(reader, 0, rowfeed.Now, 1).Cursor})
				<-held.Reached
				x.Appended(10, 1, time.Time{})
				x.Appended(20, 2, time.Time{})
				f := patient(x, testdb.Hooks{}, nil)
				if n, err := f.Publish(x.Ctx); n != 2 || !suite.IsCode(err, rowfeed.Locked) {
					x.Errorf("%d moved, %v", n, err)
				}
				if n, err := f.Admin().Purge(x.Ctx); n != 298+2 || err != nil {
					x.Errorf("%d purged, %v", n, err)
				}
				held.Release()
				x.WantIDs(answered(x, moves), false, id)
			})
		})
	}
}
