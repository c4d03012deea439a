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

// holdingShard is a writer in a process of its own, that has shard 1 until there is a file.
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
	query := "INSERT INTO events (id, shard, ulid, data) VALUES (?, 1, ?, '')"
	if d.Placeholder(1) == "$1" {
		query = "INSERT INTO events (id, shard, ulid, data) VALUES ($1, 1, $2, '')"
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
			_, err = tx.ExecContext(ctx, query, 1, at)
		}
		return tx, err
	}
	tx, err := begin()
	for try := 1; err != nil && idle > 0 && try < 20; try++ { // a slow machine idles for so long between two statements
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

// bounds are what a writer takes, on each engine, to be ended when it idles for a second: its
// session's parameters, and the request.
func bounds(x *suite.Env) (params string, req rowfeed.LockRequest) {
	req = rowfeed.LockRequest{Shards: []int{1}, Idle: time.Second}
	switch {
	case x.Engine == testdb.MariaDB:
		params = "idle_write_transaction_timeout=1"
	case x.Engine == testdb.MySQL:
		params = "wait_timeout=1"
	case x.Family() == "sqlite":
		req.Idle = rowfeed.NoBound
	}
	return params, req
}

// TestKilledHolderFreesShard (M44): a writer that has a shard is killed with SIGKILL. While it
// lives others shards' writers do not wait; when it is gone the one that waits gets the
// shard, without any bound's help, and nothing of it is there.
func TestKilledHolderFreesShard(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(1, 100, 100)
		holder, _ := x.Holds("", rowfeed.LockRequest{Idle: rowfeed.NoBound})
		var w *suite.Waiter
		if x.Family() != "sqlite" {
			x.Write(2, 200, 200)
			w = x.Wait(1)
			x.Eventually("it waits", x.Waits)
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

// TestStoppedHolderDelaysOnlyItsShard (M44, H18): a writer that has a shard is stopped with SIGSTOP. Other shards
// do not wait; those of its own wait until the server ends it, which is while it is stopped.
// When it goes on its transaction is gone.
func TestStoppedHolderDelaysOnlyItsShard(t *testing.T) {
	suite.EachULID(t, func(x *suite.Events) {
		x.Write(1, 100, 100)
		holder, goOn := x.Holds(bounds(x.Env))
		if err := syscall.Kill(holder.PID(), syscall.SIGSTOP); err != nil {
			x.Fatal(err)
		}
		if x.Family() == "sqlite" { // a stopped process keeps the file's lock: nothing bounds it but its end
			tx := x.BeginOn(sessionOf(x.Env, "100"))
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
		goOn()
		if err := syscall.Kill(holder.PID(), syscall.SIGCONT); err != nil {
			x.Fatal(err)
		}
		if outcome := x.WaitFor(holder, regexp.MustCompile("failed:|committed")); outcome[0] != "failed:" {
			x.Error("the stopped writer committed")
		}
		x.WantIDs(x.Page(x.Feed, 1, "", 10), false, 100, 101)
	})
}

// wire forwards connections to a server, until it is cut: then nothing goes either way, and
// neither end is told.
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

// half is one way of a connection: what is written after the cut is lost.
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

// ReadFrom would go around Write.
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

// TestDisconnectedHolderDelaysOnlyItsShard (M44): the network of a writer that has a shard goes away, without a word to the
// server. Other shards do not wait; those of its own wait until the server ends its
// session. Its COMMIT, which arrives nowhere, does nothing.
func TestDisconnectedHolderDelaysOnlyItsShard(t *testing.T) {
	testdb.Only(t, testdb.Servers...) // SQLite has no network
	suite.EachULID(t, func(x *suite.Events) {
		u, err := url.Parse(x.DB.URL)
		if err != nil {
			x.Fatal(err)
		}
		wire := newWire(x.Env, u.Host)
		u.Host = wire.Addr().String()
		params, req := bounds(x.Env)
		pool, err := testdb.OpenURL(u.String(), testdb.Hooks{}, strings.Fields(params)...)
		if err != nil {
			x.Fatal(err)
		}
		x.Cleanup(func() { pool.Close() })
		x.Write(1, 100, 100)
		ctx, cancel := context.WithCancel(x.Ctx)
		defer cancel()
		var tx *sql.Tx
		x.Eventually("a writer has a shard, and was not ended in the midst of it", func() bool {
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
			x.Error("COMMIT succeeded")
		}
		x.WantIDs(x.Page(x.Feed, 1, "", 10), false, 100, 101)
	})
}
