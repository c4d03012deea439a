package conformance

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestLockSurvivesTheServer (G2, M8): what a page has shown is there after the server was
// killed under a writer, also where commits are asynchronous by default: the next
// writer of the shard is above it, and who goes on from the page misses nothing.
func TestLockSurvivesTheServer(t *testing.T) {
	testdb.Quick(t)
	lazy := []testdb.Option{testdb.Setting("synchronous_commit=off"), testdb.Setting("wal_writer_delay=10s")}
	for engine, settings := range map[*testdb.Engine][]testdb.Option{&testdb.Postgres15: lazy, &testdb.Postgres18: lazy, &testdb.MariaDB: nil, &testdb.MySQL: nil} {
		t.Run(engine.Name, func(t *testing.T) {
			engine.Require(t)
			server := engine.Dedicated(t, append(settings, testdb.Durable())...)
			env := openEnv(t, server.NewDatabase(t), nil)
			env.migrate()
			env.exec(env.eventsTable("events"), "CREATE UNIQUE INDEX events_feed ON events (shard, ulid)")
			x := &events{env, env.add(eventsSpec())}
			id, cursor := 0, rowfeed.Beginning
			for way, write := range x.ways() {
				for range 2 {
					id += 2
					tx := x.begin(sql.LevelReadCommitted)
					if err := write(tx, id, 1); err != nil {
						x.Fatal(way, err)
					}
					x.commit(tx)
					page := x.page(x.feed, 1, cursor, 10)
					x.wantIDs(page, false, id)
					open := x.begin(sql.LevelReadCommitted) // another writer, in the middle
					if err := write(open, id+1, 1); err != nil {
						x.Fatal(way, err)
					}
					server.Kill(t)
					_ = open.Rollback() // its connection is gone
					x.restart(server)
					x.eventually("the pool finds the server again", func() bool {
						_, err := x.feed.Fetch(x.ctx, rowfeed.Request{After: rowfeed.Now, Shards: rowfeed.One(1)})
						return !isCode(err, rowfeed.Unavailable)
					})
					if again := x.page(x.feed, 1, cursor, 10); lines(again) != lines(page) {
						x.Fatalf("%s: a reader has seen\n%s\nafter the server was killed it is\n%s", way, lines(page), lines(again))
					}
					cursor = page.Cursor
				}
			}
			x.wantSound(x.feed)
		})
	}
}

// TestLockKeepsSettings (M8): a writer's session commits as it did before, but for the transactions
// that take ULIDs.
func TestLockKeepsSettings(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...) // elsewhere nothing is set
	eachULID(t, func(x *events) {
		conn, err := x.db.Admin().Conn(x.ctx)
		if err != nil {
			x.Fatal(err)
		}
		defer conn.Close()
		id := 0
		for given, want := range map[string]string{"off": "on", "local": "on", "remote_apply": "remote_apply"} {
			for way, write := range x.ways() {
				if _, err := conn.ExecContext(x.ctx, "SET synchronous_commit = "+given); err != nil {
					x.Fatal(err)
				}
				tx, err := conn.BeginTx(x.ctx, nil)
				if err != nil {
					x.Fatal(err)
				}
				id++
				if err := write(tx, id, 1); err != nil {
					x.Fatal(err)
				}
				var within, after string
				if err := tx.QueryRowContext(x.ctx, "SHOW synchronous_commit").Scan(&within); err != nil {
					x.Fatal(err)
				}
				x.commit(tx)
				if err := conn.QueryRowContext(x.ctx, "SHOW synchronous_commit").Scan(&after); err != nil {
					x.Fatal(err)
				}
				if within != want || after != given {
					x.Errorf("%s: %s is %s behind the lock and %s after the commit", way, given, within, after)
				}
			}
		}
	})
}

// TestLockForgetful (M8): under a setting that lets the writer's commit be lost, and that no
// transaction can raise, ULIDs are refused, unless the risk was accepted.
func TestLockForgetful(t *testing.T) {
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
			env := openEnv(t, db, nil)
			env.migrate()
			env.exec(env.eventsTable("events"), "CREATE UNIQUE INDEX events_feed ON events (shard, ulid)")
			x := &events{env, env.add(eventsSpec())}
			var options []string
			if c.pool != "" {
				options = append(options, c.pool)
			}
			pool := db.OpenTapped(t, testdb.Hooks{}, options...)
			conn, err := pool.Conn(x.ctx)
			if err != nil {
				x.Fatal(err)
			}
			defer conn.Close()
			if c.before != "" {
				if _, err := conn.ExecContext(x.ctx, c.before); err != nil {
					x.Fatal(err)
				}
			}
			for _, lax := range []bool{false, true} {
				rf, err := rowfeed.Open(x.ctx, pool, x.dialect, &rowfeed.Config{UnsafeDurability: lax})
				if err != nil {
					x.Fatal(err)
				}
				if x.feed, err = rf.Feed(x.ctx, "events"); err != nil {
					x.Fatal(err)
				}
				tx, err := conn.BeginTx(x.ctx, nil)
				if err != nil {
					x.Fatal(err)
				}
				_, err = x.feed.Lock(x.ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Hint: time.UnixMilli(1)})
				if lax && err != nil {
					x.Error(err)
				} else if !lax {
					x.wantCode(err, rowfeed.UnsafeDurability)
				}
				if c.plain {
					_, err := tx.ExecContext(x.ctx, "CALL rowfeed_lock_events(0, NULL, @ulid, @high, @low)")
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
