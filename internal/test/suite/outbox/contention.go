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

// patient opens the feed in another process, whose sessions wait for locks for at most two seconds unless a statement
// says otherwise.
func patient(x *suite.Events, h testdb.Hooks, cfg *rowfeed.Config) *rowfeed.Feed {
	x.Helper()
	pool := x.DB.OpenTapped(x.T, h, x.Statements("outbox.short_lock_wait")...)
	rf, err := rowfeed.Open(x.Ctx, pool, x.Dialect, cfg)
	if err != nil {
		x.Fatal(err)
	}
	f, err := rf.Feed(x.Ctx, "events")
	if err != nil {
		x.Fatal(err)
	}
	return f
}

// eachKeyHeld runs f while a transaction holds the entry of key 1, as a stuck mover would. Shard 1 has records of that
// key and of another one, shard 2 of another one.
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

// TestHeldKeyDelaysOnlyItsShard (M59): a transaction holds a key. The publisher serves all shards but the one that has
// a record of the key. It does not fail, reports what it waits for, and bounds its next wait.
func TestHeldKeyDelaysOnlyItsShard(t *testing.T) {
	eachKeyHeld(t, func(x *suite.Events, letGo func()) {
		var told suite.Troubles
		var bound atomic.Bool
		var bounded atomic.Int64
		bounds := x.Statements("outbox.begin_and_end_of_lock_bound")
		f := patient(x, testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			switch {
			case len(bounds) > 0 && strings.HasPrefix(ev.SQL, bounds[0]):
				bound.Store(true)
			case len(bounds) > 0 && strings.HasPrefix(ev.SQL, bounds[1]):
				bound.Store(false)
			case suite.PlacesRecords(ev) && bound.Load():
				bounded.Add(1)
			}
			return nil
		}}, &rowfeed.Config{IdlePoll: time.Millisecond, Observer: told.Observer()})
		if _, err := f.Publish(x.Ctx); !errors.Is(err, rowfeed.Locked) ||
			!strings.Contains(err.Error(), `shard 1: `) || !strings.Contains(err.Error(), "one of its keys") {
			t.Errorf("publish failed with %v", err)
		}
		if n := x.Scalar("SELECT count(*) FROM rowfeed_outbox_events WHERE shard = 2"); n != 0 {
			t.Error("the records of shard 2 wait")
		}
		reader := patient(x, testdb.Hooks{}, &rowfeed.Config{NoPublish: true})
		head := x.Page(reader, 1, rowfeed.Now, 1).Cursor
		_, err := f.Fetch(x.Ctx, rowfeed.Request{Shards: rowfeed.One(1), After: head})
		if !errors.Is(err, rowfeed.Locked) {
			t.Errorf("a reader of shard 1 failed with %v", err)
		}
		if len(bounds) > 0 && bounded.Load() == 0 {
			t.Error("a mover that has waited for the key in vain does not bound its next wait")
		}
		ctx, stop := context.WithCancel(x.Ctx)
		ended := make(chan error, 1)
		go func() { ended <- f.RunPublisher(ctx) }()
		x.Appended(21, 2, time.Time{})
		x.Eventually("shard 2 is served",
			func() bool { return x.Scalar("SELECT count(*) FROM rowfeed_outbox_events WHERE shard = 2") == 0 })
		x.Eventually("the publisher reports the key", func() bool { return told.Like("one of its keys") > 0 })
		if problems := f.Problems(); len(problems) > 0 {
			t.Errorf("the publisher serves other shards and reports the problems %q", problems)
		}
		letGo()
		x.Eventually("shard 1 is served",
			func() bool { return x.Scalar("SELECT count(*) FROM rowfeed_outbox_events") == 0 })
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		x.WantIDs(x.Page(x.Feed, 1, "", 10), false, 2, 1, 10)
		x.WantIDs(x.Page(x.Feed, 0, "", 10), false)
		x.WantSound(x.Feed)
	})
}

