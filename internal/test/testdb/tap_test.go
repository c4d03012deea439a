package testdb_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// fatalRecorder records a helper's fatal failure, so that the test itself does not fail. Run code that may fail in a
// goroutine of its own.
type fatalRecorder struct {
	testing.TB
	message string
}

func (r *fatalRecorder) Helper()        {}
func (r *fatalRecorder) Cleanup(func()) {}
func (r *fatalRecorder) Fatal(args ...any) {
	r.message = fmt.Sprint(args...)
	runtime.Goexit()
}
func (r *fatalRecorder) Fatalf(format string, args ...any) { r.Fatal(fmt.Sprintf(format, args...)) }

// recorder is a hook that records what it sees.
type recorder struct {
	mu     sync.Mutex
	events []testdb.TapEvent
}

func (r *recorder) before(_ context.Context, ev testdb.TapEvent) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, ev)
	return nil
}

func (r *recorder) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var lines []string
	for _, ev := range r.events {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%d %s %s", ev.N, ev.Kind, ev.SQL)))
	}
	return strings.Join(lines, "\n")
}

func kv(t *testing.T, e testdb.Engine) *testdb.Database {
	t.Helper()
	d := e.New(t)
	d.Exec(t, "CREATE TABLE kv (id bigint PRIMARY KEY, v varchar(20))")
	return d
}

// insert is a statement with an argument: go-sql-driver prepares it.
func insert(e testdb.Engine) string {
	if e.Family == "postgres" {
		return "INSERT INTO kv (id, v) VALUES ($1, 'x')"
	}
	return "INSERT INTO kv (id, v) VALUES (?, 'x')"
}

func TestTapSeesEveryStatement(t *testing.T) {
	testdb.Quick(t)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		d := kv(t, e)
		seen, answered := &recorder{}, &recorder{}
		db := d.OpenTapped(t,
			testdb.Hooks{Before: seen.before, After: func(ctx context.Context, ev testdb.TapEvent, err error) error {
				_ = answered.before(ctx, ev)
				return err
			}})
		ctx := t.Context()
		tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		must(t, err)
		_, err = tx.ExecContext(ctx, insert(e), 7)
		must(t, err)
		var v string
		must(t, tx.QueryRowContext(ctx, "SELECT v FROM kv WHERE id = 7").Scan(&v))
		must(t, tx.Commit())
		stmt, err := db.PrepareContext(ctx, insert(e))
		must(t, err)
		_, err = stmt.ExecContext(ctx, 8)
		must(t, err)
		_, err = stmt.ExecContext(ctx, 8)
		if err == nil {
			t.Error("a duplicate key was accepted")
		}
		must(t, stmt.Close())
		tx, err = db.BeginTx(ctx, nil)
		must(t, err)
		must(t, tx.Rollback())
		want := strings.ReplaceAll(`1 Begin
2 Exec INSERT
3 Query SELECT v FROM kv WHERE id = 7
4 Commit
5 Exec INSERT
6 Exec INSERT
7 Begin
8 Rollback`, "INSERT", insert(e))
		if got := seen.String(); got != want {
			t.Errorf("seen:\n%s\nwant:\n%s", got, want)
		}
		if got := answered.String(); got != want {
			t.Errorf("answered:\n%s\nwant:\n%s", got, want)
		}
		for _, ev := range seen.events[:4] {
			if ev.InTx != (ev.Kind != testdb.Begin) || ev.Conn != 1 {
				t.Errorf("InTx %v, Conn %d of %v", ev.InTx, ev.Conn, ev)
			}
		}
		if args := seen.events[1].Args; len(args) != 1 || fmt.Sprint(args[0].Value) != "7" {
			t.Errorf("args: %v", args)
		}
	})
}

func TestTapPassesDriverTypesOn(t *testing.T) {
	testdb.Postgres15.Require(t)
	d := testdb.Postgres15.New(t)
	db := d.OpenTapped(t, testdb.Hooks{})
	var n int
	must(t, db.QueryRow("SELECT sum(x) FROM unnest($1::bigint[]) x", []int64{1, 2, 3}).Scan(&n))
	if n != 6 {
		t.Errorf("the sum is %d", n)
	}
	conn, err := db.Conn(t.Context())
	must(t, err)
	defer conn.Close()
	must(t, conn.Raw(func(c any) error {
		if _, ok := testdb.Unwrap(c).(interface{ Ping(context.Context) error }); !ok || testdb.Unwrap(c) == c {
			return fmt.Errorf("unwrapped to %T", testdb.Unwrap(c))
		}
		return nil
	}))
}

