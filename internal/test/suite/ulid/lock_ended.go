package ulid

import (
	"context"
	"database/sql"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestKilledLockRestoresWaitLimit (M44): a Lock whose statement is killed while it waits, by an operator or by the
// server's own bound, leaves the session's bound as it was: the connection goes back to its pool. On
// MariaDB and MySQL the bound is the session's, and a statement that is killed puts nothing back.
func TestKilledLockRestoresWaitLimit(t *testing.T) {
	testdb.Only(t, testdb.InnoDB...) // elsewhere the setting is the transaction's, or not the server's
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(1, 1, 1)
		holder := x.Begin(sql.LevelReadCommitted)
		x.Lock(holder, rowfeed.LockRequest{Shards: []int{1}})
		pool := sessionOf(x.Env, "60000")
		tx := x.BeginOn(pool)
		own, id := x.WaitSetting(tx), x.Connection(tx)
		ended := make(chan error, 1)
		go func() {
			_, err := x.Feed.Lock(x.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{1}, Wait: 50 * time.Second})
			ended <- err
		}()
		x.Eventually("it waits", x.Waits)
		x.Exec("KILL QUERY " + id)
		if err := <-ended; err == nil {
			t.Error("a lock that was killed is had")
		}
		tx.Rollback()
		next := x.BeginOn(pool)
		if now, same := x.WaitSetting(next), x.Connection(next); now != own || same != id {
			t.Errorf("the session %s waits %s, and %s was to wait %s", same, now, id, own)
		}
		x.Commit(holder)
		// A bound that the session has been given since then is not put back to that of before.
		x.In(next, "SET SESSION innodb_lock_wait_timeout = 33")
		if _, err := x.Feed.Lock(x.Ctx, rowfeed.InTx(next), rowfeed.LockRequest{Shards: []int{1}, Wait: time.Second}); err != nil {
			t.Error(err)
		}
		if _, err := x.Feed.Lock(x.Ctx, rowfeed.InTx(next), rowfeed.LockRequest{Shards: []int{1}, Wait: time.Second, Hint: x.Now().Add(time.Hour)}); err == nil {
			t.Error("a hint that is an hour ahead is taken")
		}
		if now := x.WaitSetting(next); now != "33" {
			t.Errorf("the session waits %s, and was to wait 33", now)
		}
	})
}

// TestCanceledLockRestoresWaitLimit (M44): nor does a transaction whose own context ends while it waits leave anything
// with its connection: database/sql has rolled it back before anybody can put a setting back.
func TestCanceledLockRestoresWaitLimit(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.SQLite) // elsewhere the bound ends with the transaction, or the connection is closed
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(1, 1, 1)
		var waiting, again atomic.Bool
		for _, own := range []string{"60000", "100"} { // longer than it is to wait for, and shorter
			pool := x.DB.OpenTapped(x.T, testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
				if strings.Contains(ev.SQL, "rowfeed_shards") {
					again.Store(waiting.Swap(true))
				}
				return nil
			}}, "_txlock=deferred")
			pool.SetMaxOpenConns(1)
			if _, err := pool.Exec("PRAGMA busy_timeout = " + own); err != nil {
				t.Fatal(err)
			}
			setting := func() string {
				tx := x.BeginOn(pool)
				defer tx.Rollback()
				return x.WaitSetting(tx)
			}
			holder := x.Begin(sql.LevelDefault)
			x.Lock(holder, rowfeed.LockRequest{Shards: []int{1}})
			ctx, cancel := context.WithCancel(x.Ctx)
			tx, err := pool.BeginTx(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			waiting.Store(false)
			again.Store(false)
			ended := make(chan error, 1)
			go func() {
				_, err := x.Feed.Lock(ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{1}, Wait: 50 * time.Second})
				ended <- err
			}()
			x.Eventually("it waits", func() bool { return len(ended) > 0 || waiting.Load() && (own == "60000" || again.Load()) })
			if len(ended) > 0 {
				t.Fatalf("it gave up by itself where the session waits %s ms: %v", own, <-ended)
			}
			cancel()
			if err := <-ended; err == nil {
				t.Error("a lock that was given up is had")
			}
			tx.Rollback()
			if now := setting(); now != own {
				t.Fatalf("the session waits %s, and was to wait %s", now, own)
			}
			x.Commit(holder)
		}
	})
}
