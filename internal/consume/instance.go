package consume

import (
	"context"
	"errors"
	"fmt"

	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/lease"
)

// instance is one call of Run or RunOnce. It decides which shards this process works on.
type instance struct {
	*assignment // with a negative shard
	retry       retry
	// slots limits the number of open transactions of this instance. It is nil if the pool has no limit.
	slots chan struct{}
	// setBack means that a shard has set back the cursors of all shards (RunOnce only).
	setBack bool
}

// Consume is Run, or RunOnce if once is set.
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

// Divide creates the cursors, one for each shard, and changes their number if it differs.
func (c *Consumer) Divide(ctx context.Context) error {
	if err := c.validate(); err != nil {
		return err
	}
	divide := *c
	divide.KeepShardCount = false
	_, err := divide.newInstance(ctx, true)
	return err
}

// newInstance opens the feed. Only here may an instance change the number of shards.
func (c *Consumer) newInstance(ctx context.Context, once bool) (*instance, error) {
	a := &assignment{c: c.withDefaults(), db: c.DB, once: once, shard: -1, count: c.ShardCount, epoch: c.Epoch,
		until: ctx}
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

// allShards works on the only shard; or on the shards that the group assigns to this instance; or, with RunOnce, on
// one shard after the other.
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
		// A shard has set back all shards, including those that had reached the head.
	}
}

// shardByShard brings each shard to the head. A shard that cannot continue does not stop the others.
func (in *instance) shardByShard(ctx context.Context) error {
	var first error // of a shard that cannot continue
	more := 0
	for shard := range in.count {
		err := in.inTurn(ctx, shard)
		switch {
		case ctx.Err() != nil: // even if this shard has reached the head: the others have not
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

// work works on one shard, or on the shards of one worker of a ULID feed, until until ends.
func (in *instance) work(ctx, until context.Context, shard int, epoch int64) error {
	if in.ulidFeed {
		return in.runWorker(ctx, until, shard, epoch)
	}
	one, err := in.newRun(until, shard, epoch)
	if err != nil {
		return err
	}
	err = one.run(ctx)
	one.retry.ended(ctx, err)
	if one.setBack {
		in.setBack, in.dataShards = true, one.dataShards
	}
	return err
}

// workThroughFailures works on one of several shards. If an entry cannot be handled, the shard rests under its lease,
// and is tried again later. If the error ended the instance, the next instance would fail on the same entry, until
// none was left.
func (in *instance) workThroughFailures(ctx, until context.Context, shard int, epoch int64) error {
	one, err := in.newRun(until, shard, epoch)
	if err != nil {
		return err
	}
	for {
		err := one.run(ctx)
		if err == nil || ctx.Err() != nil || !stopsOneShard(err) {
			one.retry.ended(ctx, err)
			return err
		}
		one.cursor.row = nil
		one.trouble(err)
		if err := one.rest(ctx, err); err != nil {
			return err
		}
	}
}

// newRun prepares the work on one shard.
func (in *instance) newRun(until context.Context, shard int, epoch int64) (*shardRun, error) {
	one := newShardRun(in.of(until, shard, epoch), in.slots)
	if in.c.DeliverShard == nil {
		return one, nil
	}
	return one, in.deliverTo(one)
}

// deliverTo asks DeliverShard for the Deliver of the shard.
func (in *instance) deliverTo(one *shardRun) (err error) {
	if one.applier.deliver, err = in.c.deliverOf(one.shard, one.epoch); err != nil {
		return &feedtype.Error{Code: feedtype.HandlerFailed, Object: in.object(),
			Cause: fmt.Sprintf("the function DeliverShard failed for shard %d", one.shard), Err: err,
			Next: "correct the function, so that it returns a Deliver for every shard"}
	}
	return nil
}

// shareShards works on the shards that the group assigns to this instance, until ctx ends.
func (in *instance) shareShards(ctx context.Context) error {
	// Handlers may keep transactions open for a long time. In a limited pool they leave two connections,
	// for pages and above all for the renewal of leases.
	if most := in.db.Store.SQL.Stats().MaxOpenConnections; most > 0 {
		in.slots = make(chan struct{}, max(1, most-2))
	}
	g := lease.NewGroup(in.db.Store, ConsumerGroup(in.c.Name, in.feed), in.count, in.c.Lease)
	g.Above = in.epochOf
	return g.Run(ctx, func(ctx context.Context, j *lease.Job) error {
		// A shard that is to be handed over stops waiting, and finishes its current batch.
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
			return in.runWorker(ctx, until, j.Number(), j.Claim().Epoch())
		}
		return in.workThroughFailures(ctx, until, j.Number(), j.Claim().Epoch())
	})
}

// epochOf returns the highest epoch of the shard's cursor. The next lease gets a higher one, even if the shard count
// and so the name of the lease has changed.
func (in *instance) epochOf(ctx context.Context, shard int) (int64, error) {
	if in.ulidFeed { // shards move between workers, so the highest of all epochs counts
		return in.db.ConsumerEpoch(ctx, in.c.Name, in.feed)
	}
	row, err := in.db.cursorOf(ctx, in.db.Store.On(), in.c.Name, in.feed, shard)
	if err != nil {
		return 0, err
	}
	// Read the cursor before the kept epoch: drop keeps the epoch before it deletes the cursor.
	kept, err := lease.Read(ctx, in.db.Store, in.db.Store.On(), droppedLease(in.c.Name, in.feed))
	switch {
	case err != nil:
		return 0, err
	case row == nil:
		return kept.Epoch, nil
	}
	return max(row.Epoch, kept.Epoch), nil
}

// inTurn works on one shard up to the head. With Deliver it holds the lease of the shard: only the lease keeps two
// instances from delivering at once.
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
			in.db.Store.Observer.Job(feedtype.JobEvent{Group: ConsumerGroup(in.c.Name, in.feed), Jobs: in.count,
				Job: shard, Kind: feedtype.JobStandsBy, Owner: s.Owner, Epoch: s.Epoch})
		}
		// A paused shard never reaches its head, whichever instance holds it.
		if in.ulidFeed {
			if err := in.pausedOf(ctx, shard); errors.Is(err, feedtype.ConsumerPaused) ||
				errors.Is(err, feedtype.Conflict) {
				return err
			}
			return nil
		}
		waiting := &cursorState{assignment: in.of(ctx, shard, 0)}
		row, err := waiting.load(ctx)
		switch {
		case err == nil && row.Paused:
			return waiting.isPaused()
		case errors.Is(err, feedtype.Conflict): // the shard count has changed
			return err
		}
		return nil
	}
	for {
		deposed := false
		err := turns.Hold(ctx, func(ctx context.Context, c *lease.Claim) error {
			err := in.work(ctx, ctx, shard, c.Epoch())
			deposed = errors.Is(err, feedtype.LeaseLost) && c.Context().Err() == nil
			return err
		})
		if !deposed {
			return err
		}
		// The lease is held, and the epoch of the cursor is higher: all shards were set back. See restart.
	}
}
