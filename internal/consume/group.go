package consume

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/lease"
)

// defaultConsumerLease is the default of Consumer.Lease.
const defaultConsumerLease = 10 * time.Second

// ConsumerLeases begins the names of the leases of consumers' shards.
const ConsumerLeases = "consumer:"

// ConsumerGroup is the name of the group whose jobs are a consumer's shards: with it
// JobLease names the lease of each. Of a name that is too long for that a digest is left.
func ConsumerGroup(consumer, feed string) string {
	name := ConsumerLeases + feed + ":" + consumer
	if len(name) <= lease.MaxGroupName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	digest := "~" + hex.EncodeToString(sum[:8])
	return name[:lease.MaxGroupName-len(digest)] + digest
}

func (r *consuming) lease() time.Duration {
	if r.c.Lease > 0 {
		return r.c.Lease
	}
	return defaultConsumerLease
}

// together works on the shards that this instance is to have, beside the others of the
// consumer's name, until ctx ends.
func (r *consuming) together(ctx context.Context) error {
	// Handlers may have their transactions open for long. Where the pool is bounded they
	// leave connections for pages, and for the leases' renewal above all.
	if most := r.c.DB.Store.SQL.Stats().MaxOpenConnections; most > 0 {
		r.slots = make(chan struct{}, max(1, most-2))
	}
	g := lease.NewGroup(r.c.DB.Store, ConsumerGroup(r.c.Name, r.feed), r.count, r.lease())
	g.Above = r.epochOf
	return g.Run(ctx, func(ctx context.Context, j *lease.Job) error {
		// A shard that somebody else is to have is not waited on any more; what is in hand
		// is brought to its end.
		until, stop := context.WithCancel(ctx)
		defer stop()
		go func() {
			select {
			case <-j.HandOver():
				stop()
			case <-until.Done():
			}
		}()
		if r.byShard {
			return r.inTurns(ctx, until, j.Number(), j.Term().Epoch())
		}
		return r.workOrRest(ctx, until, j.Number(), j.Term().Epoch())
	})
}

// epochOf is the epoch under which the shard's cursor was last claimed. The next one is
// greater, also where the number of shards, and with it the lease, is another than before.
func (r *consuming) epochOf(ctx context.Context, shard int) (int64, error) {
	if r.byShard { // a worker has had many, and any of them may be this one's
		return r.c.DB.ConsumerEpoch(ctx, r.c.Name, r.feed)
	}
	row, err := r.c.DB.cursorOf(ctx, r.c.DB.Store.On(), r.c.Name, r.feed, shard)
	if err != nil {
		return 0, err
	}
	// In this order: who does not find the cursor any more finds what drop has kept of it.
	kept, err := lease.Look(ctx, r.c.DB.Store, r.c.DB.Store.On(), droppedLease(r.c.Name, r.feed))
	switch {
	case err != nil:
		return 0, err
	case row == nil:
		return kept.Epoch, nil
	}
	return max(row.Epoch, kept.Epoch), nil
}

// inTurn works on one shard up to the head, under its lease where effects go elsewhere:
// nothing but the lease keeps them apart from those of another instance.
func (r *consuming) inTurn(ctx context.Context, shard int) error {
	if r.c.Handle != nil {
		return r.work(ctx, ctx, shard, 0)
	}
	turns := lease.New(r.c.DB.Store, lease.JobLease(ConsumerGroup(r.c.Name, r.feed), r.count, shard), r.lease())
	turns.Above = func(ctx context.Context) (int64, error) { return r.epochOf(ctx, shard) }
	told := int64(0)
	turns.StandBy = func(ctx context.Context, s *feedtype.LeaseStatus) error {
		if s.Epoch != told {
			told = s.Epoch
			r.c.DB.Store.Observer.Job(feedtype.JobEvent{Group: ConsumerGroup(r.c.Name, r.feed), Jobs: r.count, Job: shard, Kind: feedtype.JobStandsBy, Owner: s.Owner, Epoch: s.Epoch})
		}
		// One that is paused does not come to its head, whoever has it.
		if r.byShard {
			if err := r.pausedOf(ctx, shard); errors.Is(err, feedtype.ConsumerPaused) || errors.Is(err, feedtype.Conflict) {
				return err
			}
			return nil
		}
		waiting := r.bare(ctx, shard, 0)
		row, err := waiting.loadCursor(ctx)
		switch {
		case err == nil && row.Paused:
			return waiting.isPaused()
		case errors.Is(err, feedtype.Conflict): // it has another number of shards by now
			return err
		}
		return nil
	}
	for {
		deposed := false
		err := turns.Hold(ctx, func(ctx context.Context, t *lease.Term) error {
			err := r.work(ctx, ctx, shard, t.Epoch())
			deposed = errors.Is(err, feedtype.LeaseLost) && t.Context().Err() == nil
			return err
		})
		if !deposed {
			return err
		}
		// The lease was held, and the cursor is above it: all were set back, see restart.
	}
}

// ShardLeases are the leases of cursors' shards that somebody holds, by name. It asks
// nobody where no consumer has more than one shard.
func (db *Consumers) ShardLeases(ctx context.Context, rows []*CursorRow) (map[string]*feedtype.LeaseStatus, error) {
	if !slices.ContainsFunc(rows, func(r *CursorRow) bool { return r.ShardCount > 1 }) {
		return nil, nil
	}
	b := dialect.NewBuilder(db.Store.Dialect)
	all, err := dialect.QueryAll(ctx, db.Store.On(), lease.Columns(db.Store)+" WHERE name >= "+b.Arg(ConsumerLeases)+
		" AND name < "+b.Arg(strings.TrimSuffix(ConsumerLeases, ":")+";"), b.Args(), lease.Scan) // ';' is the one behind ':'
	if err != nil {
		return nil, db.Store.Fail("leases", "list those of consumers", err)
	}
	held := map[string]*feedtype.LeaseStatus{}
	for _, s := range all {
		if lease.Held(s) {
			held[s.Name] = s
		}
	}
	return held, nil
}