// TestHeldKeyDelaysOnlyPurgeOfItsShard (M59): an entry cannot be purged because a transaction holds it. The entries of
// other shards are purged, and the error names the shard.
func TestHeldKeyDelaysOnlyPurgeOfItsShard(t *testing.T) {
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
		_, err := f.Admin().Purge(x.Ctx)
		if !errors.Is(err, rowfeed.Locked) || !strings.Contains(err.Error(), "shard 0: ") {
			t.Errorf("purge failed with %v", err)
		}
		x.WantIDs(x.Page(x.Feed, 2, "", 10), false, 30)
		letGo()
		if n, err := f.Admin().Purge(x.Ctx); n != 1 || err != nil {
			t.Errorf("%d entries purged, %v", n, err)
		}
		x.WantIDs(x.Page(x.Feed, 0, "", 10), false, 11)
	})
}

// TestMoverRetriesAfterDeadlock (M57, M59): a mover and a writer are in a deadlock, and the database ends the mover's
// transaction. The mover runs again, and Publish does not fail.
func TestMoverRetriesAfterDeadlock(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...) // InnoDB finds deadlocks at once, SQLite has one writer at a time
	suite.EachOutbox(t, func(x *suite.Events) {
		x.Appended(1, 0, time.Time{})
		x.Appended(2, 0, time.Time{})
		x.Appended(3, 1, time.Time{}) // otherwise the mover's lock of the new shard would be bounded
		x.Publish(x.Feed)
		x.Exec("INSERT INTO rowfeed_outbox_events (shard, id) VALUES (1, 1), (1, 2)")
		// The server searches for a deadlock once, after the mover has waited for one second. The mover gives up after
		// two. If there was no deadlock after the first second, the test tries again.
		err := error(&rowfeed.Error{Code: rowfeed.Locked})
		var retried atomic.Int64
		for round := 0; suite.IsCode(err, rowfeed.Locked) && round < 20; round++ {
			tx := x.Begin(sql.LevelReadCommitted)
			x.In(tx, x.Text("outbox.leave_deadlocks_to_others"),
				"UPDATE rowfeed_feed_events SET shard = shard WHERE id = 2")
			retried.Store(0)
			observer := &rowfeed.Observer{Retried: func(rowfeed.RetryEvent) { retried.Add(1) }}
			f := x.Other(testdb.Hooks{}, &rowfeed.Config{Observer: observer})
			published := make(chan error, 1)
			go func() {
				_, err := f.Publish(x.Ctx)
				published <- err
			}()
			x.Eventually("the mover waits, or has given up", func() bool { return len(published) > 0 || x.Waits() })
			x.In(tx, "UPDATE rowfeed_feed_events SET shard = shard WHERE id = 1")
			x.Commit(tx)
			err = <-published
		}
		if err != nil {
			t.Error(err)
		}
		x.WantIDs(x.Page(x.Feed, 1, "", 10), false, 3, 1, 2)
		if retried.Load() == 0 {
			t.Error("no transaction was ended, so there was no deadlock")
		}
	})
}

// TestPositionsOfAKeyOnlyRise (G2, M59): the positions of a key only rise, whatever shards and times its records have.
// A reader that remembers the highest position of each key therefore misses nothing.
func TestPositionsOfAKeyOnlyRise(t *testing.T) {
	suite.EachOutbox(t, func(x *suite.Events) {
		for id := 1; id <= 3; id++ {
			x.Appended(id, 0, x.Now())
		}
		x.Publish(x.Feed)
		before := x.All(0).Entries
		long := x.Now().Add(-time.Hour).UnixMilli()
		x.Exec(fmt.Sprintf("INSERT INTO rowfeed_outbox_events (shard, time_hint, id) VALUES (1, %d, 2)", long))
		x.Appended(4, 1, x.Now().Add(-time.Hour))
		x.Exec(fmt.Sprintf(
			"INSERT INTO rowfeed_outbox_events (shard, time_hint, id) VALUES (1, %d, 3), (1, %[1]d, 2)", long))
		x.Publish(x.Feed)
		x.WantIDs(x.Page(x.Feed, 1, "", 10), false, 4, 3, 2)
		x.WantIDs(x.Page(x.Feed, 0, "", 10), false, 1)
		after := x.All(1).Entries
		if low, high := after[0].Position, before[2].Position; low <= high {
			t.Errorf("the batch begins at %s, below %s, the former position of one of its keys", low, high)
		}
		x.Exec(fmt.Sprintf("INSERT INTO rowfeed_outbox_events (shard, time_hint, id) VALUES (0, %d, 2)", long))
		x.Publish(x.Feed)
		x.WantIDs(x.Page(x.Feed, 0, "", 10), false, 1, 2)
		if now := x.All(0).Entries[1].Position; now <= after[2].Position {
			t.Errorf("the position of a key fell from %s to %s", after[2].Position, now)
		}
		x.WantSound(x.Feed)
	})
}

