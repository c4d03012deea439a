package ulid

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/fixture"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestShownRowsSurviveServerCrash (G2, M8): the server is killed while a writer has an open transaction. On PostgreSQL,
// commits are asynchronous by default. Rows that a page has shown are still there, and the next writer of the shard
// gets ULIDs above them.
func TestShownRowsSurviveServerCrash(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.Servers...) // SQLite has no server
	testdb.Each(t, func(t *testing.T, engine testdb.Engine) {
		options := []testdb.Option{testdb.Durable()}
		for _, setting := range strings.Fields(fixture.Of(engine).Text(t, "ulid.lazy_server")) {
			options = append(options, testdb.Setting(setting))
		}
		server := engine.Dedicated(t, options...)
		x := blockingFeed(t, server.NewDatabase(t))
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
				open := x.Begin(sql.LevelReadCommitted) // of another writer
				if err := write(open, id+1, 1); err != nil {
					x.Fatal(way, err)
				}
				server.Kill(t)
				_ = open.Rollback() // fails, because its connection is closed
				x.Restart(server)
				x.Eventually("the pool finds the server again", func() bool {
					_, err := x.Feed.Fetch(x.Ctx, rowfeed.Request{After: rowfeed.Now, Shards: rowfeed.One(1)})
					return !suite.IsCode(err, rowfeed.Unavailable)
				})
				if again := x.Page(x.Feed, 1, cursor, 10); suite.Lines(again) != suite.Lines(page) {
					x.Fatalf("%s: before the server was killed, the page was\n%s\nafterwards it is\n%s",
						way, suite.Lines(page), suite.Lines(again))
				}
				cursor = page.Cursor
			}
		}
		x.WantSound(x.Feed)
	})
}

// blockingFeed makes the table events and its feed in a database.
func blockingFeed(t *testing.T, db *testdb.Database) *suite.Events {
	t.Helper()
	x := suite.OpenEnv(t, db, nil)
	x.Migrate()
	x.MakeEvents()
	return &suite.Events{Env: x, Feed: x.Add(suite.EventsSpec())}
}

// TestLockKeepsSessionCommitSetting (M8): a session commits asynchronously. Transactions that lock a shard commit
// durably, and later transactions commit as before.
func TestLockKeepsSessionCommitSetting(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...) // on others, Lock changes no such setting
	suite.EachULID(t, func(x *suite.Events) {
		conn := connection(x.Env)
		id := 0
		for setting := range strings.Lines(x.Text("ulid.commit_settings")) {
			given, want, _ := strings.Cut(strings.TrimSpace(setting), " ")
			for way, write := range ways(x) {
				if _, err := conn.ExecContext(x.Ctx, x.Text("ulid.set_commit_setting", given)); err != nil {
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
				if err := tx.QueryRowContext(x.Ctx, x.Text("ulid.commit_setting")).Scan(&within); err != nil {
					x.Fatal(err)
				}
				x.Commit(tx)
				if err := conn.QueryRowContext(x.Ctx, x.Text("ulid.commit_setting")).Scan(&after); err != nil {
					x.Fatal(err)
				}
				if within != want || after != given {
					x.Errorf("%s: the setting was %s, after the lock %s, after the commit %s",
						way, given, within, after)
				}
			}
		}
	})
}

// TestLockRefusesUnsafeDurability (M8): a setting lets a commit be lost, and no transaction can change that. Lock
// fails, unless Config.UnsafeDurability accepts the risk.
func TestLockRefusesUnsafeDurability(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine testdb.Engine) {
		for _, text := range fixture.Of(engine).Statements(t, "ulid.unsafe_durability") {
			t.Run(text, func(t *testing.T) { wantUnsafe(t, engine, parseUnsafe(t, text)) })
		}
	})
}

// unsafe is a way to make commits unsafe.
type unsafe struct {
	server            []testdb.Option // of the server
	connection        []string        // of a connection's URL
	statement         string          // of a session
	refusedByFunction string          // words of the error with which the database's function fails, too
}

func parseUnsafe(t *testing.T, text string) (u unsafe) {
	t.Helper()
	for line := range strings.Lines(text) {
		kind, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch kind {
		case "setting":
			u.server = append(u.server, testdb.Setting(value))
		case "connection":
			u.connection = append(u.connection, value)
		case "statement":
			u.statement = value
		case "refused_by_function":
			u.refusedByFunction = value
		default:
			t.Fatalf("unknown kind of line: %s", line)
		}
	}
	return u
}

func wantUnsafe(t *testing.T, engine testdb.Engine, u unsafe) {
	t.Helper()
	var db *testdb.Database
	if engine.HasServer() {
		db = engine.Dedicated(t, u.server...).NewDatabase(t)
	} else {
		db = engine.New(t)
	}
	x := blockingFeed(t, db)
	pool := db.OpenTapped(t, testdb.Hooks{}, u.connection...)
	conn, err := pool.Conn(x.Ctx)
	if err != nil {
		x.Fatal(err)
	}
	defer conn.Close()
	if u.statement != "" {
		if _, err := conn.ExecContext(x.Ctx, u.statement); err != nil {
			x.Fatal(err)
		}
	}
	for _, accepted := range []bool{false, true} {
		rf, err := rowfeed.Open(x.Ctx, pool, x.Dialect, &rowfeed.Config{UnsafeDurability: accepted})
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
		if accepted && err != nil {
			x.Error(err)
		} else if !accepted {
			x.WantCode(err, rowfeed.UnsafeDurability)
		}
		if u.refusedByFunction != "" {
			_, err := tx.ExecContext(x.Ctx, x.Text("ulid.lock", 0))
			if err == nil || !strings.Contains(err.Error(), u.refusedByFunction) {
				x.Errorf("by SQL: error %v, want %q in it", err, u.refusedByFunction)
			}
		}
		if err := tx.Rollback(); err != nil {
			x.Fatal(err)
		}
	}
}
