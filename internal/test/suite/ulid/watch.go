package ulid

import (
	"context"
	"database/sql"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestWaitersPollOnlyTheirShard (M45, M69): readers wait for a sequence feed, and for one shard of a ULID feed. A
// commit wakes them. The watcher's polls read no shards for the sequence feed, and one shard for the other.
func TestWaitersPollOnlyTheirShard(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		kv := x.AddKV()
		var all, one, none atomic.Int64 // polls for all shards, for one, and for none
		rf := x.TappedDB(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			switch {
			case !strings.HasPrefix(ev.SQL, "SELECT s.name, f.generation"):
			case strings.Contains(ev.SQL, "h.shard IN ("):
				one.Add(1)
			case strings.Contains(ev.SQL, "shards"):
				all.Add(1)
			default:
				none.Add(1)
			}
			return nil
		}}, nil)
		wait := func(name string, shard int) <-chan int {
			f, err := rf.Feed(x.Ctx, name)
			if err != nil {
				t.Fatal(err)
			}
			request := rowfeed.Request{Wait: time.Minute}
			if name == "events" {
				request.Shards = rowfeed.One(shard)
			}
			done := make(chan int, 1)
			go func() {
				page, err := f.Fetch(x.Ctx, request)
				if err != nil {
					x.Error(err)
				}
				done <- len(page.Entries)
			}()
			return done
		}
		woken := func(done <-chan int) {
			x.Helper()
			if n := <-done; n != 1 {
				t.Errorf("a wait ended with %d entries, want 1", n)
			}
		}
		done := wait("kv", 0)
		x.Eventually("the watcher polls without shards", func() bool { return none.Load() > 0 })
		x.Exec("INSERT INTO kv VALUES (1, 'a', 1)")
		x.Publish(kv)
		woken(done)
		done = wait("events", -7)
		x.Eventually("the watcher polls for a shard", func() bool { return one.Load() > 1 })
		x.Write(-7, 1, 1)
		woken(done)
		if n := all.Load(); n != 0 {
			t.Errorf("the watcher polled %d times for all shards", n)
		}
	})
}

// TestLateRowIsOnPageThatEndsWait (M69): a row's ULID was locked by an earlier transaction. Its commit does not wake a
// reader of the shard, but the row is on the page with which the wait ends.
func TestLateRowIsOnPageThatEndsWait(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		tx := x.Begin(sql.LevelReadCommitted)
		u := x.Lock(tx, rowfeed.LockRequest{Shards: []int{1}})
		x.Event(tx, 1, 1, x.At(u, 1, 0), "")
		x.Commit(tx)
		cursor := x.Page(x.Feed, 1, "", 10).Cursor
		for wait, id := 2*time.Second, 2; ; wait, id = 2*wait, id+1 {
			if wait > 10*time.Minute {
				t.Fatal("no row was committed while a reader waited")
			}
			began := time.Now()
			done := make(chan rowfeed.Page, 1)
			go func() {
				page, err := x.Feed.Fetch(x.Ctx, rowfeed.Request{After: cursor, Shards: rowfeed.One(1), Wait: wait})
				if err != nil {
					x.Error(err)
				}
				done <- page
			}()
			x.Eventually("the reader waits, or has waited", func() bool {
				return len(done) > 0 || x.Parked("watch.(*Watcher).Wait(") > 0
			})
			tx := x.Begin(sql.LevelReadCommitted)
			x.Event(tx, id, 1, x.At(u, 1, int64(id)), "late")
			x.Commit(tx)
			inTime := time.Since(began) < wait
			page := <-done
			if inTime {
				x.WantIDs(page, false, id)
				return
			}
			cursor = x.Page(x.Feed, 1, cursor, 10).Cursor
		}
	})
}

// TestEmptyPageWritesNothing (M45): pages of shards that do not exist write nothing to the database.
func TestEmptyPageWritesNothing(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		var writes atomic.Int64
		rf := x.TappedDB(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if strings.Contains(ev.SQL, "flushes") && !strings.HasPrefix(ev.SQL, "SELECT") {
				writes.Add(1)
			}
			return nil
		}}, nil)
		f, err := rf.Feed(x.Ctx, "events")
		if err != nil {
			t.Fatal(err)
		}
		for shard := range 5 {
			x.WantIDs(x.Page(f, shard, "", 10), false)
		}
		if n := writes.Load(); n != 0 {
			t.Errorf("empty pages wrote %d times", n)
		}
	})
}

// TestInfoListsLimitedShards (M45): Info lists MaxShardIDs shards, and says whether there are more.
func TestInfoListsLimitedShards(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		x.Exec("INSERT INTO rowfeed_shards (feed, shard, time_ms, ulid_high, ulid_low, witness) " +
			series("'events', i, 1, 65536, 1, ''", feedtype.MaxShardIDs))
		info := x.Info(x.Feed)
		if len(info.ShardIDs) != feedtype.MaxShardIDs || info.MoreShardIDs {
			t.Errorf("info lists %d shards, and says that there are more: %v", len(info.ShardIDs), info.MoreShardIDs)
		}
		x.Write(-1, 1, 1)
		info = x.Info(x.Feed)
		if len(info.ShardIDs) != feedtype.MaxShardIDs || !info.MoreShardIDs || info.ShardIDs[0] != -1 {
			t.Errorf("info lists %d shards from %d on, and says that there are more: %v",
				len(info.ShardIDs), info.ShardIDs[0], info.MoreShardIDs)
		}
	})
}
