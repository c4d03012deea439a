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

// expired asserts that a cursor is refused because entries after it were purged.
func expired(x *suite.Events, shard int, after rowfeed.Cursor) {
	x.Helper()
	_, err := x.Feed.Fetch(x.Ctx, rowfeed.Request{After: after, Shards: rowfeed.One(shard)})
	x.WantCode(err, rowfeed.EntriesExpired)
}

// TestRetainAgePurgesOldEntries (M59): entries are purged by their age on the database's clock, in each shard for
// itself. The rows of the table stay. A cursor that has not passed the purged entries is refused, also one that a
// reader got while the shard was empty. A reader from the beginning gets what is kept.
func TestRetainAgePurgesOldEntries(t *testing.T) {
	suite.EachOutbox(t, func(x *suite.Events) {
		empty := x.Page(x.Feed, 0, "", 10)
		if empty.Cursor == "" || x.Page(x.Feed, 0, rowfeed.Now, 10).Cursor != empty.Cursor {
			t.Fatalf("the cursor of an empty shard is %q", empty.Cursor)
		}
		x.WantIDs(x.Page(x.Feed, 0, empty.Cursor, 10), false)
		old := x.Now().Add(-48 * time.Hour)
		for id := 1; id <= 4; id++ {
			x.Appended(id, 0, old.Add(time.Duration(id)*time.Hour))
		}
		x.Appended(5, 1, old)
		x.Appended(6, 2, x.Now())
		all := x.Page(x.Feed, 0, "", 10)
		x.WantIDs(all, false, 1, 2, 3, 4)
		third, err := all.CursorAt("", 2)
		if err != nil {
			t.Fatal(err)
		}
		x.WantIDs(x.Page(x.Feed, 1, "", 10), false, 5)
		sixth := x.Page(x.Feed, 2, "", 10)
		x.Purged(0)
		x.WantIDs(x.Page(x.Feed, 0, empty.Cursor, 10), false, 1, 2, 3, 4)
		x.Retain(rowfeed.Retention{Age: 45*time.Hour + 30*time.Minute})
		x.Purged(3) // rows 1 and 2, and row 5 of shard 1
		expired(x, 0, empty.Cursor)
		expired(x, 0, rowfeed.At(old))
		expired(x, 1, empty.Cursor)
		x.WantIDs(x.Page(x.Feed, 0, "", 10), false, 3, 4)
		x.WantIDs(x.Page(x.Feed, 0, third, 10), false, 4)
		x.WantIDs(x.Page(x.Feed, 0, rowfeed.At(old.Add(3*time.Hour)), 10), false, 3, 4)
		x.WantIDs(x.Page(x.Feed, 0, all.Cursor, 10), false)
		x.WantIDs(x.Page(x.Feed, 2, "", 10), false, 6)
		x.WantIDs(x.Page(x.Feed, 2, empty.Cursor, 10), false, 6)
		x.Retain(rowfeed.Retention{Age: time.Hour})
		x.Purged(2)
		expired(x, 0, third)
		for _, after := range []rowfeed.Cursor{"", rowfeed.Now, rowfeed.At(x.Now()), all.Cursor} {
			page := x.Page(x.Feed, 0, after, 10)
			x.WantIDs(page, false)
			x.WantIDs(x.Page(x.Feed, 0, page.Cursor, 10), false)
			if page.Cursor != all.Cursor {
				t.Errorf("after %q the cursor is %q, want %q", after, page.Cursor, all.Cursor)
			}
		}
		x.Appended(7, 0, old) // the times of positions never go back
		x.WantIDs(x.Page(x.Feed, 0, all.Cursor, 10), false, 7)
		x.WantIDs(x.Page(x.Feed, 2, sixth.Cursor, 10), false)
		if n := x.Scalar("SELECT count(*) FROM events"); n != 7 {
			t.Errorf("%d of 7 rows are left", n)
		}
	})
}

// TestRetainCountKeepsNewestEntries (M59): the publisher purges all but the newest entries of each shard, in batches.
// Without a limit no more entries are purged.
func TestRetainCountKeepsNewestEntries(t *testing.T) {
	suite.EachOutbox(t, func(x *suite.Events) {
		const each = 1200
		tx := x.Begin(sql.LevelReadCommitted)
		for id := range 2 * each {
			if err := x.Append(tx, id, id%2, time.Time{}); err != nil {
				t.Fatal(err)
			}
		}
		x.Commit(tx)
		x.Publish(x.Feed)
		x.Purged(0)
		x.Retain(rowfeed.Retention{Count: 3})
		ctx, stop := context.WithCancel(x.Ctx)
		ended := make(chan error, 1)
		other := x.Other(testdb.Hooks{}, nil)
		go func() { ended <- other.RunPublisher(ctx) }()
		x.Eventually("the publisher has purged",
			func() bool { return x.Scalar("SELECT count(*) FROM rowfeed_feed_events") == 6 })
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		x.WantIDs(x.Page(x.Feed, 0, "", 10), false, 2*each-6, 2*each-4, 2*each-2)
		x.WantIDs(x.Page(x.Feed, 1, "", 10), false, 2*each-5, 2*each-3, 2*each-1)
		x.Retain(rowfeed.Retention{})
		x.Appended(2*each, 0, time.Time{})
		x.WantIDs(x.Page(x.Feed, 0, "", 10), true, 2*each-6, 2*each-4, 2*each-2)
		x.Purged(0)
		info, err := x.Feed.Info(x.Ctx)
		if err != nil || info.RetainCount != 0 || info.RetainSeconds != 0 {
			t.Errorf("the feed's info is %+v, %v", info, err)
		}
	})
}

