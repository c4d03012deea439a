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
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// sessionOf is a pool of one connection whose session waits for so long, in milliseconds.
func sessionOf(x *suite.Env, ms string) *sql.DB {
	x.Helper()
	pool := x.DB.OpenTapped(x.T, testdb.Hooks{}, "_txlock=deferred")
	pool.SetMaxOpenConns(1)
	setting := x.By(map[string]string{"sqlite": "PRAGMA busy_timeout = " + ms, "postgres": "SET lock_timeout = " + ms, "mysql": "SET SESSION innodb_lock_wait_timeout = " + strings.TrimSuffix(ms, "000")})
	if _, err := pool.Exec(setting); err != nil {
		x.Fatal(err)
	}
	return pool
}

// TestLockGivesUpAfterWait (M44): who waits for a shard longer than it asked for is told so, and whether its
// transaction can go on, which is true. What the session waits for else is not changed,
// neither by a lock that is had nor by one that is not.
func TestLockGivesUpAfterWait(t *testing.T) {
	testdb.Quick(t)
	suite.EachULID(t, func(x *suite.Events) {
		x.Exec("CREATE TABLE notes (id BIGINT PRIMARY KEY)")
		x.Write(1, 1, 1)
		holder := x.Begin(sql.LevelReadCommitted)
		x.Lock(holder, rowfeed.LockRequest{Shards: []int{1}})
		for i, made := range []int{1, 9} { // one that is there, and one that is made
			if made == 9 {
				if err := holder.Rollback(); err != nil {
					x.Fatal(err)
				}
				holder = x.Begin(sql.LevelReadCommitted)
				x.Lock(holder, rowfeed.LockRequest{Shards: []int{9}})
			}
			tx := x.BeginOn(sessionOf(x.Env, "60000"))
			own := x.WaitSetting(tx)
			if x.Family() != "sqlite" {
				x.Lock(tx, rowfeed.LockRequest{Shards: []int{-2}, Wait: time.Second})
				x.Lock(tx, rowfeed.LockRequest{Shards: []int{-3 - i}, Wait: time.Second})
				x.In(tx, []string{"INSERT INTO notes VALUES (1)", "INSERT INTO notes VALUES (2)"}[i])
			}
			if now := x.WaitSetting(tx); now != own {
				x.Errorf("the session waits %s, and was to wait %s", now, own)
			}
			_, err := x.Feed.Lock(x.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{made}, Wait: time.Second})
			if x.WantCode(err, rowfeed.Locked); !strings.Contains(err.Error(), "longer than this one may wait") {
				x.Error(err)
			}
			var n int
			broken := tx.QueryRowContext(x.Ctx, "SELECT count(*) FROM notes").Scan(&n)
			if says := strings.Contains(err.Error(), "cannot go on"); says != (x.Family() == "postgres") || says != (broken != nil) {
				x.Errorf("%v, and then: %v", err, broken)
			}
			if x.Family() == "postgres" {
				tx.Rollback()
				continue
			}
			if now := x.WaitSetting(tx); now != own {
				x.Errorf("the session waits %s after a lock in vain, and was to wait %s", now, own)
			}
			if err := holder.Rollback(); err != nil {
				x.Fatal(err)
			}
			u := x.Lock(tx, rowfeed.LockRequest{Shards: []int{made}})
			x.Event(tx, 10+i, made, x.At(u, made, 0), "")
			x.Commit(tx)
			x.WantIDs(x.Page(x.Feed, made, "", 10), false, map[int][]int{1: {1, 10}, 9: {11}}[made]...)
			holder = x.Begin(sql.LevelReadCommitted)
			x.Lock(holder, rowfeed.LockRequest{Shards: []int{1}})
		}
		if notes := x.Scalar("SELECT count(*) FROM notes"); x.Family() == "mysql" && notes != 2 {
			x.Errorf("%d notes: the transaction lost what it had done before", notes)
		}
		holder.Rollback()
		if x.Family() == "postgres" {
			// What a savepoint saves goes on, with the settings from before.
			holder = x.Begin(sql.LevelReadCommitted)
			x.Lock(holder, rowfeed.LockRequest{Shards: []int{1}})
			tx := x.BeginOn(sessionOf(x.Env, "60000"))
			x.In(tx, "SAVEPOINT s")
			_, err := x.Feed.Lock(x.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{1}, Wait: time.Second})
			x.WantCode(err, rowfeed.Locked)
			x.In(tx, "ROLLBACK TO SAVEPOINT s")
			if now := x.WaitSetting(tx); now != "1min" {
				x.Errorf("the session waits %s after a lock in vain", now)
			}
			wantIdle(x.Env, tx, "0")
			x.Commit(tx)
			x.Commit(holder)
			return // a hint that is refused ends the transaction
		}
		// One that is refused for its hint leaves the session as it was, too.
		tx := x.BeginOn(sessionOf(x.Env, "60000"))
		own := x.WaitSetting(tx)
		_, err := x.Feed.Lock(x.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Hint: x.Now().Add(time.Hour), Wait: time.Second})
		x.WantCode(err, rowfeed.InvalidRequest)
		if now := x.WaitSetting(tx); now != own {
			x.Errorf("the session waits %s after a hint that was refused, and was to wait %s", now, own)
		}
	})
}

