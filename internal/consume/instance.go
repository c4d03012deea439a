package consume

import (
	"context"
	"errors"
	"fmt"

	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/lease"
)

// instance is one call of Run or RunOnce: all shards that it has of a consumer's.
type instance struct {
	*assignment // without a shard, what all of them have
	retry       retry
	// slots, where there is one, has room for the transactions that this instance's shards
	// may have open at once.
	slots chan struct{}
	// setBack, if once, is where a shard notes that it has set all of them back.
	setBack bool
}

// Consume is Run and RunOnce.
func (c *Consumer) Consume(ctx context.Context, once bool) error {
	if err := c.validate(); err != nil {
		return err
	}
	whole, err := c.newInstance(ctx, once)
	if err != nil {
		return err
	}
	return whole.allShards(ctx)
}

// Divide sees to it that there is a cursor for each shard.
func (c *Consumer) Divide(ctx context.Context) error {
	if err := c.validate(); err != nil {
		return err
	}
	divide := *c
	divide.KeepShardCount = false
	_, err := divide.newInstance(ctx, true)
	return err
}

// newInstance is the start of an instance, the only time at which it may change the number of
// shards.
func (c *Consumer) newInstance(ctx context.Context, once bool) (*instance, error) {
	a := &assignment{c: c.withDefaults(), db: c.DB, once: once, shard: -1, count: c.ShardCount, epoch: c.Epoch, until: ctx}
	whole := &instance{assignment: a, retry: retry{assignment: a}}
	for whole.feed == "" {
		err := whole.retry.survive(ctx, whole.open(ctx, !c.KeepShardCount))
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			return nil, err
		}
	}
	return whole, nil
}

// allShards works on the only shard there is; or, where there are more, on those that
// this instance is to have; or, if once, on one after the other, up to the head.
func (in *instance) allShards(ctx context.Context) error {
	if in.c.Handle == nil {
		if err := (&staleOwners{assignment: in.assignment, retry: &in.retry}).waitForOldCount(ctx); err != nil {
			return err
		}
	}
	switch {
	case in.count == 1 && !in.ulidFeed:
		return in.work(ctx, ctx, 0, in.epoch)
	case in.count == 1:
		return in.runWorker(ctx, ctx, 0, in.epoch)
	case !in.once:
		return in.shareShards(ctx)
	}
	for {
		in.setBack = false
		if err := in.shardByShard(ctx); err != nil || !in.setBack {
			return err
		}
		// One has set back those that had come to the head before it.
	}
}

// shardByShard brings each shard to the head.
func (in *instance) shardByShard(ctx context.Context) error {
	var first error // of the shards that stand still; the others go on
	more := 0
	for shard := range in.count {
		err := in.inTurn(ctx, shard)
		switch {
		case ctx.Err() != nil: // also when it came to the head in this moment: others have not
			return ctx.Err()
		case errors.Is(err, feedtype.Conflict):
			return err
		case first == nil:
			first = err
		case err != nil:
			more++
		}
	}
	return andMore(first, more)
}

// work works on one shard, until the end of until: see one and run.
func (in *instance) work(ctx, until context.Context, shard int, epoch int64) error {
	if in.ulidFeed {
		return in.runWorker(ctx, until, shard, epoch)
	}
	one, err := in.newRun(until, shard, epoch)
	if err != nil {
		return err
	}
	err = one.run(ctx)
	in.setBack = in.setBack || one.setBack
	return err
}

// workThroughFailures is work on one of several shards. One whose entry cannot be handled rests, under
// its lease, and is tried again now and then: if its error ended the instance, the shard's
// next one would end as well, and so on, until nobody worked on any.
func (in *instance) workThroughFailures(ctx, until context.Context, shard int, epoch int64) error {
	one, err := in.newRun(until, shard, epoch)
	if err != nil {
		return err
	}
	for {
		err := one.run(ctx)
		if err == nil || ctx.Err() != nil || !stopsOneShard(err) {
			return err
		}
		one.cursor.row = nil
		one.trouble(err)
		if err := one.rest(ctx, err); err != nil {
			return err
		}
	}
}

