package watch

import (
	"context"
	"time"
) // A publisher that has found nothing for a while sleeps: it leaves the looking to the watcher,
// which looks once for all who sleep and all who wait.

// sleeper is a publisher asleep.
type sleeper struct {
	feed string
	up   chan struct{} // closed when it is to look itself
}

// Looked is the number of looks that have told what they found. Who is about to ask the database
// whether he may sleep takes it along: what is told from then on is news to him.
func (w *Watcher) Looked() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended
}

// Sleep returns when something may have changed since that many looks, when somebody wants the
// publisher awake, when the time is over or ctx ends.
func (w *Watcher) Sleep(ctx context.Context, feed string, since int64, wake <-chan struct{}, d time.Duration) {
	w.mu.Lock()
	if w.stirred > since || w.outage > 0 {
		failing := w.outage > 0
		w.mu.Unlock()
		if failing { // each looks himself meanwhile
			Doze(ctx, wake, min(d, w.asleep))
		}
		return
	}
	s := &sleeper{feed: feed, up: make(chan struct{})}
	w.sleepers[s] = struct{}{}
	w.wanted()
	w.mu.Unlock()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	case <-wake:
	case <-s.up:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.sleepers, s)
	w.unwanted()
}

// rouse wakes the sleepers for whom a look has found something; w.mu is held. A look that
// failed has found that nothing is known.
func (w *Watcher) rouse(round int64, a answer, err error) {
	if a.stirred || err != nil {
		w.stirred = round
	}
	for s := range w.sleepers {
		if a.stirred || err != nil || a.changed[s.feed] {
			delete(w.sleepers, s)
			close(s.up)
		}
	}
}

// Serve says that a publisher of this process is at work on a feed, until it is called: it tells
// of what it publishes, and looks need not be frequent for the sake of that.
func (w *Watcher) Serve(feed string) (end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.serving[feed]++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.serving[feed]--; w.serving[feed] == 0 {
			delete(w.serving, feed)
		}
	}
}

// Doze ends when the time is over, when something wakes or with ctx.
func Doze(ctx context.Context, wake <-chan struct{}, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	case <-wake:
	}
}
