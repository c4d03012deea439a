package consume

import (
	"context"
	"fmt"

	"github.com/rowfeed/rowfeed/feedtype"
)

// assignment is what one goroutine of a consumer works on: a shard of a feed, under a lease.
type assignment struct {
	c            *Consumer
	db           *Consumers
	once         bool
	shard, count int   // it works on shard of count; on all if shard is negative
	epoch        int64 // of its lease: see Consumer.Epoch
	// until ends when the shard is to be handed over: the current batch is finished, and nothing is
	// waited for. It is derived from the context of run.
	until context.Context
	// ulidShard means that the shard is a shard of a ULID feed, and takes turns with others: see worker.
	ulidShard bool

	// open has read the rest from the feed's description. Before that, feed is empty.
	feed       string
	ulidFeed   bool              // each shard has an order and a cursor of its own
	key        []feedtype.Column // to decode the keys of dead letters
	generation int64
	dataShards int // of the feed: see feedtype.MaxParts
}

// open reads the description of the feed, and creates the cursors of the consumer, one for each shard. Only an
// instance that starts changes their number.
func (a *assignment) open(ctx context.Context, starting bool) error {
	if err := a.db.Store.RequireSchema(ctx, a.db.Store.On()); err != nil {
		return err
	}
	info, err := a.c.Source.Info(ctx)
	if err != nil {
		return err
	}
	if err := feedtype.ValidName(info.Name); err != nil {
		return err
	}
	ulidFeed := info.ShardIDs != nil
	switch {
	case a.feed != "" && ulidFeed != a.ulidFeed:
		return a.fail(feedtype.Conflict, "the feed has changed between a ULID feed and another kind since this "+
			"instance was started: another feed has its name now", "start it again")
	case ulidFeed && (a.c.OnBegin != nil || a.c.OnComplete != nil):
		return feedtype.Invalid("on complete", "the shards of a ULID feed have passes of their own, but OnBegin and "+
			"OnComplete are about a pass over the whole feed")
	}
	if a.c.ShardCount == 0 && a.feed == "" {
		if a.count, err = a.db.ConsumerShardCount(ctx, a.c.Name, info.Name); err != nil {
			return err
		}
		counted := *a.c
		counted.ShardCount = a.count
		if err := counted.validate(); err != nil {
			return err
		}
		starting = false // without a ShardCount nothing is changed
	}
	if ulidFeed {
		err = (&shardCursors{a}).arrange(ctx, info, starting)
	} else {
		err = arrange(ctx, a.c, a.count, info, starting)
	}
	if err != nil {
		return err
	}
	a.feed, a.ulidFeed, a.key, a.generation = info.Name, ulidFeed, info.Key, info.Generation
	a.dataShards = feedtype.MaxParts(info.DataShards)
	return nil
}

// of returns the assignment of one shard of the same consumer. An epoch of 0 means that there is no lease.
func (a *assignment) of(until context.Context, shard int, epoch int64) *assignment {
	one := *a
	one.until, one.shard, one.epoch, one.ulidShard = until, shard, epoch, false
	return &one
}

func (a *assignment) object() string {
	if a.feed == "" {
		return fmt.Sprintf("consumer %q", a.c.Name)
	}
	if a.ulidShard {
		return fmt.Sprintf("%s, shard %d", consumerObject(a.c.Name, a.feed), a.shard)
	}
	if a.count > 1 && a.shard >= 0 {
		return fmt.Sprintf("%s, shard %d of %d", consumerObject(a.c.Name, a.feed), a.shard, a.count)
	}
	return consumerObject(a.c.Name, a.feed)
}

// fail returns an error about this shard.
func (a *assignment) fail(code feedtype.Code, cause, next string) *feedtype.Error {
	return &feedtype.Error{Code: code, Object: a.object(), Cause: cause, Next: next}
}

func (a *assignment) trouble(err error) {
	a.db.Store.Observer.Trouble(feedtype.TroubleEvent{Feed: a.feed, Consumer: a.c.Name, Shard: max(a.shard, 0),
		ShardCount: a.count, Err: err})
}

func (a *assignment) isPaused() error {
	return a.fail(feedtype.ConsumerPaused, "it is paused",
		"run `rowfeed consumer resume "+a.c.Name+" --feed "+a.feed+"`")
}

// shardCountChanged is the error of an instance whose shard count differs from that of the stored cursors.
func (a *assignment) shardCountChanged(count int) error {
	return a.fail(feedtype.Conflict, fmt.Sprintf("its cursors are of %d shards, and this instance is to work on %d: "+
		"an instance that was started later has changed the shard count", count, a.count),
		"give all instances the same number of shards, then start this one again")
}

// shards returns the part of the feed that this shard reads.
func (a *assignment) shards() feedtype.Shards {
	switch {
	case a.ulidShard:
		return feedtype.One(a.shard)
	case a.count == 1:
		return feedtype.Shards{}
	}
	return feedtype.Part(a.shard, a.count)
}

// whole returns the feed in which dead letters are read again. For a shard of a ULID feed it is that shard.
func (a *assignment) whole() feedtype.Shards {
	if a.ulidShard {
		return feedtype.One(a.shard)
	}
	return feedtype.Shards{}
}
