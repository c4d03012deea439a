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
	shard, count int   // it has shard of count; all of them, where shard is below 0
	epoch        int64 // of the lease under which it works, see Consumer.Epoch
	// until ends when run is to end with what it has in hand, and nothing is waited for any
	// more. It is made of the context that run gets.
	until context.Context
	// ulidShard: the shard is one of a feed each shard of which is one by itself, and takes turns with others.
	ulidShard bool

	// What open has learnt of the feed; feed is empty before.
	feed       string
	ulidFeed   bool              // each shard of the feed is one by itself: see worker
	key        []feedtype.Column // to read dead letters' keys
	generation int64
}

// of is a shard of a's consumer, under the lease of an epoch if there is one.
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

func (a *assignment) trouble(err error) {
	a.db.Store.Observer.Trouble(feedtype.TroubleEvent{Feed: a.feed, Consumer: a.c.Name, Shard: max(a.shard, 0), ShardCount: a.count, Err: err})
}

func (a *assignment) isPaused() error {
	return &feedtype.Error{Code: feedtype.ConsumerPaused, Object: a.object(), Cause: "it is paused", Next: "run `rowfeed consumer resume " + a.c.Name + " --feed " + a.feed + "`"}
}

// shardCountChanged is the error of an instance that finds another number of shards than it has.
func (a *assignment) shardCountChanged(count int) error {
	return &feedtype.Error{Code: feedtype.Conflict, Object: a.object(), Cause: fmt.Sprintf("its cursors are of %d shards, and this instance is to work on %d: one that was started later has divided them anew", count, a.count),
		Next: "give all instances the same number of shards, then start this one again"}
}

// shards is the part of the feed that is asked for.
func (a *assignment) shards() feedtype.Shards {
	switch {
	case a.ulidShard:
		return feedtype.One(a.shard)
	case a.count == 1:
		return feedtype.Shards{}
	}
	return feedtype.Part(a.shard, a.count)
}

// whole is the feed that the shard is of: itself, where it is one.
func (a *assignment) whole() feedtype.Shards {
	if a.ulidShard {
		return feedtype.One(a.shard)
	}
	return feedtype.Shards{}
}
