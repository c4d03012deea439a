package rowfeed

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// Tx is the caller's open transaction, for calls that take part in it. InTx makes one
// of a *sql.Tx, pgxtx.In one of a pgx.Tx. Nothing that runs each statement by itself
// is one, be it a pool or an adapter of a pool, so that a call cannot leave the
// caller's transaction unnoticed.
type Tx interface {
	// Exec answers the number of rows affected.
	Exec(ctx context.Context, query string, args ...any) (int64, error)
	Query(ctx context.Context, query string, args ...any) (dialect.Rows, error)
	// Transaction does nothing. Who implements it promises that Exec and Query run in
	// one transaction, which the caller will end, and answer an error that wraps sql.ErrTxDone
	// from then on: in a later transaction of the connection ULIDs would pass for its own.
	Transaction()
}

// InTx adapts a *sql.Tx.
func InTx(tx *sql.Tx) Tx {
	if tx == nil {
		return NoTx("InTx was given a nil *sql.Tx")
	}
	return ownTx{dialect.On(tx)}
}

// ownTx is a querier that is known to run in one transaction.
type ownTx struct{ dialect.Querier }

func (ownTx) Transaction() {}

// NoTx is what adapters make of something that is no transaction: every call of it
// answers an error with code InvalidRequest and this text.
type NoTx string

// Exec answers the error.
func (n NoTx) Exec(context.Context, string, ...any) (int64, error) { return 0, n.err() }

// Query answers the error.
func (n NoTx) Query(context.Context, string, ...any) (dialect.Rows, error) { return nil, n.err() }

// Transaction does nothing.
func (NoTx) Transaction() {}

func (n NoTx) err() error {
	return &feedtype.Error{Code: feedtype.InvalidRequest, Object: "transaction", Cause: string(n), Param: "tx",
		Next: "begin a transaction, hand it in, and commit it yourself"}
}

const (
	maxAttempts  = 12
	firstBackoff = 2 * time.Millisecond
	maxBackoff   = 500 * time.Millisecond
)

// errNothing rolls a transaction back because there was nothing to do.
var errNothing = errors.New("nothing to do")

var errNoRows = sql.ErrNoRows

// inTx runs fn in a transaction of rowfeed's own, and again (with jitter) when the
// database reports a deadlock, a serialization failure or that it is busy, be it
// at a statement or at COMMIT. fn must therefore be repeatable. An error at COMMIT
// with an unknown outcome is returned: only the caller knows what to re-read.
func (s *store) inTx(ctx context.Context, p dialect.Purpose, doing string, fn func(dialect.Querier) error) error {
	for attempt := 1; ; attempt++ {
		err := s.once(ctx, p, func(_ *sql.Tx, q dialect.Querier) error { return fn(q) })
		if err == nil || errors.Is(err, errNothing) {
			return err
		}
		if attempt == maxAttempts || s.d.Classify(err) != dialect.ClassRetry {
			return err
		}
		if attempt == 1 {
			// A standby may refuse to begin by the code of something that passes.
			if _, identity := s.d.Identity(ctx, s.on(), s.names); s.d.Classify(identity) == dialect.ClassReadOnly {
				return identity
			}
		}
		s.observer.Retried(feedtype.RetryEvent{Doing: doing, Attempt: attempt, Err: err})
		if err := pause(ctx, backoff(attempt)); err != nil {
			return err
		}
	}
}

// once runs fn in a transaction, as a handler sees it and as rowfeed does.
func (s *store) once(ctx context.Context, p dialect.Purpose, fn func(*sql.Tx, dialect.Querier) error) error {
	tx, err := s.sql.BeginTx(ctx, s.d.TxOptions(p))
	if err != nil {
		return err
	}
	defer tx.Rollback() // after Commit it does nothing
	q := dialect.On(tx)
	for _, setting := range s.d.Settings(p, s.names) {
		if _, err := q.Exec(ctx, setting); err != nil {
			return err
		}
	}
	if err := fn(tx, q); err != nil {
		return err
	}
	return tx.Commit()
}

// reading runs fn in a transaction that only reads, for the settings that keep a planner to
// the indexes. Its error is the database's.
func (f *Feed) reading(ctx context.Context, doing string, fn func(dialect.Querier) error) error {
	return f.db.store.inTx(ctx, dialect.ForRead, doing+" of "+f.name, fn)
}

// backoff doubles from firstBackoff to maxBackoff, with full jitter.
func backoff(attempt int) time.Duration {
	return jitter(min(firstBackoff<<min(attempt-1, 20), maxBackoff))
}

// jitter is half to one and a half of d, so that those who failed together do not try
// again together.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(max(d, 1)) }

// pause waits, or answers the context's error.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// fail turns a database error into an Error by its class. An Error passes as it is.
func (s *store) fail(object, doing string, err error) error {
	var known *feedtype.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %s: %w", object, doing, err)
	}
	e := &feedtype.Error{Code: feedtype.Failed, Object: object, Cause: doing, Err: err}
	switch s.d.Classify(err) {
	case dialect.ClassConnection:
		e.Code, e.Next = feedtype.Unavailable, "check that the database runs and can be reached, then try again"
	case dialect.ClassRetry, dialect.ClassLockTimeout:
		e.Code, e.Next = feedtype.Locked, "other transactions kept the locks; `rowfeed status` names them; try again"
	case dialect.ClassPermission:
		e.Code, e.Next = feedtype.Refused, "grant the missing right to rowfeed's database user (`rowfeed feed grant` gives a feed's writers and readers theirs); where the database is a file, the right to write it and its directory to the user of the process"
	case dialect.ClassReadOnly:
		e.Code, e.Next = feedtype.ReadOnly, "connect to the primary, or wait until this server is one; `rowfeed serve --replica` answers pages from a replica"
	case dialect.ClassFull:
		e.Code, e.Next = feedtype.Unavailable, "free space for the database, then try again; nothing was lost"
	}
	return e
}
