package consume

import (
	"context"

	"github.com/rowfeed/rowfeed/feedtype"
)

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
	return nil
}
