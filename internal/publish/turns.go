package publish

import (
	"context"
	"errors"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/lease"
	"github.com/rowfeed/rowfeed/internal/store"
)

// turnPatience is how often in a row a publisher fails before it gives up its turn.
const turnPatience = 3

// LeaseName is the name of the lease through which the publishers of a feed take
// turns.
func LeaseName(feed string) string { return "publish:" + feed }

// takeTurns publishes whenever it has the feed's lease. On MariaDB, whose read views are
// not atomic, readers that query the tables without rowfeed may miss a position while
// two publishers follow one another closely; elsewhere a second one only costs.
func (f *Publisher) takeTurns(ctx context.Context) error {
	turns := lease.New(f.Store, LeaseName(f.Name), f.Lease)
	observer := f.Store.Observer
	failures, behind := 0, int64(-1)
	turns.StandBy = func(_ context.Context, s *feedtype.LeaseStatus) error {
		failures = 0
		f.SetProblems(nil) // they are the holder's to tell
		if s.Epoch != behind {
			behind = s.Epoch
			observer.Lease(feedtype.LeaseEvent{Feed: f.Name, Name: s.Name, Owner: s.Owner, Epoch: s.Epoch, Since: s.Since})
		}
		return nil
	}
	for ctx.Err() == nil {
		t, err := turns.Acquire(ctx)
		if err == nil {
			failures, behind = 0, -1
			observer.Lease(feedtype.LeaseEvent{Feed: f.Name, Name: turns.Name, Owner: t.Owner(), Epoch: t.Epoch(), Since: time.Now(), Mine: true})
			var gaveUp error
			err = t.Hold(ctx, func(ctx context.Context, _ *lease.Term) error {
				gaveUp = f.keepPublishing(ctx, turnPatience)
				return gaveUp
			})
			if errors.Is(gaveUp, errCannotPublish) {
				// The lease is released: whatever keeps this publisher from its work (a missing
				// right, a network of its own) may not keep the others.
				if store.Pause(ctx, store.Jitter(turns.TTL)) != nil {
					return nil
				}
				continue
			}
			if gaveUp != nil {
				return gaveUp
			}
		}
		if ctx.Err() != nil {
			return nil
		}
		if err == nil || errors.Is(err, feedtype.LeaseLost) {
			continue // publishing was safe all along; whose turn it is will be seen
		}
		if err = f.Explain(ctx, "publish", err); errors.Is(err, feedtype.UnknownFeed) {
			return err
		}
		failures++
		f.SetProblems([]string{withoutDriver(err)})
		observer.Trouble(feedtype.TroubleEvent{Feed: f.Name, Err: err})
		if store.Pause(ctx, store.Outage(failures)) != nil {
			return nil
		}
	}
	return nil
}