// TestRetainIsAtomic (M8, M59): a purge that fails has deleted a whole batch or nothing. No entry is missing after a
// cursor that is accepted. Readers are served while a purge is stuck.
func TestRetainIsAtomic(t *testing.T) {
	suite.EachOutbox(t, func(x *suite.Events) {
		for id := 1; id <= 5; id++ {
			x.Appended(id, 0, time.Time{})
		}
		all := x.Page(x.Feed, 0, "", 10)
		first, err := all.CursorAt("", 0)
		if err != nil {
			t.Fatal(err)
		}
		x.Retain(rowfeed.Retention{Count: 2})
		for n := int64(1); ; n++ {
			var statements atomic.Int64
			var purging atomic.Bool
			broken := x.Other(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
				restores := ev.Kind == testdb.Exec && !ev.InTx // restores the session after a transaction
				if !purging.Load() || restores || ev.Kind == testdb.Rollback || statements.Add(1) != n {
					return nil
				}
				x.WantIDs(x.Page(x.Feed, 0, first, 10), false, 2, 3, 4, 5)
				return testdb.ErrInjected
			}}, nil)
			purging.Store(true)
			if _, err := broken.Admin().Purge(x.Ctx); err == nil {
				if n < 8 {
					t.Errorf("the purge had %d statements", n)
				}
				break
			} else if !errors.Is(err, testdb.ErrInjected) {
				t.Fatal(err)
			}
			x.WantIDs(x.Page(x.Feed, 0, first, 10), false, 2, 3, 4, 5)
		}
		expired(x, 0, first)
		x.WantIDs(x.Page(x.Feed, 0, "", 10), false, 4, 5)
	})
}

// TestConcurrentPurgeRefusesReadersThatMissedEntries (G1, M59): writers append while a publisher moves and purges. A
// reader that is not refused has missed no entry.
func TestConcurrentPurgeRefusesReadersThatMissedEntries(t *testing.T) {
	suite.EachOutbox(t, func(x *suite.Events) {
		const rows = 300
		x.Retain(rowfeed.Retention{Count: 5})
		cursor := x.Page(x.Feed, 0, rowfeed.Now, 10).Cursor
		done := make(chan error, 1)
		pool := x.Writer(testdb.Hooks{})
		go func() {
			for id := 1; id <= rows; id++ {
				tx, err := pool.BeginTx(x.Ctx, nil)
				if err == nil {
					err = x.Append(tx, id, 0, time.Time{})
				}
				if err == nil {
					err = tx.Commit()
				}
				if err == nil && id%3 == 0 {
					_, err = x.Feed.Publish(x.Ctx)
				}
				if err == nil && id%10 == 0 {
					_, err = x.Feed.Admin().Purge(x.Ctx)
				}
				if err != nil && !suite.IsCode(err, rowfeed.Locked) { // the reader may be a slow mover
					done <- err
					return
				}
			}
			done <- nil
		}()
		last, over, refusals := int64(0), false, 0
		reader := x.Other(testdb.Hooks{}, nil)
		for more := true; !over || more; {
			select {
			case err := <-done:
				if over = true; err != nil {
					t.Fatal(err)
				}
			default:
			}
			page, err := x.TryPage(reader, 0, cursor, 2)
			if suite.IsCode(err, rowfeed.EntriesExpired) {
				cursor, last, more, refusals = "", 0, true, refusals+1
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range page.Entries {
				id, _ := e.Key.Get("id")
				if last != 0 && id != last+1 {
					t.Fatalf("the reader got row %d after row %d, at the cursor %q", id, last, cursor)
				}
				last = id.(int64)
			}
			cursor, more = page.Cursor, page.More || len(page.Entries) > 0
		}
		if last != rows {
			t.Errorf("the reader's last row is %d", last)
		}
		t.Logf("%d refusals", refusals)
	})
}

// TestRetentionIsPartOfTheFeedSpec (M59): retention is part of a feed's specification: adding the feed with another one
// is a conflict. Impossible retentions are refused.
func TestRetentionIsPartOfTheFeedSpec(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		x.Exec("CREATE TABLE events (id BIGINT NOT NULL PRIMARY KEY, data VARCHAR(100))")
		spec := rowfeed.FeedSpec{Name: "events", Table: "events", Mode: rowfeed.ModeOutbox,
			Retain: rowfeed.Retention{Age: 36 * time.Hour}}
		for words, change := range map[string]func(*rowfeed.FeedSpec){
			"outbox": func(s *rowfeed.FeedSpec) { s.Mode = rowfeed.ModeSequence },
			"both":   func(s *rowfeed.FeedSpec) { s.Retain.Count = 1 },
			"second": func(s *rowfeed.FeedSpec) { s.Retain.Age = time.Millisecond },
			"-1":     func(s *rowfeed.FeedSpec) { s.Retain = rowfeed.Retention{Count: -1} },
		} {
			bad := spec
			change(&bad)
			_, err := x.RF.AddFeed(x.Ctx, bad, nil)
			if x.WantCode(err, rowfeed.InvalidRequest); !strings.Contains(fmt.Sprint(err), words) {
				t.Error(err)
			}
		}
		f := x.Add(spec)
		x.Add(spec)
		spec.Retain = rowfeed.Retention{Count: 7}
		_, err := x.RF.AddFeed(x.Ctx, spec, nil)
		if x.WantCode(err, rowfeed.Conflict); !strings.Contains(fmt.Sprint(err), "retain is 36h0m0s, not 7") {
			t.Error(err)
		}
		info, err := f.Info(x.Ctx)
		if err != nil || info.RetainSeconds != 36*3600 {
			t.Errorf("the feed's info is %+v, %v", info, err)
		}
		if err := f.Admin().SetRetention(x.Ctx, spec.Retain); err != nil {
			t.Fatal(err)
		}
		x.Add(spec)
		if err := f.Admin().SetRetention(x.Ctx, rowfeed.Retention{Age: 1}); !suite.IsCode(err, rowfeed.InvalidRequest) {
			t.Error(err)
		}
	})
}

