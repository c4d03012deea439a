package store

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// WithSchemaLock retries while other sessions' locks are in the way: each try waits
// a second at most, so that nobody queues behind rowfeed for longer.
func (s *Store) WithSchemaLock(ctx context.Context, doing string, fn func(dialect.Querier) error) error {
	const tries = 60
	for attempt := 1; ; attempt++ {
		err := s.Dialect.WithSchemaLock(ctx, s.SQL, s.Names, fn)
		class := s.Dialect.Classify(err)
		if err == nil || attempt == tries || class != dialect.ClassLockTimeout && class != dialect.ClassRetry {
			return err
		}
		s.Observer.Retried(feedtype.RetryEvent{Doing: doing, Attempt: attempt, Err: err})
		if err := Pause(ctx, Backoff(attempt)); err != nil {
			return err
		}
	}
}

const (
	MaxAttempts  = 12
	firstBackoff = 2 * time.Millisecond
	maxBackoff   = 500 * time.Millisecond
)

// ErrNothing rolls a transaction back because there was nothing to do.
var ErrNothing = errors.New("nothing to do")

var ErrNoRows = sql.ErrNoRows

// InTx runs fn in a transaction of rowfeed's own, and again (with jitter) when the
// database reports a deadlock, a serialization failure or that it is busy, be it
// at a statement or at COMMIT. fn must therefore be repeatable. An error at COMMIT
// with an unknown outcome is returned: only the caller knows what to re-read.
func (s *Store) InTx(ctx context.Context, p dialect.Purpose, doing string, fn func(dialect.Querier) error) error {
	for attempt := 1; ; attempt++ {
		err := s.Once(ctx, p, func(_ *sql.Tx, q dialect.Querier) error { return fn(q) })
		if err == nil || errors.Is(err, ErrNothing) {
			return err
		}
		if attempt == MaxAttempts || s.Dialect.Classify(err) != dialect.ClassRetry {
			return err
		}
		if attempt == 1 {
			// A standby may refuse to begin by the code of something that passes.
			if _, identity := s.Dialect.Identity(ctx, s.On(), s.Names); s.Dialect.Classify(identity) == dialect.ClassReadOnly {
				return identity
			}
		}
		s.Observer.Retried(feedtype.RetryEvent{Doing: doing, Attempt: attempt, Err: err})
		if err := Pause(ctx, Backoff(attempt)); err != nil {
			return err
		}
	}
}

// Once runs fn in a transaction, as a handler sees it and as rowfeed does.
func (s *Store) Once(ctx context.Context, p dialect.Purpose, fn func(*sql.Tx, dialect.Querier) error) error {
	tx, err := s.SQL.BeginTx(ctx, s.Dialect.TxOptions(p))
	if err != nil {
		return err
	}
	defer tx.Rollback() // after Commit it does nothing
	q := dialect.On(tx)
	for _, setting := range s.Dialect.Settings(p, s.Names) {
		if _, err := q.Exec(ctx, setting); err != nil {
			return err
		}
	}
	if err := fn(tx, q); err != nil {
		return err
	}
	return tx.Commit()
}

// Backoff doubles from firstBackoff to maxBackoff, with full jitter.
func Backoff(attempt int) time.Duration {
	return Jitter(min(firstBackoff<<min(attempt-1, 20), maxBackoff))
}

// Jitter is half to one and a half of d, so that those who failed together do not try
// again together.
func Jitter(d time.Duration) time.Duration { return d/2 + rand.N(max(d, 1)) }

// Pause waits, or answers the context's error.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// Outage is the pause before a publisher tries again after so many failures.
func Outage(failures int) time.Duration {
	return min(100*time.Millisecond<<min(failures, 6), 5*time.Second)
}
