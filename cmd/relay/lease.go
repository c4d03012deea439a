package relay

import (
	"context"
	"fmt"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
)

// LeaseName returns the name of the lease by which the instances of a relay take turns.
func LeaseName(name, feed string) string { return feedtype.RelayLease(name, feed) }

// hold runs fn while this instance holds the relay's lease. Once the lease is lost, the epoch refuses further writes
// in the database, see rowfeed.RelayConsumer.Epoch. Entries may still be delivered; they carry the lower epoch.
func (r *Relay) hold(
	ctx context.Context, feed string, once bool, fn func(ctx context.Context, epoch int64) error,
) error {
	ttl := r.Lease
	if ttl == 0 {
		ttl = defaultLease
	}
	lease := r.db().Lease(LeaseName(r.Name, feed), ttl)
	// The relay may have had several shards before, with leases of their own.
	lease.Above = func(ctx context.Context) (int64, error) { return r.db().Admin().ConsumerEpoch(ctx, r.Name, feed) }
	told := int64(0)
	lease.StandBy = func(ctx context.Context, s *rowfeed.LeaseStatus) error {
		if s.Epoch != told {
			told = s.Epoch
			r.observe(Event{Kind: StandingBy, Relay: r.Name, Feed: feed, Owner: s.Owner, Epoch: s.Epoch})
		}
		if !once {
			return nil
		}
		// A paused relay never reaches its head, whichever instance holds the lease.
		paused, err := r.db().Admin().PausedShards(ctx, rowfeed.ConsumerID{Consumer: r.Name, Feed: feed})
		if err == nil && len(paused) > 0 {
			err = &rowfeed.Error{Code: rowfeed.ConsumerPaused,
				Object: fmt.Sprintf("consumer %q of feed %q", r.Name, feed), Cause: "it is paused",
				Next: "run `rowfeed consumer resume " + r.Name + " --feed " + feed + "`"}
		}
		return err
	}
	return lease.Hold(ctx, func(ctx context.Context, c *rowfeed.Claim) error {
		return fn(ctx, c.Epoch())
	})
}
