package consume

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// deliver is the type of Consumer.Deliver.
type deliver = func(context.Context, []rowfeed.Entry) ([]rowfeed.Refusal, error)

// takeHanded returns the entries that were handed over since its last call.
func takeHanded(r *suite.Receiver) []string {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	was := r.Handed
	r.Handed = nil
	return was
}

// run consumes in the background until the test ends or stop is called.
func run(r *suite.Receiver, c *rowfeed.Consumer) (stop func() error) {
	ctx, cancel := context.WithCancel(r.Ctx)
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	stop = sync.OnceValue(func() error { cancel(); return <-ended })
	r.Cleanup(func() { _ = stop() })
	return stop
}

func wantApplied(r *suite.Receiver, want ...string) {
	r.Helper()
	if got := r.Applied(); !slices.Equal(got, want) {
		r.Fatalf("applied:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// stored returns the cursor in the database.
func stored(r *suite.Receiver) string {
	r.Helper()
	var value string
	row := r.DB.Admin().QueryRowContext(r.Ctx,
		"SELECT value FROM rowfeed_cursors WHERE consumer = 'test' AND feed = 'kv' AND shard = 0")
	if err := row.Scan(&value); err != nil {
		r.Fatal(err)
	}
	return string(suite.Place(rowfeed.Cursor(value)))
}

// TestConsumerHandlesEachEntryOnceUpToHead (M16, M47): a consumer handles each entry once, page by page, up to the
// head. An empty page leaves the cursor as it is.
func TestConsumerHandlesEachEntryOnceUpToHead(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddKV(), x.Receiver()
		c := r.Consumer(f, x.RF)
		c.Options.Limit = 3
		r.Once(c) // a feed without entries
		if stored(r) != "" {
			x.Errorf("the cursor of an empty feed is %q", stored(r))
		}
		x.Fill(7)
		x.Publish(f)
		r.Once(c)
		wantApplied(r, suite.Upserts(1, 7)...)
		if got, want := takeHanded(r), suite.Upserts(1, 7); !slices.Equal(got, want) {
			x.Errorf("handed over: %q, want %q", got, want)
		}
		for range 2 {
			r.Once(c)
			if stored(r) != "7" {
				x.Errorf("after an empty page the cursor is %q", stored(r))
			}
		}
		x.Exec("DELETE FROM kv WHERE id = 3", "UPDATE kv SET v = 1 WHERE id = 2", "INSERT INTO kv VALUES (8, 'k', 0)")
		x.Publish(f)
		r.Once(c)
		wantApplied(r, append(suite.Upserts(1, 7), "8 delete 3", "9 upsert 2", "10 upsert 8")...)
		if len(takeHanded(r)) != 3 {
			x.Error("entries were handed over again")
		}
	})
}

// TestCursorMayBeInAnotherDatabaseThanFeed: a consumer keeps its cursor and effects in another database than the feed,
// even of another kind, and can continue over HTTP.
func TestCursorMayBeInAnotherDatabaseThanFeed(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Fill(5)
		x.Publish(f)
		server := httptest.NewServer(feedhttp.NewHandler(feedhttp.Of(x.RF), nil))
		x.Cleanup(server.Close)
		client := &feedhttp.Client{URL: server.URL, Feed: "kv"}
		for _, e := range []testdb.Engine{x.Engine, testdb.SQLite} {
			y := suite.NewEnv(x.T, e, nil)
			y.Migrate()
			r := y.Receiver()
			r.Once(r.Consumer(f, y.RF))
			wantApplied(r, suite.Upserts(1, 5)...)
			// The same consumer continues over HTTP: the same feed, the same cursor.
			x.Exec("DELETE FROM kv WHERE id = 1")
			x.Publish(f)
			r.Once(r.Consumer(client, y.RF))
			wantApplied(r, append(suite.Upserts(1, 5), "6 delete 1")...)
			x.Drop()
			x.Exec("DELETE FROM kv")
			f = x.Add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
			x.Fill(5)
			x.Publish(f)
		}
	})
}

// consuming runs a consumer in a child process.
func consuming(ctx context.Context, rf *rowfeed.DB) error {
	f, err := rf.Feed(ctx, "kv")
	if err != nil {
		return err
	}
	r := &suite.Receiver{}
	c := r.Consumer(f, rf)
	c.Options.Limit = 2
	return c.RunOnce(ctx)
}

func init() {
	testdb.RegisterChild("consume", func() {
		if err := suite.Crashing(consuming); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	})
}

