package ulid

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/test/fixture"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// waitingPool returns a pool of one connection whose session waits for a lock for so long.
func waitingPool(x *suite.Env, limit time.Duration) *sql.DB {
	x.Helper()
	pool := x.DB.OpenTapped(x.T, testdb.Hooks{}, "_txlock=deferred")
	pool.SetMaxOpenConns(1)
	x.SetLockWait(pool, limit)
	return pool
}

// TestLockGivesUpAfterWait (M44): a lock waits for as long as its request says, and then fails. The error says whether
// the transaction can continue. The session's own limit is the same after every lock, whether it succeeded or failed.
func TestLockGivesUpAfterWait(t *testing.T) {
	testdb.Quick(t)
	suite.EachULID(t, func(x *suite.Events) {
		x.Exec("CREATE TABLE notes (id BIGINT PRIMARY KEY)")
		x.Write(1, 1, 1)
		holder := x.Begin(sql.LevelReadCommitted)
		x.Lock(holder, rowfeed.LockRequest{Shards: []int{1}})
		for i, shard := range []int{1, 9} { // shard 1 has a state, the holder creates that of shard 9
			if shard == 9 {
				if err := holder.Rollback(); err != nil {
					x.Fatal(err)
				}
				holder = x.Begin(sql.LevelReadCommitted)
				x.Lock(holder, rowfeed.LockRequest{Shards: []int{9}})
			}
			tx := x.BeginOn(waitingPool(x.Env, time.Minute))
			own := x.WaitSetting(tx)
			if !x.Has.OneWriter {
				x.Lock(tx, rowfeed.LockRequest{Shards: []int{-2}, Wait: time.Second})
				x.Lock(tx, rowfeed.LockRequest{Shards: []int{-3 - i}, Wait: time.Second})
				x.In(tx, []string{"INSERT INTO notes VALUES (1)", "INSERT INTO notes VALUES (2)"}[i])
			}
			if now := x.WaitSetting(tx); now != own {
				x.Errorf("the session's limit is %s after a lock, want %s", now, own)
			}
			_, err := x.Feed.Lock(x.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{shard}, Wait: time.Second})
			if x.WantCode(err, rowfeed.Locked); !strings.Contains(err.Error(), "longer than this one may wait") {
				x.Errorf("error %v, want one about the wait", err)
			}
			var n int
			failed := tx.QueryRowContext(x.Ctx, "SELECT count(*) FROM notes").Scan(&n)
			says := strings.Contains(err.Error(), "cannot continue")
			if says != x.Has.AbortingErrors || says != (failed != nil) {
				x.Errorf("the error was %v, and the next statement answered %v", err, failed)
			}
			if x.Has.AbortingErrors {
				tx.Rollback()
				continue
			}
			if now := x.WaitSetting(tx); now != own {
				x.Errorf("the session's limit is %s after a failed lock, want %s", now, own)
			}
			if err := holder.Rollback(); err != nil {
				x.Fatal(err)
			}
			u := x.Lock(tx, rowfeed.LockRequest{Shards: []int{shard}})
			x.Event(tx, 10+i, shard, x.At(u, shard, 0), "")
			x.Commit(tx)
			x.WantIDs(x.Page(x.Feed, shard, "", 10), false, map[int][]int{1: {1, 10}, 9: {11}}[shard]...)
			holder = x.Begin(sql.LevelReadCommitted)
			x.Lock(holder, rowfeed.LockRequest{Shards: []int{1}})
		}
		want := int64(2)
		if x.Has.OneWriter || x.Has.AbortingErrors {
			want = 0
		}
		if notes := x.Scalar("SELECT count(*) FROM notes"); notes != want {
			x.Errorf("the transactions committed %d notes, want %d", notes, want)
		}
		holder.Rollback()
		if x.Has.AbortingErrors {
			wantSavepointContinues(x)
			return // a refused hint fails the transaction
		}
		tx := x.BeginOn(waitingPool(x.Env, time.Minute))
		own := x.WaitSetting(tx)
		request := rowfeed.LockRequest{Hint: x.Now().Add(time.Hour), Wait: time.Second}
		_, err := x.Feed.Lock(x.Ctx, rowfeed.InTx(tx), request)
		x.WantCode(err, rowfeed.InvalidRequest)
		if now := x.WaitSetting(tx); now != own {
			x.Errorf("the session's limit is %s after a refused hint, want %s", now, own)
		}
	})
}

