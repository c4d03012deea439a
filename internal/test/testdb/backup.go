package testdb

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"modernc.org/sqlite"
)

// Stop shuts a server down in order, as its administrator would.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil || s.paused != nil {
		t.Fatal("testdb: Stop: the server does not run")
	}
	wanted := syscall.SIGTERM
	if s.Engine.Family == "postgres" {
		wanted = syscall.SIGINT // fast: SIGTERM waits until every client has left
	}
	if err := s.cmd.Process.Signal(wanted); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.exited:
		s.cmd = nil
	case <-time.After(patience):
		t.Fatalf("testdb: %s does not stop\n%s", s.Engine.Name, s.logTail())
	}
}

// Backup copies the database, and returns the function that restores the copy. For both, a server is stopped, and its
// whole data folder is copied: all its databases are restored. A SQLite file is copied by SQLite itself, under its
// locks, so other processes may have the file open. A lent server writes the copy, and keeps it, and restores this
// database only.
func (d *Database) Backup(t testing.TB) (restore func()) {
	t.Helper()
	if d.server == nil {
		path := filepath.Join(t.TempDir(), "backup.db")
		d.Exec(t, "VACUUM INTO '"+path+"'")
		return func() {
			t.Helper()
			if err := restoreSQLite(d.Admin(), path); err != nil {
				t.Fatal(err)
			}
		}
	}
	s := d.server
	if s.Engine == SQLServer {
		return d.backupSQLServer(t)
	}
	kept := filepath.Join(s.folder, fmt.Sprint("backup", s.next.Add(1)))
	s.Stop(t)
	s.copyData(t, s.data, kept)
	s.Start(t)
	d.Reconnect()
	return func() {
		t.Helper()
		s.Stop(t)
		if err := os.RemoveAll(s.data); err != nil {
			t.Fatal(err)
		}
		s.copyData(t, kept, s.data)
		s.Start(t)
		d.Reconnect()
	}
}

// Reconnect closes Admin's idle connections. After a server was stopped or killed they are closed, and not every driver
// notices that before it has sent a statement.
func (d *Database) Reconnect() {
	const kept = 2 // database/sql's own default
	d.Admin().SetMaxIdleConns(0)
	d.Admin().SetMaxIdleConns(kept)
}

func (s *Server) copyData(t testing.TB, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(to, 0o700); err != nil { // otherwise PostgreSQL does not start
		t.Fatal(err)
	}
	if err := giveAway(to); err != nil {
		t.Fatal(err)
	}
}

// restoreSQLite writes a copy's pages into the database, in one transaction.
func restoreSQLite(db *sql.DB, path string) error {
	conn, err := db.Conn(context.Background())
	if err != nil {
		return err
	}
	defer conn.Close()
	return conn.Raw(func(c any) error {
		b, err := c.(interface {
			NewRestore(string) (*sqlite.Backup, error)
		}).NewRestore(path)
		if err != nil {
			return err
		}
		deadline := time.Now().Add(patience)
		for {
			more, err := b.Step(-1)
			if err != nil && time.Now().Before(deadline) {
				continue // another connection has the lock
			}
			if err != nil || !more {
				return errorOr(err, b.Finish())
			}
		}
	})
}

func errorOr(first, second error) error {
	if first != nil {
		return first
	}
	return second
}
