package ulid

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

func init() {
	testdb.RegisterChild("shard holder", func() {
		if err := holdingShard(); err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		fmt.Println("committed")
	})
}

// holdingShard is a writer in a child process. It locks shard 1, and commits when a file appears.
func holdingShard() error {
	url := os.Getenv("URL")
	pool, err := testdb.OpenURL(url, testdb.Hooks{}, strings.Fields(os.Getenv("PARAMS"))...)
	if err != nil {
		return err
	}
	defer pool.Close()
	d, err := suite.DialectOf(url)
	if err != nil {
		return err
	}
	ctx := context.Background()
	rf, err := rowfeed.Open(ctx, pool, d, nil)
	if err != nil {
		return err
	}
	f, err := rf.Feed(ctx, "events")
	if err != nil {
		return err
	}
	idle, err := time.ParseDuration(os.Getenv("IDLE"))
	if err != nil {
		return err
	}
	begin := func() (*sql.Tx, error) {
		tx, err := pool.BeginTx(ctx, nil)
		if err != nil {
			return nil, err
		}
		u, err := f.Lock(ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{1}, Idle: idle})
		if err != nil {
			return tx, err
		}
		at, err := u.At(1, 0)
		if err == nil {
			err = suite.InsertEvent(ctx, tx, d, 1, 1, at, "")
		}
		return tx, err
	}
	tx, err := begin()
	// On a slow machine, the transaction may be idle for too long between two statements.
	for try := 1; err != nil && idle > 0 && try < 20; try++ {
		if tx != nil {
			_ = tx.Rollback()
		}
		tx, err = begin()
	}
	if err != nil {
		return err
	}
	fmt.Println("holding")
	for {
		if _, err := os.Stat(os.Getenv("FILE")); err == nil {
			return tx.Commit()
		}
		suite.Rest(ctx, 5*time.Millisecond)
	}
}

// endedWhenIdle returns the parameters of a session, and a request, that let the server end a writer that is idle for a
// second.
func endedWhenIdle(x *suite.Env) (params string, req rowfeed.LockRequest) {
	x.Helper()
	req = rowfeed.LockRequest{Shards: []int{1}, Idle: time.Second}
	if !x.Has.EndsIdle {
		req.Idle = rowfeed.NoBound
	}
	return x.Text("ulid.end_idle_session"), req
}

// TestKilledHolderFreesShard (M44): a process that has locked a shard is killed with SIGKILL. Before, writers of other
// shards do not wait. Then the waiting writer gets the shard, and nothing that the process inserted is visible.
func TestKilledHolderFreesShard(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(1, 100, 100)
		holder, _ := x.Holds("", rowfeed.LockRequest{Idle: rowfeed.NoBound})
		var w *suite.Waiter
		if !x.Has.OneWriter {
			x.Write(2, 200, 200)
			w = x.Wait(1)
			x.Eventually("another writer of shard 1 waits", x.Waits)
		}
		x.WantAlive(holder)
		holder.Kill()
		if w != nil {
			x.Got(w)
		}
		x.Write(1, 101, 101)
		x.WantIDs(x.Page(x.Feed, 1, "", 10), false, 100, 101)
	})
}

// TestStoppedHolderDelaysOnlyItsShard (M44, H18): a process that has locked a shard is stopped with SIGSTOP. Writers of
// other shards do not wait. Writers of its shard wait until the server ends its transaction. When the process resumes,
// its commit fails.
func TestStoppedHolderDelaysOnlyItsShard(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(1, 100, 100)
		holder, release := x.Holds(endedWhenIdle(x.Env))
		if err := syscall.Kill(holder.PID(), syscall.SIGSTOP); err != nil {
			x.Fatal(err)
		}
		if !x.Has.EndsIdle { // the lock remains until the process ends
			tx := x.BeginOn(waitingPool(x.Env, 100*time.Millisecond))
			_, err := x.Feed.Lock(x.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{1}})
			x.WantCode(err, rowfeed.Locked)
			tx.Rollback()
			holder.Kill()
			x.Write(1, 101, 101)
			return
		}
		x.Write(2, 200, 200)
		w := x.Wait(1)
		x.Got(w)
		x.Write(1, 101, 101)
		release()
		if err := syscall.Kill(holder.PID(), syscall.SIGCONT); err != nil {
			x.Fatal(err)
		}
		if outcome := x.WaitFor(holder, regexp.MustCompile("failed:|committed")); outcome[0] != "failed:" {
			x.Error("the stopped writer committed, although the server had ended its transaction")
		}
		x.WantIDs(x.Page(x.Feed, 1, "", 10), false, 100, 101)
	})
}

// wire forwards connections to a server. After Cut, it loses all data in both directions, and closes no connection.
type wire struct {
	net.Listener
	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

func newWire(x *suite.Env, to string) *wire {
	x.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		x.Fatal(err)
	}
	w := &wire{Listener: l}
	x.Cleanup(w.close)
	go func() {
		for {
			from, err := w.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				from.Close()
				continue
			}
			w.mu.Lock()
			w.conns = append(w.conns, from, server)
			w.mu.Unlock()
			go io.Copy(half{server, w}, from)
			go io.Copy(half{from, w}, server)
		}
	}()
	return w
}

// half is one direction of a connection.
type half struct {
	net.Conn
	wire *wire
}

func (h half) Write(b []byte) (int, error) {
	h.wire.mu.Lock()
	defer h.wire.mu.Unlock()
	if h.wire.cut {
		return len(b), nil
	}
	return h.Conn.Write(b)
}

// ReadFrom makes io.Copy use Write.
func (h half) ReadFrom(r io.Reader) (int64, error) { return io.Copy(struct{ io.Writer }{h}, r) }

func (w *wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
}

func (w *wire) close() {
	w.Listener.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		c.Close()
	}
}

// TestDisconnectedHolderDelaysOnlyItsShard (M44): the network connection of a writer that has locked a shard breaks
// without a message to the server. Writers of other shards do not wait. Writers of its shard wait until the server ends
// its session. Its COMMIT fails.
func TestDisconnectedHolderDelaysOnlyItsShard(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has no network
	suite.EachULID(t, func(x *suite.Events) {
		u, err := url.Parse(x.DB.URL)
		if err != nil {
			x.Fatal(err)
		}
		wire := newWire(x.Env, u.Host)
		u.Host = wire.Addr().String()
		params, req := endedWhenIdle(x.Env)
		pool, err := testdb.OpenURL(u.String(), testdb.Hooks{}, strings.Fields(params)...)
		if err != nil {
			x.Fatal(err)
		}
		x.Cleanup(func() { pool.Close() })
		x.Write(1, 100, 100)
		ctx, cancel := context.WithCancel(x.Ctx)
		defer cancel()
		var tx *sql.Tx
		x.Eventually("a writer inserts a row before the server ends its session", func() bool {
			if tx, err = pool.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted}); err != nil {
				return false
			}
			u, err := x.Feed.Lock(ctx, rowfeed.InTx(tx), req)
			if err == nil {
				err = x.TryEvent(ctx, tx, 1, 1, x.At(u, 1, 0), "")
			}
			if err != nil {
				_ = tx.Rollback()
			}
			return err == nil
		})
		wire.Cut()
		done := make(chan error, 1)
		go func() { done <- tx.Commit() }()
		x.Write(2, 200, 200)
		x.Got(x.Wait(1))
		x.Write(1, 101, 101)
		wire.close()
		if err := <-done; err == nil {
			x.Error("COMMIT succeeded without a connection")
		}
		x.WantIDs(x.Page(x.Feed, 1, "", 10), false, 100, 101)
	})
}
