package read

import (
	"context"
	"errors"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/watch"
)

// Standings implements feedtype.ShardSource. A waiting caller sends no statement of its own: it is answered with what
// the watcher's poll has read.
func (f *Reader) Standings(ctx context.Context, since string, wait time.Duration) (*feedtype.Standings, error) {
	seen, ok := watch.ParseDigest(since)
	if !ok || wait <= 0 {
		return f.watermarks(ctx)
	}
	over, end := context.WithTimeout(ctx, wait)
	defer end()
	for {
		how, woken, news := f.Watch.Wait(over, watch.EveryShard(f.Name), seen, true)
		switch {
		case ctx.Err() != nil:
			return nil, f.Fail("wait for its shards", ctx.Err())
		case how == watch.Quiet, over.Err() != nil:
			return &feedtype.Standings{Digest: since}, nil
		}
		shards, at, ok := f.Watch.ShardsKnown(f.Name)
		if ok && woken != nil && at == news && at.Generation == f.Generation() {
			return &feedtype.Standings{Digest: at.Digest(), Shards: shards}, nil
		}
		// A publisher of this process reported one shard, so the watcher does not know all of them.
		if now, err := f.watermarks(ctx); err != nil || now.Digest != since {
			return now, err
		}
	}
}

// watermarks reads the watermarks of the feed's shards.
func (f *Reader) watermarks(ctx context.Context) (*feedtype.Standings, error) {
	fail := func(err error) (*feedtype.Standings, error) {
		return nil, f.Fail("read the watermarks of its shards", err)
	}
	for reloaded := false; ; reloaded = true {
		asked, err := f.Poller.Ask(ctx, watch.Question{Waiting: true, Shards: []watch.Key{watch.EveryShard(f.Name)}})
		if err != nil {
			return fail(err)
		}
		all := asked.At
		_, found := all[watch.Key{Feed: f.Name}]
		at, _ := watch.Of(all, watch.EveryShard(f.Name))
		if reloaded || found && at.Generation == f.Generation() {
			if err := f.ShardsAreFeeds(); err != nil {
				return fail(err)
			}
			s := &feedtype.Standings{Digest: at.Digest(), Shards: map[int]string{}}
			for key, at := range all {
				if key.Feed == f.Name && key.OfShard && !key.Every {
					s.Shards[key.Shard] = at.String()
				}
			}
			return s, nil
		}
		if err := f.Reload(ctx); err != nil {
			return fail(err)
		}
	}
}

// ShardsAreFeeds refuses a sequence feed, whose data shards share one order.
func (f *Reader) ShardsAreFeeds() error {
	r := f.Record.Load()
	if r.Unreadable != nil || r.Mode != feedtype.ModeSequence {
		return r.Unreadable
	}
	return &feedtype.Error{
		Code:   feedtype.InvalidRequest,
		Object: feedtype.FeedObject(f.Name),
		Cause:  "its shards are not feeds of their own",
		Err:    errors.ErrUnsupported,
		Next:   "read the whole feed, or one shard of it with shard_count",
	}
}
