// Package sqlite_test has the tests of package dialect/sqlite.
package sqlite_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/dialect/sqlite"
)

// TestSchemaLockEndsThoughSQLiteRolledBack: SQLite ends a transaction by itself after some errors, for example on a
// full disk. The caller gets that error, and not that there is nothing to roll back. The next caller gets the lock.
func TestSchemaLockEndsThoughSQLiteRolledBack(t *testing.T) {
	pool, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "x.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	full := errors.New("the disk is full")
	err = sqlite.New().WithSchemaLock(t.Context(), pool, dialect.Names{}, func(q dialect.Querier) error {
		if _, err := q.Exec(t.Context(), "ROLLBACK"); err != nil {
			t.Error(err)
		}
		return full
	})
	if err != full {
		t.Errorf("got %q, want %q alone", err, full)
	}
	err = sqlite.New().WithSchemaLock(t.Context(), pool, dialect.Names{}, func(dialect.Querier) error { return nil })
	if err != nil {
		t.Error(err)
	}
}