// TestConsumerBehindPurgeStops (M59): a consumer whose cursor is below what is kept stops with an error that says what
// to do. With OnRefused it starts at what is kept. A dead letter whose entry was purged is kept, with the reason.
func TestConsumerBehindPurgeStops(t *testing.T) {
	suite.EachOutbox(t, func(x *suite.Events) {
		for id := 1; id <= 3; id++ {
			x.Appended(id, 0, time.Time{})
		}
		var seen []int64
		c := &rowfeed.Consumer{Name: "test", Source: x.Feed, DB: x.RF, OnFailure: rowfeed.SetAside,
			Options: rowfeed.ConsumerOptions{
				Limit: 1, Retry: rowfeed.Retry{MaxAttempts: 1, Backoff: time.Millisecond},
			},
			Handle: func(_ context.Context, _ *sql.Tx, entries []rowfeed.Entry) error {
				for _, e := range entries {
					id, _ := e.Key.Get("id")
					if id == int64(2) || id == int64(8) {
						return errors.New("not this one")
					}
					seen = append(seen, id.(int64))
				}
				return nil
			}}
		run := func() error { return c.RunOnce(x.Ctx) }
		if err := run(); err != nil {
			t.Fatal(err)
		}
		for id := 4; id <= 9; id++ {
			x.Appended(id, 0, time.Time{})
		}
		x.Publish(x.Feed)
		x.Retain(rowfeed.Retention{Count: 2})
		x.Purged(7)
		err := run()
		x.WantCode(err, rowfeed.EntriesExpired)
		if !strings.Contains(fmt.Sprint(err), "rowfeed consumer reset test --feed events") {
			t.Error(err)
		}
		refused := 0
		c.Options.OnRefused = func(context.Context, *sql.Tx, error) error { refused++; return nil }
		if err := run(); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(seen) != "[1 3 9]" || refused != 1 {
			t.Errorf("the consumer has handled %v and was refused %d times", seen, refused)
		}
		x.Retain(rowfeed.Retention{Count: 1})
		x.Purged(1) // the entry of the dead letter 8
		if _, err := x.RF.Admin().RetryDeadLetters(x.Ctx,
			suite.Letters(rowfeed.ConsumerID{Consumer: "test"}, ""), nil); err != nil {
			t.Fatal(err)
		}
		if err := run(); err != nil {
			t.Fatal(err)
		}
		page, err := x.RF.Admin().DeadLetters(x.Ctx, suite.Letters(rowfeed.ConsumerID{Consumer: "test"}, ""))
		letters := page.Letters
		if err != nil {
			t.Fatal(err)
		}
		told := false
		for _, l := range letters {
			told = told || strings.Contains(l.Error, "was purged")
		}
		if !told || fmt.Sprint(seen) != "[1 3 9]" || refused != 1 {
			t.Errorf("the consumer has handled %v and was refused %d times, letters %+v", seen, refused, letters)
		}
	})
}