// TestUnplaceableRecordKeepsOrder (G2, M59): a mover that meets an unplaceable record tries halves of its batch, and
// another mover runs between them. A record that is committed meanwhile has a lower position than a record that was
// begun after that commit.
func TestUnplaceableRecordKeepsOrder(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...) // other databases refuse such a key in the record, too
	suite.Each(t, func(env *suite.Env) {
		env.Exec("CREATE TABLE events (id text PRIMARY KEY, data text)")
		x := &suite.Events{Env: env, Feed: env.Add(rowfeed.FeedSpec{Name: "events", Table: "events",
			Mode: rowfeed.ModeOutbox})}
		row := func(id string) []string {
			return []string{"INSERT INTO events VALUES ('" + id + "', 'd')",
				"INSERT INTO rowfeed_outbox_events (id) VALUES ('" + id + "')"}
		}
		early := x.Begin(sql.LevelReadCommitted)
		x.In(early, row("A")...)
		x.Exec(x.Text("outbox.append_unplaceable_record"))
		x.Exec(row("c")...)
		takes, between := 0, false
		f := x.Other(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if takesRecords(ev) {
				takes++
			}
			if ev.Kind == testdb.Begin && takes == 2 && !between { // the first half had that record only
				between = true
				if n, err := x.Feed.Publish(x.Ctx); n != 1 || !suite.IsCode(err, rowfeed.Failed) {
					t.Errorf("the other mover moved %d records, %v", n, err)
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
			t.Errorf("the feed has %q, but A was committed before B began (%v)", text, between)
		}
	})
}

// TestStuckMoverDelaysOnlyItsShard (M59): a mover stops before COMMIT, also if its keys have entries already or two
// records. Other shards get new entries, and old entries of theirs are purged.
func TestStuckMoverDelaysOnlyItsShard(t *testing.T) {
	for id, records := range map[int]string{3: "(0, 3)", 4: "(0, 4), (0, 4)"} {
		t.Run(map[int]string{3: "a key that has a place", 4: "a new key, twice"}[id], func(t *testing.T) {
			suite.EachOutbox(t, func(x *suite.Events) {
				if x.Has.OneWriter {
					return
				}
				for key := 1; key <= 3; key++ { // the highest key, 3, is in shard 0
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
				x.Exec(x.Text("outbox.update_statistics"))
				reader := x.Other(testdb.Hooks{}, &rowfeed.Config{NoPublish: true})
				x.Exec("INSERT INTO rowfeed_outbox_events (shard, id) VALUES " + records)
				mover, held := heldMover(x)
				defer held.Release()
				head := x.Page(reader, 0, rowfeed.Now, 1).Cursor
				moves := asking(x, mover, rowfeed.Request{Shards: rowfeed.One(0), After: head})
				<-held.Reached
				x.Appended(10, 1, time.Time{})
				x.Appended(20, 2, time.Time{})
				f := patient(x, testdb.Hooks{}, nil)
				if n, err := f.Publish(x.Ctx); n != 2 || !suite.IsCode(err, rowfeed.Locked) {
					x.Errorf("%d records moved, %v", n, err)
				}
				if n, err := f.Admin().Purge(x.Ctx); n != 298+2 || err != nil {
					x.Errorf("%d entries purged, %v", n, err)
				}
				held.Release()
				x.WantIDs(answered(x, moves), false, id)
			})
		})
	}
}