// TestShorterWaitLimitOfSessionApplies (M44): where nobody asks for a bound a tighter one of the session's own holds, and
// with NoBound it alone. Who asked for more waits for longer.
func TestShorterWaitLimitOfSessionApplies(t *testing.T) {
	testdb.Quick(t)
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(1, 1, 1)
		holder := x.Begin(sql.LevelReadCommitted)
		x.Lock(holder, rowfeed.LockRequest{Shards: []int{1}})
		ended := make(chan string, 3)
		for _, w := range []struct {
			name string
			req  rowfeed.LockRequest
			own  string
		}{{"default", rowfeed.LockRequest{}, "1000"}, {"no bound", rowfeed.LockRequest{Wait: rowfeed.NoBound}, "1000"}, {"asked for", rowfeed.LockRequest{Wait: 7 * time.Second}, "1000"}} {
			w.req.Shards = []int{1}
			tx := x.BeginOn(sessionOf(x.Env, w.own))
			go func() {
				_, err := x.Feed.Lock(x.Ctx, rowfeed.InTx(tx), w.req)
				if !suite.IsCode(err, rowfeed.Locked) && (err != nil || w.name != "asked for") {
					x.Errorf("%s: %v", w.name, err)
				}
				ended <- w.name
			}()
		}
		for range 2 {
			if name := <-ended; name == "asked for" {
				x.Error("who asked for seven seconds had to go before those whose sessions wait for one")
			}
		}
		x.Commit(holder)
		<-ended
	})
}

// TestConfigHasDefaultsOfLock (M44): Config says what a Lock takes that says nothing.
func TestConfigHasDefaultsOfLock(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		rf, err := rowfeed.Open(x.Ctx, x.Pool, x.Dialect, &rowfeed.Config{LockWait: time.Second, LockIdle: rowfeed.NoBound})
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
		tx := x.BeginOn(sessionOf(x.Env, "600000"))
		_, err = f.Lock(ctx, rowfeed.InTx(tx), rowfeed.LockRequest{})
		x.WantCode(err, rowfeed.Locked)
		tx.Rollback()
		x.Commit(holder)
		if x.Family() == "postgres" {
			tx := x.Begin(sql.LevelReadCommitted)
			if _, err := f.Lock(ctx, rowfeed.InTx(tx), rowfeed.LockRequest{}); err != nil {
				x.Fatal(err)
			}
			wantIdle(x.Env, tx, "0")
		}
	})
}

// wantIdle asserts how long a transaction may sit idle, on PostgreSQL.
func wantIdle(x *suite.Env, tx *sql.Tx, want string) {
	x.Helper()
	var idle string
	if err := tx.QueryRowContext(x.Ctx, "SELECT current_setting('idle_in_transaction_session_timeout')").Scan(&idle); err != nil || idle != want {
		x.Errorf("the transaction may sit idle for %q, want %q (%v)", idle, want, err)
	}
}

