package rowfeed

import (
	"context"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/watch"
)

// Standings implements ShardSource. Who waits costs the watcher's looks, which all share, and
// no statement besides: he is answered with the look that has woken him.
func (f *Feed) Standings(ctx context.Context, since string, wait time.Duration) (*feedtype.Standings, error) {
	seen, ok := watch.ParseDigest(since)
	if !ok || wait <= 0 {
		return f.standings(ctx)
	}
	over, end := context.WithTimeout(ctx, wait)
	defer end()
	for {
		how, woken, news := f.db.watch.Wait(over, watch.EveryShard(f.name), seen, true)
		switch {
		case ctx.Err() != nil:
			return nil, f.db.store.Fail(feedtype.FeedObject(f.name), "wait for its shards", ctx.Err())
		case how == watch.Quiet, over.Err() != nil:
			return &feedtype.Standings{Digest: since}, nil
		}
		if shards, at, ok := f.db.watch.ShardsKnown(f.name); ok && woken != nil && at == news && at.Generation == f.Generation() {
			return &feedtype.Standings{Digest: at.Digest(), Shards: shards}, nil
		}
		// A publisher of this process has told of one shard.
		if now, err := f.standings(ctx); err != nil || now.Digest != since {
			return now, err
		}
	}
}

// standings reads how far the feed's shards are.
func (f *Feed) standings(ctx context.Context) (*feedtype.Standings, error) {
	fail := func(err error) (*feedtype.Standings, error) {
		return nil, f.db.store.Fail(feedtype.FeedObject(f.name), "ask how far its shards are", err)
	}
	for fresh := false; ; fresh = true {
		asked, err := f.db.looks.Ask(ctx, watch.Question{Waiting: true, Shards: []watch.Key{watch.EveryShard(f.name)}})
		if err != nil {
			return fail(err)
		}
		all := asked.At
		_, there := all[watch.Key{Feed: f.name}]
		at, _ := watch.Of(all, watch.EveryShard(f.name))
		if fresh || there && at.Generation == f.Generation() {
			if err := f.mode().byShard(f); err != nil {
				return fail(err)
			}
			s := &feedtype.Standings{Digest: at.Digest(), Shards: map[int]string{}}
			for key, at := range all {
				if key.Feed == f.name && key.OfShard && !key.Every {
					s.Shards[key.Shard] = at.String()
				}
			}
			return s, nil
		}
		if err := f.catalog.Reload(ctx); err != nil {
			return fail(err)
		}
	}
}