func TestTapHoldsStatementUntilReleased(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		d := kv(t, e)
		held := testdb.Hold(func(ev testdb.TapEvent) bool { return ev.Kind == testdb.Commit })
		db := d.OpenTapped(t, testdb.Hooks{Before: held.Before})
		done := make(chan error, 1)
		go func() {
			tx, err := db.Begin()
			if err == nil {
				_, err = tx.Exec(insert(e), 1)
			}
			if err == nil {
				err = tx.Commit()
			}
			done <- err
		}()
		<-held.Reached
		if n := count(t, d, "SELECT count(*) FROM kv"); n != 0 {
			t.Error("the row is visible before its commit")
		}
		held.Release()
		must(t, <-done)
		if n := count(t, d, "SELECT count(*) FROM kv"); n != 1 {
			t.Errorf("%d rows after the commit", n)
		}
		held.Release()
	})
}

func TestTapHoldEndsWithContext(t *testing.T) {
	d := kv(t, testdb.SQLite)
	held := testdb.Hold(func(ev testdb.TapEvent) bool { return ev.Kind == testdb.Exec })
	db := d.OpenTapped(t, testdb.Hooks{Before: held.Before})
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := db.ExecContext(ctx, insert(testdb.SQLite), 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("held: %v", err)
	}
}

func TestTapFailsStatementsOnRequest(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		for _, c := range []struct {
			name      string
			kind      testdb.TapKind
			after     bool
			failure   error
			committed bool
		}{
			{"statement", testdb.Exec, false, testdb.ErrInjected, false},
			{"commit is lost", testdb.Commit, false, testdb.ErrInjected, false},
			{"commit is done, its answer lost", testdb.Commit, true, testdb.ErrInjected, true},
			{"connection is lost", testdb.Exec, true, driver.ErrBadConn, false},
		} {
			t.Run(c.name, func(t *testing.T) {
				d := kv(t, e)
				var once sync.Once
				fail := func(ev testdb.TapEvent) (err error) {
					if ev.Kind == c.kind {
						once.Do(func() { err = c.failure })
					}
					return err
				}
				h := testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error { return fail(ev) }}
				if c.after {
					h = testdb.Hooks{After: func(_ context.Context, ev testdb.TapEvent, err error) error {
						if err != nil {
							return err
						}
						return fail(ev)
					}}
				}
				db := d.OpenTapped(t, h)
				db.SetMaxOpenConns(1) // a connection left in a transaction would be noticed
				tx, err := db.Begin()
				must(t, err)
				_, err = tx.Exec(insert(e), 1)
				if err == nil {
					err = tx.Commit()
				}
				if !errors.Is(err, c.failure) {
					t.Fatalf("the transaction ended with %v", err)
				}
				_ = tx.Rollback()
				want := 0
				if c.committed {
					want = 1
				}
				var n int
				must(t, db.QueryRow("SELECT count(*) FROM kv").Scan(&n))
				if n != want {
					t.Errorf("%d rows, want %d", n, want)
				}
				if n := count(t, d, "SELECT count(*) FROM kv"); n != want {
					t.Errorf("%d rows seen from outside, want %d", n, want)
				}
			})
		}
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestURLTimeoutBoundsWaitForWriteLock: a timeout in the URL bounds the wait for SQLite's write lock. A test's own SQL
// waits long.
func TestURLTimeoutBoundsWaitForWriteLock(t *testing.T) {
	testdb.SQLite.Require(t)
	d := testdb.SQLite.New(t)
	var usual, none, own int
	must(t, d.OpenTapped(t, testdb.Hooks{}).QueryRow("PRAGMA busy_timeout").Scan(&usual))
	must(t, d.OpenTapped(t, testdb.Hooks{}, "_pragma=busy_timeout(0)").QueryRow("PRAGMA busy_timeout").Scan(&none))
	must(t, d.Admin().QueryRow("PRAGMA busy_timeout").Scan(&own))
	if usual != 5000 || none != 0 || own < 60_000 {
		t.Errorf("%d ms as in the URL, %d by default, and %d for the test's own SQL", usual, none, own)
	}
}
