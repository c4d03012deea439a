package ulid

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestWaitersPollOnlyTheirShard (M45, M69): who waits is woken by a commit in the shard; the looks for who waits for one
// shard, or for a sequence, ask for no others (M69).
func TestWaitersPollOnlyTheirShard(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		kv := x.AddKV()
		var all, one, none atomic.Int64 // looks
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
				t.Errorf("%d entries", n)
			}
		}
		done := wait("kv", 0)
		x.Eventually("looks without shards", func() bool { return none.Load() > 0 })
		x.Exec("INSERT INTO kv VALUES (1, 'a', 1)")
		x.Publish(kv)
		woken(done)
		done = wait("events", -7)
		x.Eventually("looks for a shard", func() bool { return one.Load() > 1 })
		x.Write(-7, 1, 1)
		woken(done)
		if n := all.Load(); n != 0 {
			t.Errorf("%d looks at all shards", n)
		}
	})
}

// TestLateRowIsOnPageThatEndsWait (M69): a row whose ULID was taken by an earlier transaction is no news to who
// waits, and is on the page that the wait ends with.
func TestLateRowIsOnPageThatEndsWait(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		tx := x.Begin(sql.LevelReadCommitted)
		u := x.Lock(tx, rowfeed.LockRequest{Shards: []int{1}})
		x.Event(tx, 1, 1, x.At(u, 1, 0), "")
		x.Commit(tx)
		cursor := x.Page(x.Feed, 1, "", 10).Cursor
		for wait, id := 2*time.Second, 2; ; wait, id = 2*wait, id+1 {
			if wait > 10*time.Minute {
				t.Fatal("no row was committed while somebody waited")
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
			x.Eventually("it waits, or has waited", func() bool { return len(done) > 0 || x.Parked("watch.(*Watcher).Wait(") > 0 })
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

// TestEmptyPageWritesNothing (M45): a page of a shard that is not there writes nothing (M45).
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
			t.Errorf("%d writes", n)
		}
	})
}

// TestInfoListsLimitedShards (M45): an Info lists so many shards, and says that there are more (M45).
func TestInfoListsLimitedShards(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		x.Exec(fmt.Sprintf("INSERT INTO rowfeed_shards (feed, shard, time_ms, ulid_high, ulid_low, witness) WITH RECURSIVE n AS (SELECT 0 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 100) "+
			"SELECT 'events', a.i * 101 + b.i, 1, 65536, 1, '' FROM n a, n b WHERE a.i * 101 + b.i < %d", feedtype.MaxShardIDs))
		if info := x.Info(x.Feed); len(info.ShardIDs) != feedtype.MaxShardIDs || info.MoreShardIDs {
			t.Errorf("%d shards, more %v", len(info.ShardIDs), info.MoreShardIDs)
		}
		x.Write(-1, 1, 1)
		if info := x.Info(x.Feed); len(info.ShardIDs) != feedtype.MaxShardIDs || !info.MoreShardIDs || info.ShardIDs[0] != -1 {
			t.Errorf("%d shards from %d on, more %v", len(info.ShardIDs), info.ShardIDs[0], info.MoreShardIDs)
		}
	})
}
