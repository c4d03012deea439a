package ulid

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestShownRowsSurviveServerCrash (G2, M8): what a page has shown is there after the server was
// killed under a writer, also where commits are asynchronous by default: the next
// writer of the shard is above it, and who goes on from the page misses nothing.
func TestShownRowsSurviveServerCrash(t *testing.T) {
	testdb.Quick(t)
	lazy := []testdb.Option{testdb.Setting("synchronous_commit=off"), testdb.Setting("wal_writer_delay=10s")}
	for engine, settings := range map[*testdb.Engine][]testdb.Option{&testdb.Postgres15: lazy, &testdb.Postgres18: lazy, &testdb.MariaDB: nil, &testdb.MySQL: nil} {
		t.Run(engine.Name, func(t *testing.T) {
			engine.Require(t)
			server := engine.Dedicated(t, append(settings, testdb.Durable())...)
			env := suite.OpenEnv(t, server.NewDatabase(t), nil)
			env.Migrate()
			env.Exec(env.EventsTable("events"), "CREATE UNIQUE INDEX events_feed ON events (shard, ulid)")
			x := &suite.Events{Env: env, Feed: env.Add(suite.EventsSpec())}
			id, cursor := 0, rowfeed.Beginning
			for way, write := range ways(x) {
				for range 2 {
					id += 2
					tx := x.Begin(sql.LevelReadCommitted)
					if err := write(tx, id, 1); err != nil {
						x.Fatal(way, err)
					}
					x.Commit(tx)
					page := x.Page(x.Feed, 1, cursor, 10)
					x.WantIDs(page, false, id)
					open := x.Begin(sql.LevelReadCommitted) // another writer, in the middle
					if err := write(open, id+1, 1); err != nil {
						x.Fatal(way, err)
					}
					server.Kill(t)
					_ = open.Rollback() // its connection is gone
					x.Restart(server)
					x.Eventually("the pool finds the server again", func() bool {
						_, err := x.Feed.Fetch(x.Ctx, rowfeed.Request{After: rowfeed.Now, Shards: rowfeed.One(1)})
						return !suite.IsCode(err, rowfeed.Unavailable)
					})
					if again := x.Page(x.Feed, 1, cursor, 10); suite.Lines(again) != suite.Lines(page) {
						x.Fatalf("%s: a reader has seen\n%s\nafter the server was killed it is\n%s", way, suite.Lines(page), suite.Lines(again))
					}
					cursor = page.Cursor
				}
			}
			x.WantSound(x.Feed)
		})
	}
}

// TestLockKeepsSessionCommitSetting (M8): a writer's session commits as it did before, but for the transactions
// that take ULIDs.
func TestLockKeepsSessionCommitSetting(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...) // elsewhere nothing is set
	suite.EachULID(t, func(x *suite.Events) {
		conn, err := x.DB.Admin().Conn(x.Ctx)
		if err != nil {
			x.Fatal(err)
		}
		defer conn.Close()
		id := 0
		for given, want := range map[string]string{"off": "on", "local": "on", "remote_apply": "remote_apply"} {
			for way, write := range ways(x) {
				if _, err := conn.ExecContext(x.Ctx, "SET synchronous_commit = "+given); err != nil {
					x.Fatal(err)
				}
				tx, err := conn.BeginTx(x.Ctx, nil)
				if err != nil {
					x.Fatal(err)
				}
				id++
				if err := write(tx, id, 1); err != nil {
					x.Fatal(err)
				}
				var within, after string
				if err := tx.QueryRowContext(x.Ctx, "SHOW synchronous_commit").Scan(&within); err != nil {
					x.Fatal(err)
				}
				x.Commit(tx)
				if err := conn.QueryRowContext(x.Ctx, "SHOW synchronous_commit").Scan(&after); err != nil {
					x.Fatal(err)
				}
				if within != want || after != given {
					x.Errorf("%s: %s is %s behind the lock and %s after the commit", way, given, within, after)
				}
			}
		}
	})
}

// TestLockRefusesUnsafeDurability (M8): under a setting that lets the writer's commit be lost, and that no
// transaction can raise, ULIDs are refused, unless the risk was accepted.
func TestLockRefusesUnsafeDurability(t *testing.T) {
	cases := []struct {
		engine testdb.Engine
		server []testdb.Option
		pool   string // of the connection's URL
		before string // each transaction
		plain  bool   // refused by the functions, too
	}{
		{testdb.SQLite, nil, "_pragma=synchronous(OFF)", "", false},
		{testdb.SQLite, nil, "_pragma=synchronous(NORMAL)", "", false},
		{testdb.Postgres15, []testdb.Option{testdb.Setting("fsync=off")}, "", "", false},
		{testdb.Postgres18, []testdb.Option{testdb.Setting("full_page_writes=off")}, "", "", false},
		{testdb.MariaDB, nil, "", "SET GLOBAL innodb_flush_log_at_trx_commit = 2", false},
		{testdb.MySQL, nil, "", "SET GLOBAL innodb_flush_log_at_trx_commit = 0", false},
		{testdb.MariaDB, []testdb.Option{testdb.Setting("log_bin=binlog"), testdb.Setting("sync_binlog=1"), testdb.Setting("server_id=1")}, "", "SET sql_log_bin = 0", true},
	}
	for _, c := range cases {
		t.Run(fmt.Sprint(c.engine.Name, c.pool, c.before), func(t *testing.T) {
			c.engine.Require(t)
			var db *testdb.Database
			if c.engine.Family == "sqlite" {
				db = c.engine.New(t)
			} else {
				db = c.engine.Dedicated(t, c.server...).NewDatabase(t)
			}
			env := suite.OpenEnv(t, db, nil)
			env.Migrate()
			env.Exec(env.EventsTable("events"), "CREATE UNIQUE INDEX events_feed ON events (shard, ulid)")
			x := &suite.Events{Env: env, Feed: env.Add(suite.EventsSpec())}
			var options []string
			if c.pool != "" {
				options = append(options, c.pool)
			}
			pool := db.OpenTapped(t, testdb.Hooks{}, options...)
			conn, err := pool.Conn(x.Ctx)
			if err != nil {
				x.Fatal(err)
			}
			defer conn.Close()
			if c.before != "" {
				if _, err := conn.ExecContext(x.Ctx, c.before); err != nil {
					x.Fatal(err)
				}
			}
			for _, lax := range []bool{false, true} {
				rf, err := rowfeed.Open(x.Ctx, pool, x.Dialect, &rowfeed.Config{UnsafeDurability: lax})
				if err != nil {
					x.Fatal(err)
				}
				if x.Feed, err = rf.Feed(x.Ctx, "events"); err != nil {
					x.Fatal(err)
				}
				tx, err := conn.BeginTx(x.Ctx, nil)
				if err != nil {
					x.Fatal(err)
				}
				_, err = x.Feed.Lock(x.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Hint: time.UnixMilli(1)})
				if lax && err != nil {
					x.Error(err)
				} else if !lax {
					x.WantCode(err, rowfeed.UnsafeDurability)
				}
				if c.plain {
					_, err := tx.ExecContext(x.Ctx, "CALL rowfeed_lock_events(0, NULL, @ulid, @high, @low)")
					if err == nil || !strings.Contains(err.Error(), "sql_log_bin") {
						x.Errorf("by SQL: %v", err)
					}
				}
				if err := tx.Rollback(); err != nil {
					x.Fatal(err)
				}
			}
		})
	}
}