// TestLockLimitsIdleTime (M44): a transaction that has a shard is bounded where the database can
// bound one, and only that one. Elsewhere the session's own bound is looked at, for who demands one.
func TestLockLimitsIdleTime(t *testing.T) {
	testdb.Quick(t)
	suite.EachULID(t, func(x *suite.Events) {
		if x.Family() != "postgres" {
			tx := x.Begin(sql.LevelReadCommitted)
			_, err := x.Feed.Lock(x.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Idle: time.Minute})
			if x.WantCode(err, rowfeed.Refused); !errors.Is(err, errors.ErrUnsupported) {
				x.Error(err)
			}
			x.Lock(tx, rowfeed.LockRequest{}) // by default what can be done is done
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
			if _, err := pool.Exec("SET idle_in_transaction_session_timeout = '" + c.own + "'"); err != nil {
				x.Fatal(err)
			}
			for _, bySQL := range []bool{false, true} {
				if bySQL && c.req.Idle != 0 {
					continue
				}
				tx := x.BeginOn(pool)
				if bySQL {
					x.In(tx, "SELECT rowfeed_lock_events(3)")
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

// TestLockFunctionWaitsAsSessionSays (M44): the functions of other languages wait as long as their session says; on
// PostgreSQL, where it may say nothing, ten seconds.
func TestLockFunctionWaitsAsSessionSays(t *testing.T) {
	t.Parallel()
	testdb.Only(t, testdb.Servers...) // SQLite has no functions
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(1, 1, 1)
		holder := x.Begin(sql.LevelReadCommitted)
		x.Lock(holder, rowfeed.LockRequest{Shards: []int{1}})
		owns := []string{"1000"}
		if x.Engine == testdb.Postgres15 {
			owns = append(owns, "0")
		}
		for _, own := range owns {
			tx := x.BeginOn(sessionOf(x.Env, own))
			was := x.WaitSetting(tx)
			if _, err := x.LockBySQL(tx, 2, "NULL"); err != nil {
				x.Fatal(err)
			}
			if now := x.WaitSetting(tx); now != was {
				x.Errorf("the session waits %s, and was to wait %s", now, was)
			}
			ctx, cancel := context.WithTimeout(x.Ctx, time.Minute)
			_, err := tx.ExecContext(ctx, x.By(map[string]string{"postgres": "SELECT rowfeed_lock_events(1)", "mysql": "CALL rowfeed_lock_events(1, NULL, @u, @h, @l)"}))
			if cancel(); x.Dialect.Classify(err) != dialect.ClassLockTimeout {
				x.Errorf("own bound %s: %v", own, err)
			}
			tx.Rollback()
		}
	})
}

// TestLockReportsTransactionLostByTimeout (M44): on servers that roll everything back when a wait has run out
// (innodb_rollback_on_timeout) the transaction is gone, and the error says so: what came
// after it would be committed statement by statement.
func TestLockReportsTransactionLostByTimeout(t *testing.T) {
	testdb.Only(t, testdb.InnoDB...)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		server := e.Dedicated(t, testdb.Setting("innodb_rollback_on_timeout=ON"))
		y := suite.OpenEnv(t, server.NewDatabase(t), nil)
		y.Migrate()
		y.Exec(y.EventsTable("events"), "CREATE UNIQUE INDEX events_feed ON events (shard, ulid)")
		x := &suite.Events{Env: y, Feed: y.Add(suite.EventsSpec())}
		x.Write(1, 1, 1)
		holder := x.Begin(sql.LevelReadCommitted)
		x.Lock(holder, rowfeed.LockRequest{Shards: []int{1}})
		tx := x.Begin(sql.LevelReadCommitted)
		_, err := x.Feed.Lock(x.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{1}, Wait: time.Second})
		if x.WantCode(err, rowfeed.Locked); !strings.Contains(err.Error(), "the transaction cannot go on") {
			x.Error(err)
		}
		tx.Rollback()
		x.Commit(holder)
	})
}
