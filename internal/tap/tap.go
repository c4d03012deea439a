// Package tap shows what database/sql sends to a database, statement by statement. With
// it `rowfeed bench` counts the statements of a process, and tests watch, hold and fail
// them.
package tap

import (
	"context"
	"database/sql/driver"
	"io"
	"sync/atomic"
)

// Kind says what an Event is about.
type Kind int

// The kinds of event. Preparing, pinging and resetting are none.
const (
	Begin Kind = iota
	Exec
	Query
	Commit
	Rollback
)

func (k Kind) String() string {
	return [...]string{"Begin", "Exec", "Query", "Commit", "Rollback"}[k]
}

// Event is one statement, or one end of a transaction, on its way to the
// database.
type Event struct {
	Kind Kind
	SQL  string              // Exec and Query
	Args []driver.NamedValue // Exec and Query; not to be changed
	Opts driver.TxOptions    // Begin
	N    int64               // 1, 2, 3… over all connections of the tap
	Conn int64               // 1, 2, 3…: which connection
	InTx bool                // on a connection with a transaction that BeginTx opened; also for its Commit and Rollback
}

// Hooks are called around every event, in the goroutine that sends it. Both may
// be nil, may block, which holds the statement, and are called concurrently for
// different connections.
type Hooks struct {
	// Before is called before the statement is sent. Its error is returned in
	// the statement's place, which then never happens.
	Before func(ctx context.Context, ev Event) error
	// After is called when the database has answered, with the answer's error.
	// What it returns is returned instead: give err back to change nothing, or
	// make a success look like a failure (a COMMIT whose outcome stays unknown).
	After func(ctx context.Context, ev Event, err error) error
}

// Connector wraps a connector so that the hooks see everything that database/sql sends.
//
// A statement is one event, also where the driver makes database/sql prepare it
// first. When a hook fails a Commit or Rollback, or fails anything with
// driver.ErrBadConn, the connection is given up, as it would be after a real
// failure; the database then rolls back what was open.
//
// The wrapped driver's connections must have BeginTx, and its statements ExecContext and QueryContext. Other optional
// interfaces are forwarded if the wrapped driver has them. Otherwise they are declined in the way that database/sql
// expects. The deprecated ColumnConverter is never forwarded. In sql.Conn.Raw, Unwrap returns the driver's own
// connection.
func Connector(connector driver.Connector, h Hooks) driver.Connector {
	return &tap{Connector: connector, hooks: h}
}

// Unwrap returns the driver's own connection under a tapped one, and anything
// else as it is.
func Unwrap(driverConn any) any {
	if c, ok := driverConn.(*conn); ok {
		return c.Conn
	}
	return driverConn
}

type tap struct {
	driver.Connector
	hooks    Hooks
	n, conns atomic.Int64
}

// Connect opens a connection; no hook is called.
func (t *tap) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := t.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, tap: t, number: t.conns.Add(1)}, nil
}

// Close forwards to connectors that can be closed.
func (t *tap) Close() error {
	if c, ok := t.Connector.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// event numbers an event and calls the hook before it.
func (t *tap) event(ctx context.Context, ev *Event) error {
	ev.N = t.n.Add(1)
	if t.hooks.Before == nil {
		return nil
	}
	return t.hooks.Before(ctx, *ev)
}

// after calls the hook after an event.
func (t *tap) after(ctx context.Context, ev *Event, err error) error {
	if t.hooks.After == nil {
		return err
	}
	return t.hooks.After(ctx, *ev, err)
}