// wantSavepointContinues asserts that a transaction continues from a savepoint after a lock that failed, with the
// settings that it had before.
func wantSavepointContinues(x *suite.Events) {
	x.Helper()
	holder := x.Begin(sql.LevelReadCommitted)
	x.Lock(holder, rowfeed.LockRequest{Shards: []int{1}})
	tx := x.BeginOn(waitingPool(x.Env, time.Minute))
	own := x.WaitSetting(tx)
	x.In(tx, "SAVEPOINT s")
	_, err := x.Feed.Lock(x.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{1}, Wait: time.Second})
	x.WantCode(err, rowfeed.Locked)
	x.In(tx, "ROLLBACK TO SAVEPOINT s")
	if now := x.WaitSetting(tx); now != own {
		x.Errorf("the session's limit is %s after a failed lock, want %s", now, own)
	}
	wantIdle(x.Env, tx, "0")
	x.Commit(tx)
	x.Commit(holder)
}

// TestShorterWaitLimitOfSessionApplies (M44): a session has a shorter limit for lock waits than rowfeed's default. The
// session's limit applies to locks without a Wait, and to those with NoBound. A lock that has a Wait waits that long.
func TestShorterWaitLimitOfSessionApplies(t *testing.T) {
	testdb.Quick(t)
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(1, 1, 1)
		holder := x.Begin(sql.LevelReadCommitted)
		x.Lock(holder, rowfeed.LockRequest{Shards: []int{1}})
		ended := make(chan string, 3)
		for _, w := range []struct {
			name string
			wait time.Duration
		}{{"default", 0}, {"no limit", rowfeed.NoBound}, {"seven seconds", 7 * time.Second}} {
			tx := x.BeginOn(waitingPool(x.Env, time.Second))
			go func() {
				_, err := x.Feed.Lock(x.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{1}, Wait: w.wait})
				if !suite.IsCode(err, rowfeed.Locked) && (err != nil || w.name != "seven seconds") {
					x.Errorf("%s: %v", w.name, err)
				}
				ended <- w.name
			}()
		}
		for range 2 {
			if name := <-ended; name == "seven seconds" {
				x.Error("the lock that may wait for 7 s ended before those whose sessions wait for 1 s")
			}
		}
		x.Commit(holder)
		<-ended
	})
}

// TestConfigHasDefaultsOfLock (M44): Config.LockWait and Config.LockIdle apply to requests without Wait and Idle.
func TestConfigHasDefaultsOfLock(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		config := &rowfeed.Config{LockWait: time.Second, LockIdle: rowfeed.NoBound}
		rf, err := rowfeed.Open(x.Ctx, x.Pool, x.Dialect, config)
		if err != nil {
			x.Fatal(err)
		}
		f, err := rf.Feed(x.Ctx, "events")
		if err != nil {
			x.Fatal(err)
		}
		holder := x.Begin(sql.LevelReadCommitted)
		x.Lock(holder, rowfeed.LockRequest{})
		ctx, cancel := context.WithTimeout(x.Ctx, time.Minute)
		defer cancel()
		tx := x.BeginOn(waitingPool(x.Env, 10*time.Minute))
		_, err = f.Lock(ctx, rowfeed.InTx(tx), rowfeed.LockRequest{})
		x.WantCode(err, rowfeed.Locked)
		tx.Rollback()
		x.Commit(holder)
		if x.Has.IdleLimits {
			tx := x.Begin(sql.LevelReadCommitted)
			if _, err := f.Lock(ctx, rowfeed.InTx(tx), rowfeed.LockRequest{}); err != nil {
				x.Fatal(err)
			}
			wantIdle(x.Env, tx, "0")
		}
	})
}

// wantIdle asserts how long a transaction may be idle.
func wantIdle(x *suite.Env, tx *sql.Tx, want string) {
	x.Helper()
	var idle string
	if err := tx.QueryRowContext(x.Ctx, x.Text("ulid.idle_limit")).Scan(&idle); err != nil || idle != want {
		x.Errorf("the transaction may be idle for %q, want %q (%v)", idle, want, err)
	}
}

