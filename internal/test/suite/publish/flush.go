package publish

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/fixture"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// eachUnflushed runs f on a server of its own, which f may kill. Without a binary log, the server shows a commit before
// the commit is on disk. Its settings make it flush only when a session asks for it. It is Durable, because MariaDB
// maps a log in memory, which needs no flush. The texts named more have further settings.
func eachUnflushed(t *testing.T, f func(x *suite.Env, feed *rowfeed.Feed), more ...string) {
	testdb.Only(t, testdb.InnoDB...)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		options := []testdb.Option{testdb.Durable()}
		for _, name := range append(more, "publish.rare_flushes") {
			for _, setting := range fixture.Of(e).Statements(t, name) {
				options = append(options, testdb.Setting(setting))
			}
		}
		x := suite.OpenEnv(t, e.Dedicated(t, options...).NewDatabase(t), nil)
		x.Migrate()
		f(x, x.AddKV())
	})
}

// withoutFlush runs a write that others see before it is flushed. The moment between commit and flush is too short for
// a test, so the server is told not to flush.
func withoutFlush(x *suite.Env, write func()) {
	x.Helper()
	x.Exec(x.Text("publish.flush_never"))
	write()
	x.Exec(x.Text("publish.flush_at_commit"))
}

// unsafeFeed opens the feed kv with UnsafeDurability, which lets it publish while the server does not flush.
func unsafeFeed(x *suite.Env) (*suite.Env, *rowfeed.Feed) {
	x.Helper()
	unsafe := suite.OpenEnv(x.T, x.DB, &rowfeed.Config{UnsafeDurability: true})
	f, err := unsafe.RF.Feed(x.Ctx, "kv")
	if err != nil {
		x.Fatal(err)
	}
	return unsafe, f
}

// crash kills the server, starts it again, and waits until the feed's pool reaches it.
func crash(x *suite.Env, f *rowfeed.Feed) {
	x.Helper()
	x.DB.Server().Kill(x.T)
	x.Restart(x.DB.Server())
	x.DB.Reconnect()
	x.Found(f)
}

// TestUnflushedIsNotShown (G2, G7): without a binary log InnoDB shows a commit before it flushes its log. A reader that
// sees such a commit flushes the log before it returns the page, so no position is assigned again after a crash.
func TestUnflushedIsNotShown(t *testing.T) {
	testdb.Quick(t)
	eachUnflushed(t, func(x *suite.Env, f *rowfeed.Feed) {
		unsafe, publisher := unsafeFeed(x)
		k := x.Recorder(f, 0)
		k.Read()
		withoutFlush(x, func() {
			x.Exec("INSERT INTO kv VALUES (1, 'k', 0)")
			unsafe.Publish(publisher)
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
		k.Check(x.KVRows(), suite.ByID)
	})
}

// TestUnflushedHeadIsNotShown: a page without entries does not show a head either that a crash would set back.
func TestUnflushedHeadIsNotShown(t *testing.T) {
	eachUnflushed(t, func(x *suite.Env, f *rowfeed.Feed) {
		unsafe, publisher := unsafeFeed(x)
		x.Fetch(f, rowfeed.Beginning, 0)
		withoutFlush(x, func() {
			x.Exec("INSERT INTO kv VALUES (1, 'k', 0)")
			unsafe.Publish(publisher)
		})
		head := x.Fetch(f, rowfeed.Now, 1).Cursor
		crash(x, f)
		if again := x.Fetch(f, rowfeed.Now, 1).Cursor; again != head {
			x.Fatalf("the head is %q after the crash, %q was shown before it", again, head)
		}
	})
}

// TestUnflushedContentIsNotShown: a page does not show a row's content that a crash would set back.
func TestUnflushedContentIsNotShown(t *testing.T) {
	eachUnflushed(t, func(x *suite.Env, f *rowfeed.Feed) {
		x.Exec("INSERT INTO kv VALUES (1, 'k', 0)")
		x.Publish(f)
		x.Fetch(f, rowfeed.Beginning, 0) // the first description of a table makes MySQL write
		withoutFlush(x, func() { x.Exec("UPDATE kv SET v = 1") })
		// The change is not published yet, but the page shows the row as it is now.
		if page := x.Fetch(f, rowfeed.Beginning, 0); suite.Line(page.Entries[0]) != suite.KV(1, "k", 1) {
			x.Fatalf("entry %s", suite.Line(page.Entries[0]))
		}
		crash(x, f)
		if v := x.Scalar("SELECT v FROM kv"); v != 1 {
			x.Fatalf("v is %d after the crash, though readers have seen 1 and no change follows", v)
		}
	})
}

// TestUnflushedIsNotRemembered: a reader that saw a commit but could not flush it does not show the commit. If a crash
// then loses that commit, the reader does not report a database that was set back.
func TestUnflushedIsNotRemembered(t *testing.T) {
	eachUnflushed(t, func(x *suite.Env, f *rowfeed.Feed) {
		unsafe, publisher := unsafeFeed(x)
		broken := errors.New("no flush for now")
		var works atomic.Bool
		reader := x.Tapped(testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
			if strings.Contains(ev.SQL, "rowfeed_flushes") && !works.Load() {
				return broken
			}
			return nil
		}}, nil)
		// If the server has flushed by itself meanwhile, the crash loses nothing, and the test tries again.
		for id := 1; id <= 5; id++ {
			works.Store(true)
			before := x.Fetch(reader, rowfeed.Now, 1).Cursor
			works.Store(false)
			withoutFlush(x, func() {
				x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", id))
				unsafe.Publish(publisher)
			})
			if _, err := reader.Fetch(x.Ctx, rowfeed.Request{}); !errors.Is(err, broken) {
				x.Fatalf("fetched with %v", err)
			}
			works.Store(true)
			crash(x, reader)
			unsafe.Found(publisher)
			if x.Fetch(reader, rowfeed.Now, 1).Cursor == before {
				return
			}
		}
	})
}

