package tap

import (
	"context"
	"database/sql/driver"
	"errors"
)

// conn is a connection under a tap. database/sql uses a connection, its transaction and its statements from one
// goroutine at a time.
type conn struct {
	driver.Conn
	tap    *tap
	number int64
	inTx   bool
	broken bool // a hook caused an error after which the connection must be closed

	// A driver may decline ExecContext and QueryContext (go-sql-driver does so for statements with arguments).
	// database/sql then prepares the same text and runs it. Both are one event, which declined holds for the second.
	declined *Event
}

var (
	_ driver.ConnBeginTx        = (*conn)(nil)
	_ driver.ConnPrepareContext = (*conn)(nil)
	_ driver.ExecerContext      = (*conn)(nil)
	_ driver.QueryerContext     = (*conn)(nil)
	_ driver.NamedValueChecker  = (*conn)(nil)
	_ driver.Pinger             = (*conn)(nil)
	_ driver.SessionResetter    = (*conn)(nil)
	_ driver.Validator          = (*conn)(nil)

	_ driver.StmtExecContext   = (*statement)(nil)
	_ driver.StmtQueryContext  = (*statement)(nil)
	_ driver.NamedValueChecker = (*statement)(nil)
)

// around calls the hooks around one call to the driver, and returns what the caller gets.
func around[T any](ctx context.Context, c *conn, ev *Event, call func() (T, error)) (T, error) {
	var none T
	if ev.N == 0 { // otherwise Before has already been called
		ev.Conn, ev.InTx = c.number, c.inTx
		if err := c.tap.event(ctx, ev); err != nil {
			c.breakAfter(ev.Kind, err)
			return none, err
		}
	}
	result, err := call()
	if errors.Is(err, driver.ErrSkip) {
		return none, err
	}
	if seen := c.tap.after(ctx, ev, err); seen != nil {
		if err == nil {
			c.breakAfter(ev.Kind, seen)
			discard(result)
		}
		return none, seen
	}
	return result, nil
}

// breakAfter records that a hook made a statement fail.
func (c *conn) breakAfter(k Kind, err error) {
	if k == Commit || k == Rollback || errors.Is(err, driver.ErrBadConn) {
		c.broken = true
	}
}

// discard closes the result of a successful call that the caller does not get.
func discard(result any) {
	switch r := result.(type) {
	case driver.Rows:
		_ = r.Close()
	case driver.Tx:
		_ = r.Rollback()
	}
}

// declinedAs removes the event of a statement that the driver declined to run unprepared, and returns it.
func (c *conn) declinedAs(k Kind, query string) *Event {
	ev := c.declined
	c.declined = nil
	if ev != nil && ev.Kind == k && ev.SQL == query {
		return ev
	}
	return nil
}

func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := around(ctx, c, &Event{Kind: Begin, Opts: opts}, func() (driver.Tx, error) {
		return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
	})
	if err != nil {
		return nil, err
	}
	c.inTx = true
	return &transaction{Tx: tx, conn: c, ctx: ctx}, nil
}

func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	execer, ok := c.Conn.(driver.ExecerContext)
	if !ok {
		return nil, driver.ErrSkip // the prepared statement is the event
	}
	ev := &Event{Kind: Exec, SQL: query, Args: args}
	result, err := around(ctx, c, ev, func() (driver.Result, error) { return execer.ExecContext(ctx, query, args) })
	c.noteDeclined(ev, err)
	return result, err
}

func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	queryer, ok := c.Conn.(driver.QueryerContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	ev := &Event{Kind: Query, SQL: query, Args: args}
	rows, err := around(ctx, c, ev, func() (driver.Rows, error) { return queryer.QueryContext(ctx, query, args) })
	c.noteDeclined(ev, err)
	return rows, err
}

func (c *conn) noteDeclined(ev *Event, err error) {
	c.declined = nil
	if errors.Is(err, driver.ErrSkip) {
		c.declined = ev
	}
}

func (c *conn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	var stmt driver.Stmt
	var err error
	if p, ok := c.Conn.(driver.ConnPrepareContext); ok {
		stmt, err = p.PrepareContext(ctx, query)
	} else {
		stmt, err = c.Conn.Prepare(query)
	}
	if err != nil {
		if ev := c.declined; ev != nil && ev.SQL == query { // the event ends here
			c.declined = nil
			err = c.tap.after(ctx, ev, err)
		}
		return nil, err
	}
	return &statement{Stmt: stmt, conn: c, query: query}, nil
}

func (c *conn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.Conn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip // database/sql uses its own conversion
}

func (c *conn) Ping(ctx context.Context) error {
	if p, ok := c.Conn.(driver.Pinger); ok {
		return p.Ping(ctx)
	}
	return nil
}

func (c *conn) ResetSession(ctx context.Context) error {
	if c.broken {
		return driver.ErrBadConn
	}
	c.inTx, c.declined = false, nil
	if r, ok := c.Conn.(driver.SessionResetter); ok {
		return r.ResetSession(ctx)
	}
	return nil
}

func (c *conn) IsValid() bool {
	if c.broken {
		return false
	}
	if v, ok := c.Conn.(driver.Validator); ok {
		return v.IsValid()
	}
	return true
}

// transaction is a transaction. Its ends have no context of their own: Commit uses the context of BeginTx, Rollback
// only its values, because a cancelled transaction ends with a rollback.
type transaction struct {
	driver.Tx
	conn *conn
	ctx  context.Context
}

func (t *transaction) Commit() error { return t.end(t.ctx, Commit, t.Tx.Commit) }

func (t *transaction) Rollback() error {
	return t.end(context.WithoutCancel(t.ctx), Rollback, t.Tx.Rollback)
}

func (t *transaction) end(ctx context.Context, k Kind, call func() error) error {
	_, err := around(ctx, t.conn, &Event{Kind: k}, func() (struct{}, error) { return struct{}{}, call() })
	t.conn.inTx = false
	return err
}

// statement is a prepared statement.
type statement struct {
	driver.Stmt
	conn  *conn
	query string
}

// event returns the event that the driver declined, or a new one.
func (s *statement) event(k Kind, args []driver.NamedValue) *Event {
	if ev := s.conn.declinedAs(k, s.query); ev != nil {
		return ev
	}
	return &Event{Kind: k, SQL: s.query, Args: args}
}

func (s *statement) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return around(ctx, s.conn, s.event(Exec, args), func() (driver.Result, error) {
		return s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
	})
}

func (s *statement) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return around(ctx, s.conn, s.event(Query, args), func() (driver.Rows, error) {
		return s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
	})
}

func (s *statement) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := s.Stmt.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return s.conn.CheckNamedValue(v)
}
