package publish

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

// failures counts the failed passes of a publisher since its last success.
type failures struct {
	mu       sync.Mutex
	attempts int
	cleared  time.Time // when a success last removed the stored failure
}

// clearEvery is how often a success removes a failure that this process does not know of: another process may have
// stored it after this one has read the record, or a note may have been committed after its timeout.
const clearEvery = time.Minute

// noteTimeout limits how long a pass waits until its failure is stored or removed.
const noteTimeout = 2 * time.Second

// survive reports and notes a failed pass after which the publisher continues. It returns the pause until the next.
func (f *Publisher) survive(ctx context.Context, err error, failures int) time.Duration {
	pause := store.Outage(failures)
	if errors.Is(err, feedtype.Locked) {
		err = f.nameBlockers(ctx, err)
		pause = min(pause, lockedPause)
	}
	f.SetProblems([]string{withoutDriverText(err)})
	f.failed(ctx, err, pause)
	return pause
}

// failed reports and notes a failed pass that the publisher survives.
func (f *Publisher) failed(ctx context.Context, err error, pause time.Duration) {
	f.Store.Observer.Trouble(feedtype.TroubleEvent{Feed: f.Name, Attempt: f.note(ctx, err, pause), Err: err})
}

// note counts a failed pass, and stores it with the feed (see store.NotesFailure). pause is the time until the next
// one; 0 means that there is none. It returns the number of passes that have failed in a row.
func (f *Publisher) note(ctx context.Context, err error, pause time.Duration) int {
	s := &f.failures
	s.mu.Lock()
	if known := f.Record.Load().Failure; known != nil {
		s.attempts = max(s.attempts, known.Attempts)
	}
	s.attempts++
	attempts := s.attempts
	s.mu.Unlock()
	if !store.NotesFailure(attempts, pause) || !f.Store.Publishes() || errors.Is(err, feedtype.UnknownFeed) {
		return attempts
	}
	f.update(ctx, "failed", dialect.Args{"feed": f.Name, "attempts": attempts, "pause": store.Micros(pause),
		"failure": store.FailureText(err, feedtype.FeedObject(f.Name))})
	return attempts
}

// update changes the stored failure. The database may be what fails, and the next pass must not wait for it. So an
// error is ignored: a later pass stores or removes the failure.
func (f *Publisher) update(ctx context.Context, statement string, args dialect.Args) {
	ctx, stop := context.WithTimeout(ctx, noteTimeout)
	defer stop()
	_, _ = f.Store.Exec(ctx, f.Store.On(), statements, statement, args)
}

// recovered ends a failure after a success. It sends a statement after a failure, and otherwise at the first success
// and once every clearEvery.
func (f *Publisher) recovered(ctx context.Context) {
	r := f.Record.Load()
	attempts, due := f.failures.end(r.Failure, time.Now())
	if !due {
		return
	}
	if r.Failure != nil {
		healthy := *r
		healthy.Failure = nil
		healthy.Keep(f.Store.Names)
		f.Record.CompareAndSwap(r, &healthy) // otherwise it has just been read again
	}
	f.update(ctx, "recovered", dialect.Args{"feed": f.Name})
	if attempts > 0 {
		f.Store.Observer.Recovered(feedtype.RecoveredEvent{Feed: f.Name, Attempts: attempts})
	}
}

// end forgets the failed passes, and returns their number. known is the failure that the feed's record has. due is true
// if the stored failure has to be removed.
func (s *failures) end(known *feedtype.Failure, now time.Time) (attempts int, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	attempts = s.attempts
	if known != nil {
		attempts = max(attempts, known.Attempts)
	}
	if attempts == 0 && known == nil && now.Sub(s.cleared) < clearEvery {
		return 0, false
	}
	s.attempts, s.cleared = 0, now
	return attempts, true
}
