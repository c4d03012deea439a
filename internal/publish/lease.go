package publish

import (
	"context"
	"errors"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/lease"
	"github.com/rowfeed/rowfeed/internal/store"
)

// maxFailures is how often in a row a publisher fails before it releases its lease.
const maxFailures = 3

// LeaseName returns the name of the lease that the publishers of a feed share.
func LeaseName(feed string) string { return "publish:" + feed }

// publishWithLease publishes while it holds the feed's lease. The lease saves work. Only on MariaDB it also protects
// readers that query the tables without rowfeed: read views are not atomic there, so such a reader may miss a position
// while two publishers follow each other closely.
func (f *Publisher) publishWithLease(ctx context.Context) error {
	l := lease.New(f.Store, LeaseName(f.Name), f.Lease)
	observer := f.Store.Observer
	failures, seenEpoch := 0, int64(-1)
	found := func(s *feedtype.LeaseStatus) {
		failures = 0
		f.SetProblems(nil) // The holder reports the feed's problems.
		if s.Epoch != seenEpoch {
			seenEpoch = s.Epoch
			observer.Lease(
				feedtype.LeaseEvent{Feed: f.Name, Name: s.Name, Owner: s.Owner, Epoch: s.Epoch, Since: s.Since},
			)
		}
	}
	for ctx.Err() == nil {
		c, err := f.standBy(ctx, l, found)
		if err == nil {
			failures, seenEpoch = 0, -1
			observer.Lease(feedtype.LeaseEvent{
				Feed: f.Name, Name: l.Name, Owner: c.Owner(), Epoch: c.Epoch(), Since: time.Now(), Mine: true})
			var ended error
			err = c.Hold(ctx, func(ctx context.Context, _ *lease.Claim) error {
				ended = f.publishLoop(ctx, maxFailures)
				return ended
			})
			if errors.Is(ended, errCannotPublish) {
				// The lease is released. What stops this publisher (a missing right, its network) may not stop others.
				if store.Pause(ctx, store.Jitter(l.TTL)) != nil {
					return nil
				}
				continue
			}
			if ended != nil {
				return ended
			}
		}
		if ctx.Err() != nil {
			return nil
		}
		if err == nil || errors.Is(err, feedtype.LeaseLost) {
			continue // The lock of the sequence made publishing safe all along.
		}
		if err = f.Explain(ctx, "publish", err); errors.Is(err, feedtype.UnknownFeed) {
			return err
		}
		failures++
		f.SetProblems([]string{withoutDriverText(err)})
		pause := store.Outage(failures)
		f.failed(ctx, err, pause)
		if store.Pause(ctx, pause) != nil {
			return nil
		}
	}
	return nil
}
