// Package tap observes what database/sql sends to a database, statement by statement. `rowfeed bench` counts statements
// with it, and tests observe, hold and fail them.
package tap

import (
	"context"
	"database/sql/driver"
	"io"
	"sync/atomic"
)

// Kind is the kind of an Event.
type Kind int

// The kinds of event. Preparing, pinging and resetting are not events.
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

// Event is a statement, or the end of a transaction, that is sent to the database.
type Event struct {
	Kind Kind
	SQL  string              // for Exec and Query
	Args []driver.NamedValue // for Exec and Query; must not be changed
	Opts driver.TxOptions    // for Begin
	N    int64               // 1, 2, 3… over all connections of the tap
	Conn int64               // the number of the connection: 1, 2, 3…
	InTx bool                // on a connection with a transaction that BeginTx opened; also for its Commit and Rollback
}

// Hooks are called around every event, in the goroutine that sends it. Both may be nil, and may block, which holds the
// statement. They are called concurrently for different connections.
type Hooks struct {
	// Before is called before the statement is sent. If it returns an error, the statement is not sent, and its caller
	// gets that error.
	Before func(ctx context.Context, ev Event) error
	// After is called with the error of the database's answer. The caller gets the error that After returns: err itself
	// to change nothing, or another one to turn a success into a failure (a COMMIT whose outcome is unknown).
	After func(ctx context.Context, ev Event, err error) error
}

// Connector wraps a connector so that the hooks see everything that database/sql sends.
//
// A statement is one event, also if the driver makes database/sql prepare it first. If a hook fails a Commit or
// Rollback, or fails anything with driver.ErrBadConn, the connection is closed, as after a real failure. The database
// then rolls back the open transaction.
//
// The wrapped driver's connections must have BeginTx, and its statements ExecContext and QueryContext. Other optional
// interfaces are forwarded if the wrapped driver has them. Otherwise they are declined in the way that database/sql
// expects. The deprecated ColumnConverter is never forwarded. In sql.Conn.Raw, Unwrap returns the driver's own
// connection.
func Connector(connector driver.Connector, h Hooks) driver.Connector {
	return &tap{Connector: connector, hooks: h}
}

// Unwrap returns the driver's own connection under a tapped one, and any other connection unchanged.
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

// Connect opens a connection. It calls no hook.
func (t *tap) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := t.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, tap: t, number: t.conns.Add(1)}, nil
}

// Close closes the wrapped connector if it can be closed.
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