// TestNoFlushForDurableHead: a reader does not flush a head that its process has published or has flushed before.
func TestNoFlushForDurableHead(t *testing.T) {
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

// TestFlushedPageIsThreeStatements: a page and its flush are three statements without a transaction, if the database
// allows it, once the first page has read the session's settings.
func TestFlushedPageIsThreeStatements(t *testing.T) {
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
		if b, n := begins.Load(), statements.Load(); x.Has.PagesWithoutTx && (b != 0 || n != 3) {
			x.Errorf("%d transactions, %d statements", b, n)
		}
		if n := x.Scalar(flushes) - before; n != 1 {
			x.Errorf("%d flushes", n)
		}
	})
}

// TestNoFlushWithSyncedBinaryLog: readers do not flush on a server that syncs a binary log, because it does so before
// it shows a commit.
func TestNoFlushWithSyncedBinaryLog(t *testing.T) {
	eachUnflushed(t, func(x *suite.Env, f *rowfeed.Feed) {
		x.Exec("INSERT INTO kv VALUES (1, 'k', 0)")
		x.Publish(f)
		x.Fetch(f, rowfeed.Beginning, 0)
		if n := x.Scalar(flushes); n != 0 {
			x.Errorf("%d flushes with a synced binary log", n)
		}
	}, "publish.synced_binary_log")
}

// flushes counts the flushes of readers.
const flushes = "SELECT COALESCE(SUM(flush_count), 0) FROM rowfeed_flushes"

// TestUnsafeDurabilityIsRefused: readers are refused while a setting of the server lets a crash lose commits, unless
// Config.UnsafeDurability accepts the risk.
func TestUnsafeDurabilityIsRefused(t *testing.T) {
	eachUnflushed(t, func(x *suite.Env, f *rowfeed.Feed) {
		x.Exec("INSERT INTO kv VALUES (1, 'k', 0)")
		x.Publish(f)
		x.Exec(x.Text("publish.write_at_commit"))
		_, err := f.Fetch(x.Ctx, rowfeed.Request{})
		x.WantCode(err, rowfeed.UnsafeDurability)
		_, reader := unsafeFeed(x)
		if page := x.Fetch(reader, rowfeed.Beginning, 0); len(page.Entries) != 1 {
			x.Errorf("%d entries", len(page.Entries))
		}
	})
}
