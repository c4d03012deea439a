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

// WithSchemaLock runs fn under the schema lock, and tries again while other sessions hold locks on the tables. One
// attempt waits for a second at most, so that other statements do not queue behind rowfeed for longer.
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
	// MaxAttempts is how often a transaction is tried.
	MaxAttempts  = 12
	firstBackoff = 2 * time.Millisecond
	maxBackoff   = 500 * time.Millisecond
)

// ErrNothing rolls a transaction back because there was nothing to do.
var ErrNothing = errors.New("nothing to do")

// ErrNoRows is sql.ErrNoRows.
var ErrNoRows = sql.ErrNoRows

// InTx runs fn in a transaction, and tries again with jitter if the database reports a deadlock, a serialization
// failure or that it is busy, also at COMMIT. So fn must be repeatable. InTx returns an error at COMMIT whose outcome
// is unknown: only the caller knows what to read again.
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
			// A standby may refuse to begin with the code of a temporary error.
			if _, identity := s.Dialect.Identity(ctx, s.On(), s.Names); s.Dialect.Classify(
				identity,
			) == dialect.ClassReadOnly {
				return identity
			}
		}
		s.Observer.Retried(feedtype.RetryEvent{Doing: doing, Attempt: attempt, Err: err})
		if err := Pause(ctx, Backoff(attempt)); err != nil {
			return err
		}
	}
}

// Backoff doubles from firstBackoff to maxBackoff, with Jitter.
func Backoff(attempt int) time.Duration {
	return Jitter(min(firstBackoff<<min(attempt-1, 20), maxBackoff))
}

// Jitter returns between 0.5 and 1.5 of d, so that processes that failed together do not try again together.
func Jitter(d time.Duration) time.Duration { return d/2 + rand.N(max(d, 1)) }

// Pause waits, and returns the context's error if the context ends first.
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

// Outage returns the pause before a publisher tries again after this many failures in a row.
func Outage(failures int) time.Duration {
	return min(100*time.Millisecond<<min(failures, 6), 5*time.Second)
}
