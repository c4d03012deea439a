package publish

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// unflushed are the servers that show a commit before it is on their disk, when they
// write no binary log. The settings leave the flush to those who ask for it. (They are
// Durable, since MariaDB maps a log that is in memory: nothing is then left to flush.)
var unflushed = map[testdb.Engine][]testdb.Option{
	testdb.MariaDB: {testdb.Setting("innodb_flush_log_at_timeout=2700")},
	testdb.MySQL:   {testdb.Setting("innodb_flush_log_at_timeout=2700"), testdb.Setting("innodb_log_writer_threads=OFF")},
}

// eachUnflushed runs f on a server of its own, which it may kill.
func eachUnflushed(t *testing.T, f func(x *suite.Env, feed *rowfeed.Feed), more ...testdb.Option) {
	testdb.Only(t, testdb.InnoDB...)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		x := suite.OpenEnv(t, e.Dedicated(t, append(append(more, testdb.Durable()), unflushed[e]...)...).NewDatabase(t), nil)
		x.Migrate()
		f(x, x.AddKV())
	})
}

// between runs what writes between a commit that others see and its flush: the
// server's moment there is too short to hit, so it is told to leave the flush out.
func between(x *suite.Env, write func()) {
	x.Helper()
	x.Exec("SET GLOBAL innodb_flush_log_at_trx_commit = 0")
	write()
	x.Exec("SET GLOBAL innodb_flush_log_at_trx_commit = 1")
}

// crash kills the server and waits until the pool has found it again.
func crash(x *suite.Env, f *rowfeed.Feed) {
	x.Helper()
	x.DB.Server().Kill(x.T)
	x.Restart(x.DB.Server())
	x.DB.Reconnect()
	x.Found(f)
}

// TestUnflushedIsNotShown (G2, G7): without a binary log InnoDB shows a
// commit before it flushes its log. A reader that comes in between makes sure of what
// it shows: no position is given again after a crash.
func TestUnflushedIsNotShown(t *testing.T) {
	testdb.Quick(t)
	eachUnflushed(t, func(x *suite.Env, f *rowfeed.Feed) {
		lax := suite.OpenEnv(t, x.DB, &rowfeed.Config{UnsafeDurability: true})
		publisher, err := lax.RF.Feed(x.Ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		k := x.Keeper(f, 0)
		k.Read()
		between(x, func() {
			x.Exec("INSERT INTO kv VALUES (1, 'k', 0)")
			lax.Publish(publisher)
		})
		if got := k.Read(); len(got) != 1 || got[0] != "1 upsert 1" {
			x.Fatalf("entries %q", got)
		}
		crash(x, f)
		x.Exec("INSERT INTO kv VALUES (2, 'k', 0)")
		x.Publish(f)
		if got := k.Read(); len(got) != 1 || got[0] != "2 upsert 2" {
			x.Fatalf("entries %q after the crash; position 1 was shown before it", got)
		}
		k.Judge(x.KVRows(), suite.ByID)
	})
}

// TestUnflushedHeadIsNotShown: a cursor without any entry is a promise, too.
func TestUnflushedHeadIsNotShown(t *testing.T) {
	eachUnflushed(t, func(x *suite.Env, f *rowfeed.Feed) {
		lax := suite.OpenEnv(t, x.DB, &rowfeed.Config{UnsafeDurability: true})
		publisher, err := lax.RF.Feed(x.Ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		x.Fetch(f, rowfeed.Beginning, 0)
		between(x, func() {
			x.Exec("INSERT INTO kv VALUES (1, 'k', 0)")
			lax.Publish(publisher)
		})
		head := x.Fetch(f, rowfeed.Now, 1).Cursor
		crash(x, f)
		if again := x.Fetch(f, rowfeed.Now, 1).Cursor; again != head {
			x.Fatalf("the head is %q after the crash, %q was shown before it", again, head)
		}
	})
}

// TestUnflushedContentIsNotShown: a row that was shown is not taken back.
func TestUnflushedContentIsNotShown(t *testing.T) {
	eachUnflushed(t, func(x *suite.Env, f *rowfeed.Feed) {
		x.Exec("INSERT INTO kv VALUES (1, 'k', 0)")
		x.Publish(f)
		x.Fetch(f, rowfeed.Beginning, 0) // describing a table for the first time makes MySQL write
		between(x, func() { x.Exec("UPDATE kv SET v = 1") })
		// The row is newer than its position: its change has not been published.
		if page := x.Fetch(f, rowfeed.Beginning, 0); suite.Line(page.Entries[0]) != suite.KV(1, "k", 1) {
			x.Fatalf("entry %s", suite.Line(page.Entries[0]))
		}
		crash(x, f)
		if v := x.Scalar("SELECT v FROM kv"); v != 1 {
			x.Fatalf("v is %d after the crash; readers have seen 1, and no change says otherwise", v)
		}
	})
}

// TestUnflushedIsNotRemembered: what a reader saw but could not flush, and so did not
// show, is no sign of a database that was set back when a crash has taken it away.
func TestUnflushedIsNotRemembered(t *testing.T) {
	eachUnflushed(t, func(x *suite.Env, f *rowfeed.Feed) {
		lax := suite.OpenEnv(t, x.DB, &rowfeed.Config{UnsafeDurability: true})
		publisher, err := lax.RF.Feed(x.Ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		broken := errors.New("no flush for now")
		var works atomic.Bool
		reader := x.Tapped(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if strings.Contains(ev.SQL, "rowfeed_flushes") && !works.Load() {
				return broken
			}
			return nil
		}}, nil)
		// The server may flush by itself meanwhile: then nothing is taken back, and it is
		// tried again.
		for id := 1; id <= 5; id++ {
			works.Store(true)
			before := x.Fetch(reader, rowfeed.Now, 1).Cursor
			works.Store(false)
			between(x, func() {
				x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", id))
				lax.Publish(publisher)
			})
			if _, err := reader.Fetch(x.Ctx, rowfeed.Request{}); !errors.Is(err, broken) {
				x.Fatalf("fetched with %v", err)
			}
			works.Store(true)
			crash(x, reader)
			lax.Found(publisher)
			if x.Fetch(reader, rowfeed.Now, 1).Cursor == before {
				return
			}
		}
	})
}

// TestFlushesAreSpared: nothing is written for what is known to be on the disk.
func TestFlushesAreSpared(t *testing.T) {
	eachUnflushed(t, func(x *suite.Env, f *rowfeed.Feed) {
		x.Exec("INSERT INTO kv VALUES (1, 'k', 0)")
		x.Publish(f)
		head := x.Fetch(f, rowfeed.Now, 1).Cursor
		x.Fetch(f, head, 1)
		if n := x.Scalar(flushes); n != 0 {
			x.Errorf("%d flushes for a head that this process has published", n)
		}
		other := suite.OpenEnv(t, x.DB, nil)
		reader, err := other.RF.Feed(x.Ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		for range 3 {
			x.Fetch(reader, head, 1)
		}
		if n := x.Scalar(flushes); n != 1 {
			x.Errorf("%d flushes for one head, want 1", n)
		}
	})
}

// TestFlushOfAPage: on MariaDB a page and its flush are three statements without a transaction, once the
// first page has told what sessions are like.
func TestFlushOfAPage(t *testing.T) {
	testdb.Quick(t)
	eachUnflushed(t, func(x *suite.Env, f *rowfeed.Feed) {
		x.Exec("INSERT INTO kv VALUES (1, 'k', 0)")
		x.Publish(f)
		var begins, statements atomic.Int64
		reader := x.Tapped(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if ev.Kind == testdb.Begin {
				begins.Add(1)
			}
			statements.Add(1)
			return nil
		}}, nil)
		x.Fetch(reader, rowfeed.Beginning, 0)
		before := x.Scalar(flushes)
		begins.Store(0)
		statements.Store(0)
		x.Fetch(reader, rowfeed.Beginning, 0)
		if b, n := begins.Load(), statements.Load(); x.Engine == testdb.MariaDB && (b != 0 || n != 3) {
			x.Errorf("%d transactions, %d statements", b, n)
		}
		if n := x.Scalar(flushes) - before; n != 1 {
			x.Errorf("%d flushes", n)
		}
	})
}