// TestLockLimitsIdleTime (M44): a transaction that has locked a shard may be idle for as long as the request or the
// session says, whichever is shorter. Later transactions of the session have the session's limit. A request with Idle
// fails if the database cannot limit one transaction and the session has no limit.
func TestLockLimitsIdleTime(t *testing.T) {
	testdb.Quick(t)
	suite.EachULID(t, func(x *suite.Events) {
		if !x.Has.IdleLimits {
			tx := x.Begin(sql.LevelReadCommitted)
			_, err := x.Feed.Lock(x.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Idle: time.Minute})
			if x.WantCode(err, rowfeed.Refused); !errors.Is(err, errors.ErrUnsupported) {
				x.Error(err)
			}
			x.Lock(tx, rowfeed.LockRequest{}) // by default, Lock needs no limit
			return
		}
		for _, c := range []struct {
			own  string
			req  rowfeed.LockRequest
			want string
		}{
			{"0", rowfeed.LockRequest{}, "1min"},
			{"0", rowfeed.LockRequest{Idle: 90500 * time.Millisecond}, "90500ms"},
			{"0", rowfeed.LockRequest{Idle: rowfeed.NoBound}, "0"},
			{"50s", rowfeed.LockRequest{}, "50s"},
			{"50s", rowfeed.LockRequest{Idle: time.Hour}, "50s"},
			{"2h", rowfeed.LockRequest{Idle: time.Hour}, "1h"},
		} {
			pool := x.DB.OpenTapped(x.T, testdb.Hooks{})
			pool.SetMaxOpenConns(1)
			if _, err := pool.Exec(x.Text("ulid.set_idle_limit", c.own)); err != nil {
				x.Fatal(err)
			}
			for _, bySQL := range []bool{false, true} {
				if bySQL && c.req.Idle != 0 {
					continue
				}
				tx := x.BeginOn(pool)
				if bySQL {
					x.In(tx, x.Text("ulid.lock", 3))
				} else {
					x.Lock(tx, c.req)
				}
				wantIdle(x.Env, tx, c.want)
				x.Commit(tx)
				tx = x.BeginOn(pool)
				wantIdle(x.Env, tx, c.own)
				x.Commit(tx)
			}
		}
	})
}

// TestLockFunctionWaitsAsSessionSays (M44): the database's functions wait for a shard as long as the session's limit
// says. A session without a limit waits for 10 s.
func TestLockFunctionWaitsAsSessionSays(t *testing.T) {
	t.Parallel()
	testdb.Only(t, testdb.Servers...) // SQLite has no functions
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(1, 1, 1)
		holder := x.Begin(sql.LevelReadCommitted)
		x.Lock(holder, rowfeed.LockRequest{Shards: []int{1}})
		limits := []time.Duration{time.Second}
		if x.Has.UnlimitedWaits {
			limits = append(limits, 0) // none
		}
		for _, limit := range limits {
			tx := x.BeginOn(waitingPool(x.Env, limit))
			before := x.WaitSetting(tx)
			if _, err := x.LockBySQL(tx, 2, "NULL"); err != nil {
				x.Fatal(err)
			}
			if now := x.WaitSetting(tx); now != before {
				x.Errorf("the session's limit is %s after a lock, want %s", now, before)
			}
			ctx, cancel := context.WithTimeout(x.Ctx, time.Minute)
			_, err := tx.ExecContext(ctx, x.Text("ulid.lock", 1))
			if cancel(); x.Dialect.Classify(err) != dialect.ClassLockTimeout {
				x.Errorf("with the session's limit %s: error %v, want that of a lock timeout", limit, err)
			}
			tx.Rollback()
		}
	})
}

// TestLockReportsTransactionLostByTimeout (M44): a server with innodb_rollback_on_timeout rolls back the whole
// transaction when a lock wait ends. The error of Lock says so, because later statements would be committed one by one.
func TestLockReportsTransactionLostByTimeout(t *testing.T) {
	testdb.Only(t, testdb.InnoDB...)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		server := e.Dedicated(t, testdb.Setting(fixture.Of(e).Text(t, "ulid.roll_back_on_timeout")))
		x := blockingFeed(t, server.NewDatabase(t))
		x.Write(1, 1, 1)
		holder := x.Begin(sql.LevelReadCommitted)
		x.Lock(holder, rowfeed.LockRequest{Shards: []int{1}})
		tx := x.Begin(sql.LevelReadCommitted)
		_, err := x.Feed.Lock(x.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{1}, Wait: time.Second})
		if x.WantCode(err, rowfeed.Locked); !strings.Contains(err.Error(), "the transaction cannot continue") {
			x.Errorf("error %v, want one that says that the transaction has ended", err)
		}
		tx.Rollback()
		x.Commit(holder)
	})
}