// TestConsumeKilledAtEveryStatement (M47): a consumer's process is killed before each of its statements in turn. The
// next instance applies the rest, and nothing twice.
func TestConsumeKilledAtEveryStatement(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddKV(), x.Receiver()
		x.Fill(3)
		x.Publish(f)
		partly := 0
		for n := 1; ; n++ {
			child := testdb.CrashChild(x.T, "consume", "URL="+x.DB.URL, fmt.Sprint("N=", n))
			blocked := child.WaitMarker(x.Ctx)
			child.Kill()
			if done := len(r.Applied()); done > 0 && done < 3 {
				partly++
			}
			r.Once(r.Consumer(f, x.RF))
			wantApplied(r, suite.Upserts(1, 3)...)
			if !blocked {
				break
			}
			x.Exec("DELETE FROM applied", "DELETE FROM rowfeed_cursors")
		}
		if partly == 0 {
			x.Error("no kill fell between two pages")
		}
	})
}

// begins, stores and commits recognize the statements of a consumer's transaction.
func begins(ev testdb.TapEvent) bool { return ev.Kind == testdb.Begin }
func stores(ev testdb.TapEvent) bool {
	return ev.Kind == testdb.Exec && ev.InTx && strings.HasPrefix(ev.SQL, "UPDATE") &&
		strings.Contains(ev.SQL, "rowfeed_cursors")
}
func commits(ev testdb.TapEvent) bool { return ev.Kind == testdb.Commit }

// TestTwoInstancesApplyOnce (M47, H3): two instances under one name have fetched the same page. However their
// statements interleave, one applies it, the effects of the other are rolled back, and both continue.
func TestTwoInstancesApplyOnce(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddKV(), x.Receiver()
		x.Fill(1)
		x.Publish(f)
		r.Once(r.Consumer(f, x.RF)) // makes the cursor's row
		last := 1
		for name, at := range map[string]func(testdb.TapEvent) bool{
			"before BEGIN": begins, "before the cursor": stores, "before COMMIT": commits,
		} {
			if x.Has.OneWriter && name != "before BEGIN" {
				continue // from BEGIN on the other instance waits
			}
			x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0), (%d, 'k', 0)", last+1, last+2))
			x.Publish(f)
			last += 2
			held := testdb.Hold(at)
			slow, quick := &suite.Receiver{Env: x}, &suite.Receiver{Env: x}
			slowEnded, quickEnded := make(chan error, 1), make(chan error, 1)
			go func() {
				slowEnded <- slow.Consumer(f, x.TappedDB(testdb.Hooks{Before: held.Before}, nil)).RunOnce(x.Ctx)
			}()
			<-held.Reached
			// If the slow instance is held before COMMIT, it has locked the row: the quick instance's write waits.
			reached := make(chan struct{})
			var once sync.Once
			go func() {
				hooks := testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
					if stores(ev) {
						once.Do(func() { close(reached) })
					}
					return nil
				}}
				quickEnded <- quick.Consumer(f, x.TappedDB(hooks, nil)).RunOnce(x.Ctx)
			}()
			<-reached
			if name != "before COMMIT" {
				if err := <-quickEnded; err != nil {
					x.Fatalf("%s: the quick instance: %v", name, err)
				}
			}
			held.Release()
			if err := <-slowEnded; err != nil {
				x.Fatalf("%s: the slow instance: %v", name, err)
			}
			if name == "before COMMIT" {
				if err := <-quickEnded; err != nil {
					x.Fatalf("%s: the quick instance: %v", name, err)
				}
			}
			if len(slow.Handed) != 2 || len(quick.Handed) != 2 {
				x.Errorf("%s: handed over %q and %q: they did not race", name, slow.Handed, quick.Handed)
			}
			wantApplied(r, suite.Upserts(1, last)...)
		}
	})
}

