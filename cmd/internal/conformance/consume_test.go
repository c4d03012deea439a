package conformance

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
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// receiver is what a consumer's handler does in these tests: a row in the table
// applied for every entry, in the consumer's transaction. Whatever is done twice
// stands there twice.
type receiver struct {
	*env
	mu     sync.Mutex
	handed []string // "3 upsert 7" for every entry, in every attempt
	// fail, when set, decides about an entry after its effect.
	fail func(ctx context.Context, tx *sql.Tx, e rowfeed.Entry) error
}

const createApplied = "CREATE TABLE applied (n INTEGER, generation BIGINT, position BIGINT, op VARCHAR(10), id BIGINT, v BIGINT)"

func (x *env) receiver() *receiver {
	x.Helper()
	x.exec(createApplied)
	return &receiver{env: x}
}

// handle is the handler. It runs in child processes too, without an env.
func (r *receiver) handle(ctx context.Context, tx *sql.Tx, entries []rowfeed.Entry) error {
	for i, e := range entries {
		id, _ := e.Key.Get("id")
		v, ok := e.Row.Get("v")
		if !ok || v == nil {
			v = -1
		}
		r.mu.Lock()
		r.handed = append(r.handed, fmt.Sprintf("%s %s %v", e.Position, e.Op, id))
		r.mu.Unlock()
		_, err := tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO applied VALUES (%d, %d, %s, '%s', %v, %v)", i, e.Generation, e.Position, e.Op, id, v))
		if err == nil && r.fail != nil {
			err = r.fail(ctx, tx, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// takeHanded answers what was handed over since it was asked last.
func (r *receiver) takeHanded() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.handed
	r.handed = nil
	return was
}

// consumer reads the feed into the receiver, with its cursor in rf.
func (r *receiver) consumer(source rowfeed.Source, rf *rowfeed.DB) *rowfeed.Consumer {
	return &rowfeed.Consumer{Name: "test", Source: source, DB: rf, Handle: r.handle, Wait: 50 * time.Millisecond,
		Retry: rowfeed.Retry{MaxAttempts: 2, Backoff: time.Millisecond, MaxBackoff: 5 * time.Millisecond}}
}

// once consumes to the head.
func (r *receiver) once(c *rowfeed.Consumer) {
	r.Helper()
	if err := c.RunOnce(r.ctx); err != nil {
		r.Fatal(err)
	}
}

// run consumes in the background until the test, or the answered function, ends it.
func (r *receiver) run(c *rowfeed.Consumer) (stop func() error) {
	ctx, cancel := context.WithCancel(r.ctx)
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	stop = sync.OnceValue(func() error { cancel(); return <-ended })
	r.Cleanup(func() { _ = stop() })
	return stop
}

// applied are the effects that were committed, in the order of their positions.
func (r *receiver) applied() (lines []string) {
	r.Helper()
	rows, err := r.db.Admin().QueryContext(r.ctx, "SELECT position, op, id FROM applied ORDER BY generation, position")
	if err != nil {
		r.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var position, id int64
		var op string
		if err := rows.Scan(&position, &op, &id); err != nil {
			r.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%d %s %d", position, op, id))
	}
	if err := rows.Err(); err != nil {
		r.Fatal(err)
	}
	return lines
}

func (r *receiver) wantApplied(want ...string) {
	r.Helper()
	if got := r.applied(); !slices.Equal(got, want) {
		r.Fatalf("applied:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// upserts are the effects of rows from to to, at positions from to to.
func upserts(from, to int) (lines []string) {
	for id := from; id <= to; id++ {
		lines = append(lines, fmt.Sprintf("%d upsert %d", id, id))
	}
	return lines
}

// stored is the cursor in the database.
func (r *receiver) stored() string {
	r.Helper()
	var value string
	if err := r.db.Admin().QueryRowContext(r.ctx, "SELECT value FROM rowfeed_cursors WHERE consumer = 'test' AND feed = 'kv' AND shard = 0").Scan(&value); err != nil {
		r.Fatal(err)
	}
	return value
}

// tappedDB is rowfeed on a pool of its own whose statements the test sees.
func (x *env) tappedDB(h testdb.Hooks, cfg *rowfeed.Config) *rowfeed.DB {
	x.Helper()
	rf, err := rowfeed.Open(x.ctx, x.db.OpenTapped(x.T, h), x.dialect, cfg)
	if err != nil {
		x.Fatal(err)
	}
	return rf
}

// TestConsume (M16, M47): from the beginning to the head and on, page by page; an
// empty page leaves the cursor alone; "" is not stored again once something was
// handled.
func TestConsume(t *testing.T) {
	testdb.Quick(t)
	each(t, func(x *env) {
		f, r := x.addKV(), x.receiver()
		c := r.consumer(f, x.rf)
		c.Limit = 3
		r.once(c) // a feed without entries
		if r.stored() != "" {
			x.Errorf("the cursor of an empty feed is %q", r.stored())
		}
		x.fill(7)
		x.publish(f)
		r.once(c)
		r.wantApplied(upserts(1, 7)...)
		if got, want := r.takeHanded(), upserts(1, 7); !slices.Equal(got, want) {
			x.Errorf("handed over: %q, want %q", got, want)
		}
		for range 2 {
			r.once(c)
			if r.stored() != "7" {
				x.Errorf("an empty page made %q of the cursor", r.stored())
			}
		}
		x.exec("DELETE FROM kv WHERE id = 3", "UPDATE kv SET v = 1 WHERE id = 2", "INSERT INTO kv VALUES (8, 'k', 0)")
		x.publish(f)
		r.once(c)
		r.wantApplied(append(upserts(1, 7), "8 delete 3", "9 upsert 2", "10 upsert 8")...)
		if len(r.takeHanded()) != 3 {
			x.Error("entries were handed over again")
		}
	})
}

// TestConsumeElsewhere: the feed is in one database, or behind HTTP, cursor and
// effects are in another, of another kind too.
func TestConsumeElsewhere(t *testing.T) {
	each(t, func(x *env) {
		f := x.addKV()
		x.fill(5)
		x.publish(f)
		server := httptest.NewServer(feedhttp.NewHandler(feedhttp.Of(x.rf), nil))
		x.Cleanup(server.Close)
		client := &feedhttp.Client{URL: server.URL, Feed: "kv"}
		for _, e := range []testdb.Engine{x.engine, testdb.SQLite} {
			y := newEnv(x.T, e, nil)
			y.migrate()
			r := y.receiver()
			r.once(r.consumer(f, y.rf))
			r.wantApplied(upserts(1, 5)...)
			// The same consumer goes on over HTTP: the same feed, the same cursor.
			x.exec("DELETE FROM kv WHERE id = 1")
			x.publish(f)
			r.once(r.consumer(client, y.rf))
			r.wantApplied(append(upserts(1, 5), "6 delete 1")...)
			x.drop()
			x.exec("DELETE FROM kv")
			f = x.add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
			x.fill(5)
			x.publish(f)
		}
	})
}

// consuming is a consumer in a child process, for the crash tests.
func consuming(ctx context.Context, rf *rowfeed.DB) error {
	f, err := rf.Feed(ctx, "kv")
	if err != nil {
		return err
	}
	r := &receiver{}
	c := r.consumer(f, rf)
	c.Limit = 2
	return c.RunOnce(ctx)
}

func init() {
	testdb.RegisterChild("consume", func() {
		if err := crashing(consuming); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	})
}

// TestConsumeKilledAtEveryStatement (M47): a consumer's process is killed before each
// of its statements in turn; whoever goes on applies the rest, and nothing twice.
func TestConsumeKilledAtEveryStatement(t *testing.T) {
	each(t, func(x *env) {
		f, r := x.addKV(), x.receiver()
		x.fill(3)
		x.publish(f)
		partly := 0
		for n := 1; ; n++ {
			child := testdb.CrashChild(x.T, "consume", "URL="+x.db.URL, fmt.Sprint("N=", n))
			blocked := child.WaitMarker(x.ctx)
			child.Kill()
			if done := len(r.applied()); done > 0 && done < 3 {
				partly++
			}
			r.once(r.consumer(f, x.rf))
			r.wantApplied(upserts(1, 3)...)
			if !blocked {
				break
			}
			x.exec("DELETE FROM applied", "DELETE FROM rowfeed_cursors")
		}
		if partly == 0 {
			x.Error("no kill fell between two pages")
		}
	})
}

// begins, stores and commits tell the statements of a consumer's transaction.
func begins(ev testdb.TapEvent) bool { return ev.Kind == testdb.Begin }
func stores(ev testdb.TapEvent) bool {
	return ev.Kind == testdb.Exec && ev.InTx && strings.HasPrefix(ev.SQL, "UPDATE") && strings.Contains(ev.SQL, "rowfeed_cursors")
}
func commits(ev testdb.TapEvent) bool { return ev.Kind == testdb.Commit }

// TestConsumeTwoInstances (M47, H3): two instances under one name have fetched
// the same page. However their statements fall, one applies it and the other's
// effects are rolled back; both go on.
func TestConsumeTwoInstances(t *testing.T) {
	testdb.Quick(t)
	each(t, func(x *env) {
		f, r := x.addKV(), x.receiver()
		x.fill(1)
		x.publish(f)
		r.once(r.consumer(f, x.rf)) // makes the cursor's row
		last := 1
		for name, at := range map[string]func(testdb.TapEvent) bool{"before BEGIN": begins, "before the cursor": stores, "before COMMIT": commits} {
			if x.family() == "sqlite" && name != "before BEGIN" {
				continue // one writer at a time: from BEGIN on the other one waits
			}
			x.exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0), (%d, 'k', 0)", last+1, last+2))
			x.publish(f)
			last += 2
			held := testdb.Hold(at)
			slow, quick := &receiver{env: x}, &receiver{env: x}
			slowEnded, quickEnded := make(chan error, 1), make(chan error, 1)
			go func() {
				slowEnded <- slow.consumer(f, x.tappedDB(testdb.Hooks{Before: held.Before}, nil)).RunOnce(x.ctx)
			}()
			<-held.Reached
			// Held before COMMIT, the slow one has the row: the quick one's write waits for it.
			reached := make(chan struct{})
			var once sync.Once
			go func() {
				hooks := testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
					if stores(ev) {
						once.Do(func() { close(reached) })
					}
					return nil
				}}
				quickEnded <- quick.consumer(f, x.tappedDB(hooks, nil)).RunOnce(x.ctx)
			}()
			<-reached
			if name != "before COMMIT" {
				if err := <-quickEnded; err != nil {
					x.Fatalf("%s: the quick one: %v", name, err)
				}
			}
			held.Release()
			if err := <-slowEnded; err != nil {
				x.Fatalf("%s: the slow one: %v", name, err)
			}
			if name == "before COMMIT" {
				if err := <-quickEnded; err != nil {
					x.Fatalf("%s: the quick one: %v", name, err)
				}
			}
			if len(slow.handed) != 2 || len(quick.handed) != 2 {
				x.Errorf("%s: handed over %q and %q: they did not race", name, slow.handed, quick.handed)
			}
			r.wantApplied(upserts(1, last)...)
		}
	})
}

// TestConsumeRowTaken (M22, H2, H3): whatever else has changed in the cursor's
// row since the page was fetched makes the write fail, and with it the effects: the
// same value means something else under another shard_count, generation or epoch, and
// a paused consumer stands still.
func TestConsumeRowTaken(t *testing.T) {
	each(t, func(x *env) {
		f := x.addKV()
		x.exec(createApplied)
		x.fill(2)
		x.publish(f)
		(&receiver{env: x}).once((&receiver{env: x}).consumer(f, x.rf))
		x.exec("INSERT INTO kv VALUES (3, 'k', 0)")
		x.publish(f)
		for change, again := range map[string]bool{
			"epoch = 7": true, "generation = 2": true, "aside = 1": true, "value = '1'": true,
			"shard_count = 2": false, "paused = 1": false,
		} {
			x.exec("DELETE FROM applied", "UPDATE rowfeed_cursors SET shard_count = 1, value = '2', generation = 1, epoch = 0, paused = 0, aside = 0")
			r := &receiver{env: x}
			held := testdb.Hold(begins)
			ended := make(chan error, 1)
			go func() { ended <- r.consumer(f, x.tappedDB(testdb.Hooks{Before: held.Before}, nil)).RunOnce(x.ctx) }()
			<-held.Reached
			x.exec("UPDATE rowfeed_cursors SET " + change)
			held.Release()
			err := <-ended
			handed, applied := len(r.handed), len(r.applied())
			switch {
			case change == "value = '1'": // moved back: from there, positions 2 and 3
				if err != nil || applied != 2 || handed != 3 {
					x.Errorf("%s: %v, %d handed over, %d applied", change, err, handed, applied)
				}
			case again:
				if err != nil || applied != 1 || handed != 2 {
					x.Errorf("%s: %v, %d handed over, %d applied; want the page again, once", change, err, handed, applied)
				}
			default:
				if err == nil || applied != 0 || handed != 1 {
					x.Errorf("%s: %v, %d handed over, %d applied; want an error and no effect", change, err, handed, applied)
				}
			}
		}
	})
}

// TestConsumeCommitUnknown (M47, H3): a COMMIT whose answer is lost may have
// happened or not. Only the database knows: nothing is applied twice, nothing left
// out, and what was applied is not handed over again.
func TestConsumeCommitUnknown(t *testing.T) {
	testdb.Quick(t)
	each(t, func(x *env) {
		f, r := x.addKV(), x.receiver()
		c := r.consumer(f, x.rf)
		r.once(c)
		last := 0
		for _, happened := range []bool{true, false} {
			x.fillFrom(last+1, last+3)
			last += 3
			x.publish(f)
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
			r.takeHanded()
			stop := r.run(r.consumer(f, x.tappedDB(hooks, nil)))
			x.eventually("the page is applied", func() bool { return len(r.applied()) == last })
			x.exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", last+1))
			last++
			x.publish(f)
			x.eventually("the consumer goes on", func() bool { return len(r.applied()) == last })
			if err := stop(); err != nil {
				x.Fatal(err)
			}
			r.wantApplied(upserts(1, last)...)
			if !broken {
				x.Error("no COMMIT was broken")
			}
			if want := map[bool]int{true: 4, false: 7}[happened]; len(r.takeHanded()) != want {
				x.Errorf("COMMIT happened %v: entries were handed over other than %d times", happened, want)
			}
		}
	})
}

// errLost is what a driver answers when the connection is gone.
var errLost = fmt.Errorf("the answer is lost: %w", driver.ErrBadConn)

// fillFrom inserts the rows from to to into kv.
func (x *env) fillFrom(from, to int) {
	x.Helper()
	for id := from; id <= to; id++ {
		x.exec(fmt.Sprintf("INSERT INTO kv VALUES (%d, 'k', 0)", id))
	}
}

// TestConsumeHoldsTheWriteLock (H20): on SQLite a consumer's transaction begins
// with the write lock, also on a pool whose transactions do not: a handler that reads
// first would else be refused at its first write when somebody wrote in between.
func TestConsumeHoldsTheWriteLock(t *testing.T) {
	testdb.SQLite.Require(t)
	x := newEnv(t, testdb.SQLite, nil)
	x.migrate()
	f, r := x.addKV(), x.receiver()
	x.fill(1)
	x.publish(f)
	rf, err := rowfeed.Open(x.ctx, x.db.OpenTapped(t, testdb.Hooks{}, "_txlock=deferred"), x.dialect, nil)
	if err != nil {
		t.Fatal(err)
	}
	impatient := x.db.OpenTapped(t, testdb.Hooks{}, "_pragma=busy_timeout(0)")
	c := r.consumer(f, rf)
	attempts := 0
	c.Handle = func(ctx context.Context, tx *sql.Tx, entries []rowfeed.Entry) error {
		attempts++
		var rows int
		if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM kv").Scan(&rows); err != nil {
			return err
		}
		if _, err := impatient.ExecContext(ctx, "INSERT INTO kv VALUES (2, 'k', 0)"); err == nil {
			t.Error("somebody else writes in the midst of the handler's transaction")
		}
		return r.handle(ctx, tx, entries)
	}
	r.once(c)
	r.wantApplied(upserts(1, 1)...)
	if attempts != 1 {
		t.Errorf("%d attempts", attempts)
	}
}
