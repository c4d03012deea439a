package consume

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/lease"
	"github.com/rowfeed/rowfeed/internal/store"
)

// staleOwners waits for workers that have lost their shard and may still deliver a batch. It matters only for Deliver:
// with Handle, effects and cursor are one transaction.
type staleOwners struct {
	*assignment
	retry *retry
	// alone means that no stale owner is left. told means that the wait was reported.
	alone, told bool
}

// waitForOldCount blocks until no worker of a former shard count holds a lease. Such a worker notices the change only
// when it stores its cursor. Until then its batch would arrive after newer versions of the same keys. It ends with a
// conflict, or its lease expires.
func (o *staleOwners) waitForOldCount(ctx context.Context) error {
	for told, idle := false, 10*firstIdle; ; idle = min(2*idle, maxIdle) {
		holder, err := o.oldCountHolder(ctx)
		if err = o.retry.survive(ctx, err); err != nil {
			return err
		}
		if holder == nil {
			return nil
		}
		if !told {
			told = true
			o.trouble(o.fail(feedtype.LeaseTaken, fmt.Sprintf("worker %s still delivers entries of a shard of the "+
				"former shard count, under the lease %q", holder.Owner, holder.Name),
				"wait until it ends: after its current batch, or when its lease expires"))
		}
		if err := o.retry.pause(ctx, store.Jitter(idle)); err != nil {
			return err
		}
	}
}

// oldCountHolder returns a held lease of another shard count of this consumer, or nil.
func (o *staleOwners) oldCountHolder(ctx context.Context) (*feedtype.LeaseStatus, error) {
	db, group := o.db, ConsumerGroup(o.c.Name, o.feed)
	all, err := lease.Which(ctx, db.Store, db.part("leases_of_consumer", dialect.Args{
		"groups": group + "/", "beyond_groups": group + "0", "sole": o.c.SoleLease})) // '0' follows '/' in ASCII
	if err != nil {
		return nil, err
	}
	if err := o.checkShardCount(ctx); err != nil {
		return nil, err // another instance has changed the count again
	}
	i := slices.IndexFunc(all, func(s *feedtype.LeaseStatus) bool {
		switch {
		case !lease.Held(s), strings.HasPrefix(s.Name, lease.GroupPrefix(group, o.count)),
			strings.Contains(strings.TrimPrefix(s.Name, group), "/seat/"):
			return false
		case s.Name == o.c.SoleLease:
			return o.count > 1
		}
		return true
	})
	if i >= 0 {
		return all[i], nil
	}
	return nil, nil
}

// checkShardCount returns an error if the shard count of the consumer has changed.
func (o *staleOwners) checkShardCount(ctx context.Context) error {
	count, err := o.db.countOf(ctx, o.c.Name, o.feed)
	if err == nil && count > 0 && count != o.count {
		err = o.shardCountChanged(count)
	}
	return err
}

// waitForStale pauses if a worker still holds a shard under an epoch that was overtaken when all cursors were set
// back. Its batch may contain keys that belong to this shard now, in older versions. It ends when it stores its
// cursor, or when its lease expires. One success per lease is enough: a later reset ends this lease too.
func (o *staleOwners) waitForStale(ctx context.Context) error {
	holder, err := o.staleHolder(ctx)
	if err != nil || holder == nil {
		o.alone = err == nil
		return err
	}
	if !o.told {
		o.told = true
		o.trouble(o.fail(feedtype.LeaseTaken, fmt.Sprintf("worker %s still delivers entries of a shard that was set "+
			"back, under the lease %q", holder.Owner, holder.Name),
			"wait until it ends: after its current batch, or when its lease expires"))
	}
	return o.retry.pause(ctx, store.Jitter(maxIdle))
}

// staleHolder returns a held lease of another shard whose epoch is below that of its cursor, or nil. Leases are read
// after cursors: a lease that is acquired in between has an epoch above its cursor.
func (o *staleOwners) staleHolder(ctx context.Context) (*feedtype.LeaseStatus, error) {
	db := o.db
	rows, err := db.CursorsOf(ctx, db.Store.On(), o.c.Name, o.feed)
	if err != nil {
		return nil, err
	}
	leases, err := lease.NewGroup(db.Store, ConsumerGroup(o.c.Name, o.feed), o.count, o.c.Lease).Read(ctx)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if s := leases.Jobs[row.Shard]; s != nil && lease.Held(s) && s.Epoch < row.Epoch && row.Shard != o.shard {
			return s, nil
		}
	}
	return nil, nil
}
