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

// staleOwners waits for workers whose lease was overtaken and who have a batch on its way.
type staleOwners struct {
	*assignment
	retry *retry
	// alone: nobody delivers under a term that is over, see waitForStale; told that it has
	// said for whom it waits.
	alone, told bool
}

// waitForOldCount waits until nobody works any more on the shards that the consumer had before
// their number was changed. Who does has a batch on its way to the receiver and learns of
// the change when its cursor is to be stored: it would be overtaken by later versions of the
// same keys. It ends by itself, with a conflict, or its lease runs out. Where effects and
// cursor are of one transaction nothing is on its way.
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
			o.trouble(&feedtype.Error{Code: feedtype.LeaseTaken, Object: o.object(), Cause: fmt.Sprintf("%s still works on a shard of before, under the lease %q", holder.Owner, holder.Name),
				Next: "wait until it has brought to its end what it has in hand"})
		}
		if err := o.retry.pause(ctx, store.Jitter(idle)); err != nil {
			return err
		}
	}
}

// oldCountHolder is somebody who holds a lease of the consumer's shards of another number; nil
// where nobody does.
func (o *staleOwners) oldCountHolder(ctx context.Context) (*feedtype.LeaseStatus, error) {
	db, group := o.db, ConsumerGroup(o.c.Name, o.feed)
	b := db.builder()
	// Names compare by their bytes in every database; '0' is the one behind '/'.
	all, err := dialect.QueryAll(ctx, db.Store.On(), lease.Columns(db.Store)+" WHERE name >= "+b.Arg(group+"/")+" AND name < "+b.Arg(group+"0")+
		" OR name = "+b.Arg(o.c.SoleLease), b.Args(), lease.Scan)
	if err != nil {
		return nil, err
	}
	if err := o.checkShardCount(ctx); err != nil {
		return nil, err // of two that have divided one after the other the first ends
	}
	i := slices.IndexFunc(all, func(s *feedtype.LeaseStatus) bool {
		switch {
		case !lease.Held(s), strings.HasPrefix(s.Name, lease.GroupPrefix(group, o.count)), strings.Contains(strings.TrimPrefix(s.Name, group), "/seat/"):
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

// checkShardCount answers an error where the consumer's shards are of another number by now.
func (o *staleOwners) checkShardCount(ctx context.Context) error {
	count, err := o.db.countOf(ctx, o.c.Name, o.feed)
	if err == nil && count > 0 && count != o.count {
		err = o.shardCountChanged(count)
	}
	return err
}

// waitForStale tells whether nobody works any more on another shard under a term that is
// over, since all cursors were set back; it pauses where somebody does. The keys may have
// been divided anew, and he has a batch on its way, of keys that may be this shard's by now:
// they would go from new versions back to old ones. He learns of it when his cursor is to be
// stored, or his lease runs out. It is asked once a term: whoever sets the cursors back
// later ends this one, too.
func (o *staleOwners) waitForStale(ctx context.Context) error {
	holder, err := o.staleHolder(ctx)
	if err != nil || holder == nil {
		o.alone = err == nil
		return err
	}
	if !o.told {
		o.told = true
		o.trouble(&feedtype.Error{Code: feedtype.LeaseTaken, Object: o.object(), Cause: fmt.Sprintf("waits for %s, who still works under the lease %q on what was set back", holder.Owner, holder.Name),
			Next: "wait until it has brought to its end what it has in hand"})
	}
	return o.retry.pause(ctx, store.Jitter(maxIdle))
}

// staleHolder is somebody who holds the lease of another of the consumer's shards under an
// epoch below that of its cursor; nil where nobody does. Leases are read after the cursors: a
// term that begins in between is above its cursor.
func (o *staleOwners) staleHolder(ctx context.Context) (*feedtype.LeaseStatus, error) {
	db := o.db
	rows, err := db.CursorsOf(ctx, db.Store.On(), o.c.Name, o.feed)
	if err != nil {
		return nil, err
	}
	leases, err := lease.NewGroup(db.Store, ConsumerGroup(o.c.Name, o.feed), o.count, o.c.Lease).Look(ctx)
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
