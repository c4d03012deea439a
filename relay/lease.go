package relay

import (
	"context"

	"github.com/rowfeed/rowfeed"
)

// LeaseName is the name of the lease through which the instances of a relay take turns.
func LeaseName(name, feed string) string { return "relay:" + feed + ":" + name }

// hold runs fn while this instance has the relay's lease. What it does in the database
// after that is refused by the epoch, see rowfeed.Consumer.Epoch; what it delivers is not,
// but carries its epoch.
func (r *Relay) hold(ctx context.Context, feed string, fn func(ctx context.Context, epoch int64) error) error {
	ttl := r.Lease
	if ttl == 0 {
		ttl = defaultLease
	}
	lease := r.db().Lease(LeaseName(r.Name, feed), ttl)
	// The relay may have had several shards before, which had leases of their own.
	var err error
	if lease.Above, err = r.db().ConsumerEpoch(ctx, r.Name, feed); err != nil {
		return err
	}
	return lease.Hold(ctx, func(ctx context.Context, t *rowfeed.Term) error {
		return fn(ctx, t.Epoch())
	})
}
