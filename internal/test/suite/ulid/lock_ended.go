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

// TestKilledLockRestoresWaitLimit (M44): on MariaDB and MySQL, Lock changes the session's limit for lock waits. An
// operator kills the statement of a lock that waits. Lock restores the limit before the connection returns to its pool.
func TestKilledLockRestoresWaitLimit(t *testing.T) {
	testdb.Only(t, testdb.InnoDB...) // on others the limit ends with the transaction, or is not the server's
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(1, 1, 1)
		holder := x.Begin(sql.LevelReadCommitted)
		x.Lock(holder, rowfeed.LockRequest{Shards: []int{1}})
		pool := waitingPool(x.Env, time.Minute)
		tx := x.BeginOn(pool)
		own, id := x.WaitSetting(tx), x.Connection(tx)
		ended := make(chan error, 1)
		go func() {
			request := rowfeed.LockRequest{Shards: []int{1}, Wait: 50 * time.Second}
			_, err := x.Feed.Lock(x.Ctx, rowfeed.InTx(tx), request)
			ended <- err
		}()
		x.Eventually("the lock waits", x.Waits)
		x.Exec(x.Text("ulid.kill_statement", id))
		if err := <-ended; err == nil {
			t.Error("a lock succeeded although its statement was killed")
		}
		tx.Rollback()
		next := x.BeginOn(pool)
		if now, same := x.WaitSetting(next), x.Connection(next); now != own || same != id {
			t.Errorf("session %s has the limit %s, want session %s with %s", same, now, id, own)
		}
		x.Commit(holder)
		// If the session gets a new limit, Lock restores the new one.
		x.In(next, x.Text("ulid.set_lock_wait", 33_000, 33))
		request := rowfeed.LockRequest{Shards: []int{1}, Wait: time.Second}
		if _, err := x.Feed.Lock(x.Ctx, rowfeed.InTx(next), request); err != nil {
			t.Error(err)
		}
		request.Hint = x.Now().Add(time.Hour)
		if _, err := x.Feed.Lock(x.Ctx, rowfeed.InTx(next), request); err == nil {
			t.Error("Lock accepted a hint that is an hour ahead")
		}
		if now := x.WaitSetting(next); now != "33" {
			t.Errorf("the session's limit is %s, want 33", now)
		}
	})
}

// TestCanceledLockRestoresWaitLimit (M44): the context of a transaction ends while its lock waits, and database/sql
// rolls the transaction back. The session's limit for lock waits is then as it was before.
func TestCanceledLockRestoresWaitLimit(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.SQLite) // on others the limit ends with the transaction, or the connection is closed
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(1, 1, 1)
		var waiting, again atomic.Bool
		for _, own := range []time.Duration{time.Minute, 100 * time.Millisecond} { // the lock's is between them
			pool := x.DB.OpenTapped(x.T, testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
				if strings.Contains(ev.SQL, "rowfeed_shards") {
					again.Store(waiting.Swap(true))
				}
				return nil
			}}, "_txlock=deferred")
			pool.SetMaxOpenConns(1)
			x.SetLockWait(pool, own)
			setting := func() string {
				tx := x.BeginOn(pool)
				defer tx.Rollback()
				return x.WaitSetting(tx)
			}
			before := setting()
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
				request := rowfeed.LockRequest{Shards: []int{1}, Wait: 50 * time.Second}
				_, err := x.Feed.Lock(ctx, rowfeed.InTx(tx), request)
				ended <- err
			}()
			x.Eventually("the lock waits", func() bool {
				return len(ended) > 0 || waiting.Load() && (own == time.Minute || again.Load())
			})
			if len(ended) > 0 {
				t.Fatalf("the lock gave up too early in a session with the limit %s: %v", own, <-ended)
			}
			cancel()
			if err := <-ended; err == nil {
				t.Error("a lock succeeded although its context was canceled")
			}
			tx.Rollback()
			if now := setting(); now != before {
				t.Fatalf("the session's limit is %s, want %s", now, before)
			}
			x.Commit(holder)
		}
	})
}
