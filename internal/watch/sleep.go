package watch

import (
	"context"
	"time"
)

// StandByPause is the pause between polls for publishers that stand by, unless polls for all sleepers are rarer.
const StandByPause = 800 * time.Millisecond

// sleeper is a publisher that found no change for a while, or stands by, and leaves polling to the watcher.
type sleeper struct {
	feed  string
	poll  time.Duration // the maximum pause between polls for it
	awake chan struct{} // closed when the publisher has to look for changes itself
}

// Polls is the number of completed polls. A publisher reads it before it looks for changes, and passes it to Sleep. So
// it notices a poll that completed in between.
func (w *Watcher) Polls() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended
}

// Sleep returns when a poll after the given number of polls has found that something may have changed, on a signal from
// wake, after d, or when ctx ends.
func (w *Watcher) Sleep(ctx context.Context, feed string, since int64, wake <-chan struct{}, d time.Duration) {
	w.sleep(ctx, feed, w.sleepPoll, since, wake, d)
}

// StandBy is Sleep for a publisher that stands by. Polls for it are rarer, and it returns no earlier than the next of
// them, however often the watcher polls for others.
func (w *Watcher) StandBy(ctx context.Context, feed string, since int64, d time.Duration) {
	began, poll := time.Now(), max(StandByPause, w.sleepPoll)
	w.sleep(ctx, feed, poll, since, nil, d)
	Doze(ctx, nil, poll-time.Since(began))
}

func (w *Watcher) sleep(
	ctx context.Context, feed string, poll time.Duration, since int64, wake <-chan struct{}, d time.Duration,
) {
	w.mu.Lock()
	if w.lastChange > since || w.outage > 0 {
		failing := w.outage > 0
		w.mu.Unlock()
		if failing { // until polls succeed, each publisher looks for changes itself
			Doze(ctx, wake, min(d, poll))
		}
		return
	}
	s := &sleeper{feed: feed, poll: poll, awake: make(chan struct{})}
	w.sleepers[s] = struct{}{}
	w.schedule()
	w.mu.Unlock()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	case <-wake:
	case <-s.awake:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.sleepers, s)
	w.stopIfIdle()
}

// wakePublishers wakes the sleepers for which a poll has found a change. A failed poll wakes all of them. w.mu is held.
func (w *Watcher) wakePublishers(round int64, a answer, err error) {
	if a.committed || err != nil {
		w.lastChange = round
	}
	for s := range w.sleepers {
		if a.committed || err != nil || a.changed[s.feed] {
			delete(w.sleepers, s)
			close(s.awake)
		}
	}
}

// Serve notes that a publisher of this process works on a feed, until the caller calls end. The publisher reports what
// it publishes (Tell), so finding its changes does not make polls more frequent.
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

// Doze returns after d, on a signal from wake, or when ctx ends.
func Doze(ctx context.Context, wake <-chan struct{}, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	case <-wake:
	}
}
