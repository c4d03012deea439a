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

// awaitFormer waits until nobody works any more on the shards that the consumer had before
// their number was changed. Who does has a batch on its way to the receiver and learns of
// the change when its cursor is to be stored: it would be overtaken by later versions of the
// same keys. It ends by itself, with a conflict, or its lease runs out. Where effects and
// cursor are of one transaction nothing is on its way.
func (r *consuming) awaitFormer(ctx context.Context) error {
	if r.c.Handle != nil {
		return nil
	}
	for told, idle := false, 10*firstIdle; ; idle = min(2*idle, maxIdle) {
		holder, err := r.formerHolder(ctx)
		if err = r.survive(ctx, err); err != nil {
			return err
		}
		if holder == nil {
			return nil
		}
		if !told {
			told = true
			r.trouble(&feedtype.Error{Code: feedtype.LeaseTaken, Object: r.object(), Cause: fmt.Sprintf("%s still works on a shard of before, under the lease %q", holder.Owner, holder.Name),
				Next: "wait until it has brought to its end what it has in hand"})
		}
		if err := r.pause(ctx, store.Jitter(idle)); err != nil {
			return err
		}
	}
}

// formerHolder is somebody who holds a lease of the consumer's shards of another number; nil
// where nobody does.
func (r *consuming) formerHolder(ctx context.Context) (*feedtype.LeaseStatus, error) {
	db, group := r.c.DB, ConsumerGroup(r.c.Name, r.feed)
	b := dialect.NewBuilder(db.Store.Dialect)
	// Names compare by their bytes in every database; '0' is the one behind '/'.
	all, err := dialect.QueryAll(ctx, db.Store.On(), lease.Columns(db.Store)+" WHERE name >= "+b.Arg(group+"/")+" AND name < "+b.Arg(group+"0")+
		" OR name = "+b.Arg(r.c.SoleLease), b.Args(), lease.Scan)
	if err != nil {
		return nil, err
	}
	if err := r.stillOf(ctx); err != nil {
		return nil, err // of two that have divided one after the other the first ends
	}
	i := slices.IndexFunc(all, func(s *feedtype.LeaseStatus) bool {
		switch {
		case !lease.Held(s), strings.HasPrefix(s.Name, lease.GroupPrefix(group, r.count)), strings.Contains(strings.TrimPrefix(s.Name, group), "/seat/"):
			return false
		case s.Name == r.c.SoleLease:
			return r.count > 1
		}
		return true
	})
	if i >= 0 {
		return all[i], nil
	}
	return nil, nil
}

// stillOf answers an error where the consumer's shards are of another number by now.
func (r *consuming) stillOf(ctx context.Context) error {
	count, err := r.c.DB.countOf(ctx, r.c.Name, r.feed)
	if err == nil && count > 0 && count != r.count {
		err = r.recounted(count)
	}
	return err
}

// awaitDeposed tells whether nobody works any more on another shard under a term that is
// over, since all cursors were set back; it pauses where somebody does. The keys may have
// been divided anew, and he has a batch on its way, of keys that may be this shard's by now:
// they would go from new versions back to old ones. He learns of it when his cursor is to be
// stored, or his lease runs out. It is asked once a term: whoever sets the cursors back
// later ends this one, too.
func (r *consuming) awaitDeposed(ctx context.Context) (alone bool, err error) {
	if r.c.Handle != nil || r.count == 1 || r.ofShard || r.alone {
		return true, nil
	}
	holder, err := r.deposedHolder(ctx)
	if err != nil || holder == nil {
		r.alone = err == nil
		return r.alone, err
	}
	if !r.told {
		r.told = true
		r.trouble(&feedtype.Error{Code: feedtype.LeaseTaken, Object: r.object(), Cause: fmt.Sprintf("waits for %s, who still works under the lease %q on what was set back", holder.Owner, holder.Name),
			Next: "wait until it has brought to its end what it has in hand"})
	}
	return false, r.pause(ctx, store.Jitter(maxIdle))
}

// deposedHolder is somebody who holds the lease of another of the consumer's shards under an
// epoch below that of its cursor; nil where nobody does. Leases are read after the cursors: a
// term that begins in between is above its cursor.
func (r *consuming) deposedHolder(ctx context.Context) (*feedtype.LeaseStatus, error) {
	db := r.c.DB
	rows, err := db.CursorsOf(ctx, db.Store.On(), r.c.Name, r.feed)
	if err != nil {
		return nil, err
	}
	leases, err := lease.NewGroup(db.Store, ConsumerGroup(r.c.Name, r.feed), r.count, r.lease()).Look(ctx)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if s := leases.Jobs[row.Shard]; s != nil && lease.Held(s) && s.Epoch < row.Epoch && row.Shard != r.shard {
			return s, nil
		}
	}
	return nil, nil
}
