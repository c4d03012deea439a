package publish

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/lease"
	"github.com/rowfeed/rowfeed/internal/watch"
)

// standBy waits for the lease. Meanwhile it publishes changes that the holder leaves waiting. It calls found with the
// holder each time that another process has the lease.
func (f *Publisher) standBy(
	ctx context.Context, l *lease.Lease, found func(*feedtype.LeaseStatus),
) (*lease.Claim, error) {
	var holder atomic.Pointer[feedtype.LeaseStatus]
	var background sync.WaitGroup
	defer background.Wait()
	inner, stop := context.WithCancel(ctx)
	defer stop()
	l.StandBy = func(_ context.Context, s *feedtype.LeaseStatus) error {
		found(s)
		if holder.Swap(s) == nil && f.Store.Publishes() {
			background.Go(func() { f.standIn(inner, holder.Load) })
		}
		return nil
	}
	return l.Acquire(ctx)
}

// standIn publishes until ctx ends, but only changes that the holder of the lease leaves waiting. It reports no
// failures: the holder reports its own, and so does the next holder.
func (f *Publisher) standIn(ctx context.Context, holder func() *feedtype.LeaseStatus) {
	before, reported := "", int64(-1)
	for ctx.Err() == nil {
		polls := f.Watch.Polls()
		var now string
		p, err := f.Positioner()
		if err == nil {
			err = f.Quota.Use(ctx, func() (err error) { now, err = p.Waiting(ctx); return err })
		}
		switch {
		case err != nil:
			before = ""
			watch.Doze(ctx, nil, watch.StandByPause)
		case now == "":
			before = ""
			f.Watch.StandBy(ctx, f.Name, polls, VerifyEvery)
		case now != before:
			before = now
			watch.Doze(ctx, nil, max(watch.StandByPause, 2*f.IdlePoll))
		default: // No publisher has given a position for a while, although changes have waited.
			before = ""
			n, err := f.passes(ctx, watch.StandByPause)
			if s := holder(); n > 0 && err == nil && s.Epoch != reported {
				reported = s.Epoch
				f.Store.Observer.Lease(feedtype.LeaseEvent{Feed: f.Name, Name: s.Name, Owner: s.Owner, Epoch: s.Epoch,
					Since: s.Since, Stalled: true})
			}
		}
	}
}

// passes publishes until a pass does not find its limit, or until d has passed. It returns the number of changes.
func (f *Publisher) passes(ctx context.Context, d time.Duration) (n int, err error) {
	batch := newBatchSize(f.BatchSize)
	for began, full := time.Now(), false; ; full = true {
		e, err := f.pass(ctx, batch.size, full)
		n += e.Changes
		if err != nil || e.Changes < batch.size || time.Since(began) > d {
			return n, err
		}
		batch.adapt(e)
	}
}