// TestChangedCursorRefusesCommit (M22, H2, H3): if anything in the cursor's row has changed since the page was fetched,
// the write of the cursor fails, and the effects are rolled back. The same value can mean something else under another
// shard count, generation or epoch, and a paused consumer must not move.
func TestChangedCursorRefusesCommit(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		x.Exec(suite.CreateApplied)
		x.Fill(2)
		x.Publish(f)
		(&suite.Receiver{Env: x}).Once((&suite.Receiver{Env: x}).Consumer(f, x.RF))
		x.Exec("INSERT INTO kv VALUES (3, 'k', 0)")
		x.Publish(f)
		for change, again := range map[string]bool{
			"epoch = 7": true, "generation = 2": true, "aside = 1": true, "value = '1'": true,
			"shard_count = 2": false, "paused = 1": false,
		} {
			x.Exec("DELETE FROM applied", "UPDATE rowfeed_cursors SET shard_count = 1, value = '2', generation = 1, "+
				"epoch = 0, paused = 0, aside = 0")
			r := &suite.Receiver{Env: x}
			held := testdb.Hold(begins)
			ended := make(chan error, 1)
			go func() { ended <- r.Consumer(f, x.TappedDB(testdb.Hooks{Before: held.Before}, nil)).RunOnce(x.Ctx) }()
			<-held.Reached
			x.Exec("UPDATE rowfeed_cursors SET " + change)
			held.Release()
			err := <-ended
			handed, applied := len(r.Handed), len(r.Applied())
			switch {
			case change == "value = '1'": // moved back: positions 2 and 3 come
				if err != nil || applied != 2 || handed != 3 {
					x.Errorf("%s: %v, %d handed over, %d applied", change, err, handed, applied)
				}
			case again:
				if err != nil || applied != 1 || handed != 2 {
					x.Errorf("%s: %v, %d handed over, %d applied; want the page again, once", change, err, handed,
						applied)
				}
			default:
				if err == nil || applied != 0 || handed != 1 {
					x.Errorf("%s: %v, %d handed over, %d applied; want an error and no effect", change, err, handed,
						applied)
				}
			}
		}
	})
}

// TestUnknownCommitAppliesOnce (M47, H3): the answer to a COMMIT is lost, so the consumer does not know whether it
// happened. Nothing is applied twice, nothing is left out, and what was applied is not handed over again.
func TestUnknownCommitAppliesOnce(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		f, r := x.AddKV(), x.Receiver()
		c := r.Consumer(f, x.RF)
		r.Once(c)
		last := 0
		for _, happened := range []bool{true, false} {
			x.FillFrom(last+1, last+3)
			last += 3
			x.Publish(f)
			broken := false
			fail := func(ev testdb.TapEvent) bool {
				if commits(ev) && !broken {
					broken = true
					return true
				}
				return false
			}
			hooks := testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
				if !happened && fail(ev) {
					return errLost
				}
				return nil
			}, After: func(_ context.Context, ev testdb.TapEvent, err error) error {
				if happened && fail(ev) {
					return errLost
				}
				return err
			}}
			takeHanded(r)
			stop := run(r, r.Consumer(f, x.TappedDB(hooks, nil)))
			x.Eventually("the page is applied", func() bool { return len(r.Applied()) == last })
			x.Exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", last+1))
			last++
			x.Publish(f)
			x.Eventually("the consumer continues", func() bool { return len(r.Applied()) == last })
			if err := stop(); err != nil {
				x.Fatal(err)
			}
			wantApplied(r, suite.Upserts(1, last)...)
			if !broken {
				x.Error("no COMMIT was broken")
			}
			if want := map[bool]int{true: 4, false: 7}[happened]; len(takeHanded(r)) != want {
				x.Errorf("COMMIT happened %v: entries were handed over other than %d times", happened, want)
			}
		}
	})
}

// errLost is the error of a driver whose connection is lost.
var errLost = fmt.Errorf("the answer is lost: %w", driver.ErrBadConn)

// TestTransactionBeginsWithWriteLock (H20): a consumer's transaction begins with the write lock, even in a pool whose
// transactions begin without it. Otherwise a handler that reads first would be refused at its first write if another
// connection wrote in between.
func TestTransactionBeginsWithWriteLock(t *testing.T) {
	testdb.SQLite.Require(t)
	x := suite.NewEnv(t, testdb.SQLite, nil)
	x.Migrate()
	f, r := x.AddKV(), x.Receiver()
	x.Fill(1)
	x.Publish(f)
	rf, err := rowfeed.Open(x.Ctx, x.DB.OpenTapped(t, testdb.Hooks{}, "_txlock=deferred"), x.Dialect, nil)
	if err != nil {
		t.Fatal(err)
	}
	impatient := x.DB.OpenTapped(t, testdb.Hooks{}, "_pragma=busy_timeout(0)")
	c := r.Consumer(f, rf)
	attempts := 0
	c.Handle = func(ctx context.Context, tx *sql.Tx, entries []rowfeed.Entry) error {
		attempts++
		var rows int
		if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM kv").Scan(&rows); err != nil {
			return err
		}
		if _, err := impatient.ExecContext(ctx, "INSERT INTO kv VALUES (2, 'k', 0)"); err == nil {
			t.Error("another connection writes during the handler's transaction")
		}
		return r.Handle(ctx, tx, entries)
	}
	r.Once(c)
	wantApplied(r, suite.Upserts(1, 1)...)
	if attempts != 1 {
		t.Errorf("%d attempts", attempts)
	}
}
