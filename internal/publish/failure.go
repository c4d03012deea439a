package publish

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/catalog"
	"github.com/rowfeed/rowfeed/internal/store"
)

// failures counts the failed passes of a publisher since its last success.
type failures struct {
	mu       sync.Mutex
	attempts int
	stored   bool
	// cleared is the record whose failure was removed from the table after the record was read.
	cleared *catalog.FeedRecord
}

// noteTimeout limits how long a failed pass waits until its error is stored.
const noteTimeout = 2 * time.Second

// failed reports and notes a failed pass that the publisher survives.
func (f *Publisher) failed(ctx context.Context, err error, pause time.Duration) {
	f.Store.Observer.Trouble(feedtype.TroubleEvent{Feed: f.Name, Attempt: f.note(ctx, err, pause), Err: err})
}

// note counts a failed pass, and stores it with the feed (see store.NotesFailure). pause is the time until the next
// one; 0 means that there is none. It returns the number of passes that have failed in a row.
func (f *Publisher) note(ctx context.Context, err error, pause time.Duration) int {
	s := &f.failures
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := f.Record.Load(); r.Failure != nil && r != s.cleared {
		s.attempts = max(s.attempts, r.Failure.Attempts)
	}
	s.attempts++
	if !store.NotesFailure(s.attempts, pause) || !f.Store.Publishes() || errors.Is(err, feedtype.UnknownFeed) {
		return s.attempts
	}
	// The database may be what fails. The next pass must not wait for it.
	ctx, stop := context.WithTimeout(ctx, noteTimeout)
	defer stop()
	b := dialect.NewBuilder(f.Store.Dialect)
	if _, failed := f.Store.On().Exec(ctx, "UPDATE "+f.Store.Table("feeds")+" SET "+f.Store.SetFailure(b,
		store.FailureText(err, feedtype.FeedObject(f.Name)), s.attempts, pause)+" WHERE name = "+b.Arg(f.Name),
		b.Args()...); failed == nil {
		s.stored = true
	}
	return s.attempts
}

// recovered ends a failure after a success. It sends a statement only if a failure is stored, by this process or
// another one.
func (f *Publisher) recovered(ctx context.Context) {
	s := &f.failures
	s.mu.Lock()
	defer s.mu.Unlock()
	r := f.Record.Load()
	stored := s.stored || r.Failure != nil && r != s.cleared
	if s.attempts == 0 && !stored {
		return
	}
	if stored {
		b := dialect.NewBuilder(f.Store.Dialect)
		if _, err := f.Store.On().Exec(ctx, "UPDATE "+f.Store.Table("feeds")+" SET "+store.ClearFailure+
			" WHERE name = "+b.Arg(f.Name), b.Args()...); err != nil {
			s.stored, s.cleared = false, r // tried again when the record has been read again
			return
		}
		if r.Failure != nil {
			s.attempts = max(s.attempts, r.Failure.Attempts)
		}
	}
	f.Store.Observer.Recovered(feedtype.RecoveredEvent{Feed: f.Name, Attempts: s.attempts})
	s.attempts, s.stored, s.cleared = 0, false, r
}
