package consume

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

// Consume is Run and RunOnce.
func (c *Consumer) Consume(ctx context.Context, once bool) error {
	if err := c.validate(); err != nil {
		return err
	}
	whole, err := c.begin(ctx, once)
	if err != nil {
		return err
	}
	return whole.everyShard(ctx)
}

// Divide sees to it that there is a cursor for each shard.
func (c *Consumer) Divide(ctx context.Context) error {
	if err := c.validate(); err != nil {
		return err
	}
	divide := *c
	divide.KeepShardCount = false
	_, err := divide.begin(ctx, true)
	return err
}

// begin is the start of an instance, the only time at which it may change the number of
// shards.
func (c *Consumer) begin(ctx context.Context, once bool) (*consuming, error) {
	whole := &consuming{c: c, once: once, shard: -1, count: c.ShardCount, epoch: c.Epoch, until: ctx, idle: firstIdle}
	for whole.feed == "" {
		err := whole.survive(ctx, whole.open(ctx, !c.KeepShardCount))
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			return nil, err
		}
	}
	return whole, nil
}

// everyShard works on the only shard there is; or, where there are more, on those that
// this instance is to have; or, if once, on one after the other, up to the head.
func (r *consuming) everyShard(ctx context.Context) error {
	if err := r.awaitFormer(ctx); err != nil {
		return err
	}
	switch {
	case r.count == 1 && !r.byShard:
		return r.work(ctx, ctx, 0, r.epoch)
	case r.count == 1:
		return r.inTurns(ctx, ctx, 0, r.epoch)
	case !r.once:
		return r.together(ctx)
	}
	for {
		r.setBack = new(bool)
		if err := r.oneAfterTheOther(ctx); err != nil || !*r.setBack {
			return err
		}
		// One has set back those that had come to the head before it.
	}
}

// oneAfterTheOther brings each shard to the head.
func (r *consuming) oneAfterTheOther(ctx context.Context) error {
	var first error // of the shards that stand still; the others go on
	more := 0
	for shard := range r.count {
		err := r.inTurn(ctx, shard)
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
func (r *consuming) work(ctx, until context.Context, shard int, epoch int64) error {
	if r.byShard {
		return r.inTurns(ctx, until, shard, epoch)
	}
	one, err := r.one(until, shard, epoch)
	if err != nil {
		return err
	}
	return one.run(ctx)
}

// one is one shard of r's, under the lease of an epoch if there is one. It is for one
// goroutine, and works until the end of until.
func (r *consuming) one(until context.Context, shard int, epoch int64) (*consuming, error) {
	one := r.bare(until, shard, epoch)
	if r.c.DeliverShard != nil {
		deliver, err := r.c.deliverOf(shard, epoch)
		if err != nil {
			return nil, &feedtype.Error{Code: feedtype.HandlerFailed, Object: r.object(), Cause: fmt.Sprintf("DeliverShard failed for shard %d", shard), Err: err,
				Next: "have it answer a function for every shard"}
		}
		c := *r.c
		c.Deliver = deliver
		one.c = &c
	}
	return one, nil
}

// bare is one shard of r's that delivers nothing yet.
func (r *consuming) bare(until context.Context, shard int, epoch int64) *consuming {
	return &consuming{c: r.c, once: r.once, shard: shard, count: r.count, epoch: epoch, until: until, slots: r.slots, setBack: r.setBack,
		feed: r.feed, byShard: r.byShard, key: r.key, generation: r.generation, idle: firstIdle}
}

// deliverOf calls DeliverShard; a panic is an error, like Deliver's.
func (c *Consumer) deliverOf(shard int, epoch int64) (deliver func(context.Context, []feedtype.Entry) ([]feedtype.Refusal, error), err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	if deliver = c.DeliverShard(shard, epoch); deliver == nil {
		err = errors.New("it answered no function")
	}
	return deliver, err
}

// shards is the part of the feed that is asked for.
func (r *consuming) shards() feedtype.Shards {
	switch {
	case r.ofShard:
		return feedtype.One(r.shard)
	case r.count == 1:
		return feedtype.Shards{}
	}
	return feedtype.Part(r.shard, r.count)
}

// whole is the feed that the shard is of: itself, where it is one.
func (r *consuming) whole() feedtype.Shards {
	if r.ofShard {
		return feedtype.One(r.shard)
	}
	return feedtype.Shards{}
}

// pause waits, or answers the context's error; it ends early where there is no use in
// waiting any more. A shard that has its turns only says so: it holds nobody up.
func (r *consuming) pause(ctx context.Context, d time.Duration) error {
	if r.ofShard {
		r.notBefore = time.Now().Add(d)
		return nil
	}
	if err := store.Pause(r.until, d); err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return nil
}

// open learns what the source is, and sees to it that the database has the consumer's
// cursors, one for each shard. Only an instance that starts changes their number.
func (r *consuming) open(ctx context.Context, starting bool) error {
	if err := r.c.DB.Store.RequireSchema(ctx, r.c.DB.Store.On()); err != nil {
		return err
	}
	info, err := r.c.Source.Info(ctx)
	if err != nil {
		return err
	}
	if err := feedtype.ValidName(info.Name); err != nil {
		return err
	}
	byShard := info.ShardIDs != nil
	switch {
	case r.feed != "" && byShard != r.byShard:
		return &feedtype.Error{Code: feedtype.Conflict, Object: r.object(), Cause: "its shards, or the whole of them, are a feed by themselves now, and were not when this instance was started: another feed has its name",
			Next: "start it again"}
	case byShard && (r.c.OnBegin != nil || r.c.OnComplete != nil):
		return feedtype.Invalid("on complete", "each shard of the feed is one by itself, with passes of its own: OnBegin and OnComplete are about a pass over the whole feed")
	}
	if r.c.ShardCount == 0 && r.feed == "" {
		if r.count, err = r.c.DB.ConsumerShardCount(ctx, r.c.Name, info.Name); err != nil {
			return err
		}
		counted := *r.c
		counted.ShardCount = r.count
		if err := counted.validate(); err != nil {
			return err
		}
		starting = false // it takes what there is, and changes nothing
	}
	arrange := r.arrange
	if byShard {
		arrange = r.arrangeShards
	}
	if err := arrange(ctx, info, starting); err != nil {
		return err
	}
	r.feed, r.byShard, r.key, r.generation = info.Name, byShard, info.Key, info.Generation
	return nil
}
