package ulid

import (
	"database/sql"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestFirstWritersOfShardsDoNotWait (M30, H8): the first writers of two shards neither wait for each other nor end in a
// deadlock, up to REPEATABLE READ. This holds for the library and for the functions.
func TestFirstWritersOfShardsDoNotWait(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has one writer at a time: see TestWritersOfShardTakeTurns
	suite.EachULID(t, func(x *suite.Events) {
		// At SERIALIZABLE, transactions that search for a row before they insert it may conflict, whichever rows they
		// search for. Databases with locking reads also lock the gap in which they find no row.
		levels := []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead}
		for i, level := range levels {
			a, b := x.Begin(level), x.Begin(level)
			u := x.Lock(a, rowfeed.LockRequest{Shards: []int{77 + 10*i}})
			v := x.Lock(b, rowfeed.LockRequest{Shards: []int{78 + 10*i}})
			w := x.Lock(b, rowfeed.LockRequest{Shards: []int{-5 - i}})
			x.Event(a, 10*i, 77+10*i, x.At(u, 77+10*i, 0), "")
			x.Event(b, 10*i+1, 78+10*i, x.At(v, 78+10*i, 0), "")
			x.Event(b, 10*i+2, -5-i, x.At(w, -5-i, 0), "")
			x.Commit(a)
			x.Commit(b)
		}
		for i, level := range levels {
			a, b := x.Begin(level), x.Begin(level)
			for j, lock := range []struct {
				tx    *sql.Tx
				shard int
			}{{a, 1077 + 10*i}, {b, 1078 + 10*i}, {b, -1005 - i}, {a, 1076 + 10*i}} {
				if _, err := x.LockBySQL(lock.tx, lock.shard, "NULL"); err != nil {
					t.Fatal(level, err)
				}
				x.In(lock.tx, fmt.Sprintf("INSERT INTO events (id, shard, ulid) VALUES (%d, %d, %s)",
					100+10*i+j, lock.shard, x.BySQL("0", lock.shard)))
			}
			x.Commit(b)
			x.Commit(a)
		}
		x.WantSound(x.Feed)
	})
}

// TestRolledBackFirstWriterLetsOthersContinue (M30): several writers wait for the first writer of a shard, which rolls
// back. The others then continue. On databases with gap locks some of them may end in a deadlock. The error says that,
// and a second attempt succeeds.
func TestRolledBackFirstWriterLetsOthersContinue(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has one writer at a time: see TestWritersOfShardTakeTurns
	suite.EachULID(t, func(x *suite.Events) {
		for round, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelDefault} {
			shard := 5 + round
			first := x.Begin(level)
			x.Lock(first, rowfeed.LockRequest{Shards: []int{shard}})
			const others = 3
			write := func(i int, pool *sql.DB) error {
				tx, err := pool.BeginTx(x.Ctx, &sql.TxOptions{Isolation: level})
				if err != nil {
					return err
				}
				defer tx.Rollback()
				request := rowfeed.LockRequest{Shards: []int{shard}, Wait: time.Hour}
				u, err := x.Feed.Lock(x.Ctx, rowfeed.InTx(tx), request)
				if err != nil {
					return err
				}
				at, err := u.At(shard, 0)
				if err == nil {
					err = x.TryEvent(x.Ctx, tx, 10*round+i, shard, at, "")
				}
				if err != nil {
					return err
				}
				return tx.Commit()
			}
			var group sync.WaitGroup
			errs, pools := make([]error, others), make([]*sql.DB, others)
			for i := range others {
				pools[i] = x.Writer(testdb.Hooks{})
				group.Go(func() { errs[i] = write(i, pools[i]) })
			}
			x.Eventually("all others wait", func() bool { return x.LockWaits() == others })
			if err := first.Rollback(); err != nil {
				t.Fatal(err)
			}
			group.Wait()
			for i, err := range errs {
				if err == nil {
					continue
				}
				x.WantCode(err, rowfeed.Locked)
				if !x.Has.GapLocks || x.Dialect.Classify(unwrapped(err)) != dialect.ClassRetry {
					t.Errorf("%v: %v", level, err)
				}
				if err := write(i, pools[i]); err != nil {
					t.Errorf("%v: the second attempt failed: %v", level, err)
				}
			}
			if page := x.Page(x.Feed, shard, "", 10); len(page.Entries) != others {
				t.Errorf("%v: %d of %d rows", level, len(page.Entries), others)
			}
		}
	})
}

// TestMovingFirstRecordsDelaysNoOtherShard (M59): a process that moves the first records of one shard is held before
// its commit. Others move records of other shards meanwhile.
func TestMovingFirstRecordsDelaysNoOtherShard(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has one writer at a time
	suite.EachOutbox(t, func(x *suite.Events) {
		x.Appended(1, 77, time.Time{})
		x.Appended(2, 78, time.Time{})
		x.Appended(3, -5, time.Time{})
		held := testdb.Hold(func(ev testdb.TapEvent) bool { return ev.Kind == testdb.Commit })
		f, err := x.TappedDB(testdb.Hooks{Before: held.Before}, nil).Feed(x.Ctx, "events")
		if err != nil {
			t.Fatal(err)
		}
		pages := make(chan rowfeed.Page, 1)
		go func() {
			page, err := f.Fetch(x.Ctx, rowfeed.Request{Shards: rowfeed.One(77)})
			if err != nil {
				x.Error(err)
			}
			pages <- page
		}()
		<-held.Reached
		x.WantIDs(x.Page(x.Feed, 78, "", 10), false, 2)
		x.WantIDs(x.Page(x.Feed, -5, "", 10), false, 3)
		held.Release()
		x.WantIDs(<-pages, false, 1)
		if info := x.Info(x.Feed); !slices.Equal(info.ShardIDs, []int{-5, 77, 78}) {
			t.Errorf("shards %v, want -5, 77 and 78", info.ShardIDs)
		}
	})
}