// TestBinaryLogSparesFlushes: a server that syncs a binary log does so before it shows
// a commit.
func TestBinaryLogSparesFlushes(t *testing.T) {
	eachUnflushed(t, func(x *suite.Env, f *rowfeed.Feed) {
		x.Exec("INSERT INTO kv VALUES (1, 'k', 0)")
		x.Publish(f)
		x.Fetch(f, rowfeed.Beginning, 0)
		if n := x.Scalar(flushes); n != 0 {
			x.Errorf("%d flushes beside a synced binary log", n)
		}
	}, testdb.Setting("log_bin=binlog"), testdb.Setting("sync_binlog=1"), testdb.Setting("server_id=1"))
}

// flushes counts what readers have written.
const flushes = "SELECT COALESCE(SUM(flush_count), 0) FROM rowfeed_flushes"

// TestForgetfulServerIsRefused: under a setting that lets commits be lost nothing new
// is shown, unless the risk was accepted.
func TestForgetfulServerIsRefused(t *testing.T) {
	eachUnflushed(t, func(x *suite.Env, f *rowfeed.Feed) {
		x.Exec("INSERT INTO kv VALUES (1, 'k', 0)")
		x.Publish(f)
		x.Exec("SET GLOBAL innodb_flush_log_at_trx_commit = 2")
		_, err := f.Fetch(x.Ctx, rowfeed.Request{})
		x.WantCode(err, rowfeed.UnsafeDurability)
		lax := suite.OpenEnv(t, x.DB, &rowfeed.Config{UnsafeDurability: true})
		reader, err := lax.RF.Feed(x.Ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		if page := x.Fetch(reader, rowfeed.Beginning, 0); len(page.Entries) != 1 {
			x.Errorf("%d entries", len(page.Entries))
		}
	})
}