// newRun is one shard of the instance's, under the lease of an epoch if there is one. It is for one
// goroutine, and works until the end of until.
func (in *instance) newRun(until context.Context, shard int, epoch int64) (*shardRun, error) {
	one := newShardRun(in.of(until, shard, epoch), in.slots)
	if in.c.DeliverShard == nil {
		return one, nil
	}
	return one, in.deliverTo(one)
}

// deliverTo asks for the shard's Deliver.
func (in *instance) deliverTo(one *shardRun) (err error) {
	if one.applier.deliver, err = in.c.deliverOf(one.shard, one.epoch); err != nil {
		return &feedtype.Error{Code: feedtype.HandlerFailed, Object: in.object(), Cause: fmt.Sprintf("DeliverShard failed for shard %d", one.shard), Err: err,
			Next: "have it answer a function for every shard"}
	}
	return nil
}

// together works on the shards that this instance is to have, beside the others of the
// consumer's name, until ctx ends.
func (in *instance) shareShards(ctx context.Context) error {
	// Handlers may have their transactions open for long. Where the pool is bounded they
	// leave connections for pages, and for the leases' renewal above all.
	if most := in.db.Store.SQL.Stats().MaxOpenConnections; most > 0 {
		in.slots = make(chan struct{}, max(1, most-2))
	}
	g := lease.NewGroup(in.db.Store, ConsumerGroup(in.c.Name, in.feed), in.count, in.c.Lease)
	g.Above = in.epochOf
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
		if in.ulidFeed {
			return in.runWorker(ctx, until, j.Number(), j.Term().Epoch())
		}
		return in.workThroughFailures(ctx, until, j.Number(), j.Term().Epoch())
	})
}

// epochOf is the epoch under which the shard's cursor was last claimed. The next one is
// greater, also where the number of shards, and with it the lease, is another than before.
func (in *instance) epochOf(ctx context.Context, shard int) (int64, error) {
	if in.ulidFeed { // a worker has had many, and any of them may be this one's
		return in.db.ConsumerEpoch(ctx, in.c.Name, in.feed)
	}
	row, err := in.db.cursorOf(ctx, in.db.Store.On(), in.c.Name, in.feed, shard)
	if err != nil {
		return 0, err
	}
	// In this order: who does not find the cursor any more finds what drop has kept of it.
	kept, err := lease.Look(ctx, in.db.Store, in.db.Store.On(), droppedLease(in.c.Name, in.feed))
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
func (in *instance) inTurn(ctx context.Context, shard int) error {
	if in.c.Handle != nil {
		return in.work(ctx, ctx, shard, 0)
	}
	turns := lease.New(in.db.Store, lease.JobLease(ConsumerGroup(in.c.Name, in.feed), in.count, shard), in.c.Lease)
	turns.Above = func(ctx context.Context) (int64, error) { return in.epochOf(ctx, shard) }
	told := int64(0)
	turns.StandBy = func(ctx context.Context, s *feedtype.LeaseStatus) error {
		if s.Epoch != told {
			told = s.Epoch
			in.db.Store.Observer.Job(feedtype.JobEvent{Group: ConsumerGroup(in.c.Name, in.feed), Jobs: in.count, Job: shard, Kind: feedtype.JobStandsBy, Owner: s.Owner, Epoch: s.Epoch})
		}
		// One that is paused does not come to its head, whoever has it.
		if in.ulidFeed {
			if err := in.pausedOf(ctx, shard); errors.Is(err, feedtype.ConsumerPaused) || errors.Is(err, feedtype.Conflict) {
				return err
			}
			return nil
		}
		waiting := &cursorState{assignment: in.of(ctx, shard, 0)}
		row, err := waiting.load(ctx)
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
			err := in.work(ctx, ctx, shard, t.Epoch())
			deposed = errors.Is(err, feedtype.LeaseLost) && t.Context().Err() == nil
			return err
		})
		if !deposed {
			return err
		}
		// The lease was held, and the cursor is above it: all were set back, see restart.
	}
}
