package consume

import (
	"context"

	"github.com/rowfeed/rowfeed/feedtype"
)

// open learns what the source is, and sees to it that the database has the consumer's
// cursors, one for each shard. Only an instance that starts changes their number.
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
		return &feedtype.Error{Code: feedtype.Conflict, Object: a.object(), Cause: "its shards, or the whole of them, are a feed by themselves now, and were not when this instance was started: another feed has its name",
			Next: "start it again"}
	case ulidFeed && (a.c.OnBegin != nil || a.c.OnComplete != nil):
		return feedtype.Invalid("on complete", "each shard of the feed is one by itself, with passes of its own: OnBegin and OnComplete are about a pass over the whole feed")
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
		starting = false // it takes what there is, and changes nothing
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
	return nil
}
