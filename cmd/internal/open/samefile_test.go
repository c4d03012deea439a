package open

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
)

// TestMovedSQLiteFileIsNotUsedUntilItReturns (M74) moves the database's file away from a pool with idle connections. No
// connection is used again, no file is created at the path, and the file is used again once it is back.
func TestMovedSQLiteFileIsNotUsedUntilItReturns(t *testing.T) {
	folder := t.TempDir()
	path, away := filepath.Join(folder, "x.db"), filepath.Join(folder, "away.db")
	pool, _, err := Open(t.Context(), "sqlite:"+path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	idle(t, pool, 3)
	if _, err := pool.Exec("CREATE TABLE t (a)"); err != nil {
		t.Fatal(err)
	}
	move := func(from, to string) {
		t.Helper()
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if err := os.Rename(from+suffix, to+suffix); err != nil && suffix == "" {
				t.Fatal(err)
			}
		}
	}
	move(path, away)
	for range 5 { // more than there are connections
		_, err := pool.Exec("INSERT INTO t VALUES (1)")
		wantNext(t, err, rowfeed.Unavailable, "put it back")
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file was made: %v", err)
	}
	move(away, path)
	var rows int
	if err := pool.QueryRow("SELECT count(*) FROM t").Scan(&rows); err != nil || rows != 0 {
		t.Errorf("back at its path: %d rows (%v)", rows, err)
	}
}

// TestReplacedSQLiteFileIsNotUsed (M74) puts another file at the path. No connection of the pool uses either file,
// including new connections.
func TestReplacedSQLiteFileIsNotUsed(t *testing.T) {
	folder := t.TempDir()
	path, other := filepath.Join(folder, "x.db"), filepath.Join(folder, "other.db")
	for _, file := range []string{path, other} {
		pool, _, err := Open(t.Context(), "sqlite:"+file, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pool.Exec("CREATE TABLE t (a)"); err != nil {
			t.Fatal(err)
		}
		pool.Close()
	}
	pool, d, err := Open(t.Context(), "sqlite:"+path, Options{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	db, err := rowfeed.Open(t.Context(), pool, d, nil)
	if err != nil {
		t.Fatal(err)
	}
	idle(t, pool, 3)
	if err := os.Rename(other, path); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		_, err := pool.Exec("INSERT INTO t VALUES (1)")
		wantNext(t, err, rowfeed.DatabaseChanged, "rowfeed feed bump")
	}
	// The library returns the same error, and not one about missing tables.
	_, err = db.Feeds(t.Context())
	wantNext(t, err, rowfeed.DatabaseChanged, "rowfeed feed bump")
	var e *rowfeed.Error
	if errors.As(err, &e) && strings.Contains(e.Cause+e.Object+e.Next, folder) {
		t.Errorf("strangers are shown the path: %v", err)
	}
}

// TestSQLitePublishesIntoNoLostFile (M74): changes in a file that was moved away are published when the file is back,
// and not before.
func TestSQLitePublishesIntoNoLostFile(t *testing.T) {
	folder := t.TempDir()
	path, away := filepath.Join(folder, "x.db"), filepath.Join(folder, "away.db")
	pool, d, err := Open(t.Context(), "sqlite:"+path+"?_journal_mode=DELETE", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	db, err := rowfeed.Open(t.Context(), pool, d, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec("CREATE TABLE kv (id INTEGER PRIMARY KEY); INSERT INTO kv VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	f, err := db.AddFeed(t.Context(), rowfeed.FeedSpec{Name: "kv", Table: "kv"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, away); err != nil {
		t.Fatal(err)
	}
	n, err := f.Publish(t.Context())
	wantNext(t, err, rowfeed.Unavailable, "put it back")
	_, err = f.Fetch(t.Context(), rowfeed.Request{})
	wantNext(t, err, rowfeed.Unavailable, "put it back")
	if n != 0 {
		t.Errorf("%d keys were published into a file that is away", n)
	}
	if err := os.Rename(away, path); err != nil {
		t.Fatal(err)
	}
	if n, err := f.Publish(t.Context()); err != nil || n != 1 {
		t.Errorf("back at its path: %d keys, %v", n, err)
	}
}

// idle fills a pool with idle connections.
func idle(t *testing.T, pool *sql.DB, n int) {
	t.Helper()
	conns := make([]*sql.Conn, n)
	for i := range conns {
		var err error
		if conns[i], err = pool.Conn(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	for _, conn := range conns {
		conn.Close()
	}
}

func wantNext(t *testing.T, err error, code rowfeed.Code, next string) {
	t.Helper()
	var e *rowfeed.Error
	if !errors.As(err, &e) || e.Code != code || !strings.Contains(e.Next, next) {
		t.Fatalf("got %v, want code %s and a next step with %q", err, code, next)
	}
}
