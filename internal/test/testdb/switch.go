package testdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"sync/atomic"
	"testing"
)

// switched connects to the database that it leads to at the moment.
type switched struct{ to atomic.Pointer[Database] }

func (s *switched) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := connector(s.to.Load().URL, []string{"_txlock=immediate"})
	if err != nil {
		return nil, err
	}
	return c.Connect(ctx)
}

func (s *switched) Driver() driver.Driver {
	c, err := connector(s.to.Load().URL, nil)
	if err != nil {
		panic(err) // the URL is one of testdb's own
	}
	return c.Driver()
}

// OpenSwitched opens a pool that leads to d, and to another database of the engine after a call of lead, as a proxy or
// a virtual address does. A transaction that runs during the call stays where it has begun. The hooks are those of
// OpenTapped. The pool is closed at the end of the test.
func (d *Database) OpenSwitched(t testing.TB, h Hooks) (db *sql.DB, lead func(to *Database)) {
	t.Helper()
	s := new(switched)
	s.to.Store(d)
	db = sql.OpenDB(Tap(s, h))
	db.SetMaxIdleConns(-1) // an idle connection would still lead to the former database
	t.Cleanup(func() { _ = db.Close() })
	return db, func(to *Database) { s.to.Store(to) }
}
