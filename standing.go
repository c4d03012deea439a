package rowfeed

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
)

// String is a standing as Standings shows it.
func (s standing) String() string {
	text := fmt.Sprintf("%d:%s", s.generation, s.head)
	if s.waiting {
		text += "+" // as good as an entry
	}
	return text
}

// everyShard is what has the standing of all shards of a feed together: its head is a digest
// of theirs, and of two that differ neither is ahead.
func everyShard(feed string) watchKey { return watchKey{feed: feed, ofShard: true, every: true} }

// together adds the standings of feeds as a whole to those of their shards, where somebody
// waits for them: of other feeds not all shards were read.
func together(all map[watchKey]standing, waited []watchKey) map[watchKey]standing {
	feeds := make(map[watchKey]standing)
	for key, at := range all {
		if !key.ofShard || !slices.Contains(waited, everyShard(key.feed)) {
			continue
		}
		h := fnv.New128a()
		fmt.Fprintf(h, "%d %s", key.shard, at)
		sum := h.Sum(nil)
		whole := feeds[everyShard(key.feed)] // whatever the order in which they come
		whole.generation = at.generation
		whole.head.High ^= binary.BigEndian.Uint64(sum[:8])
		whole.head.Low ^= binary.BigEndian.Uint64(sum[8:])
		feeds[everyShard(key.feed)] = whole
	}
	maps.Copy(all, feeds)
	return all
}

func (s standing) digest() string {
	return fmt.Sprintf("%d-%016x%016x", s.generation, s.head.High, s.head.Low)
}

// parseDigest is the standing that a digest was made of.
func parseDigest(text string) (at standing, ok bool) {
	generation, head, _ := strings.Cut(text, "-")
	if len(head) != 32 {
		return at, false
	}
	var errs [3]error
	at.generation, errs[0] = strconv.ParseInt(generation, 10, 64)
	at.head.High, errs[1] = strconv.ParseUint(head[:16], 16, 64)
	at.head.Low, errs[2] = strconv.ParseUint(head[16:], 16, 64)
	return at, errors.Join(errs[:]...) == nil
}

// Standings implements ShardSource. Who waits costs the watcher's looks, which all share, and
// no statement besides: he is answered with the look that has woken him.
func (f *Feed) Standings(ctx context.Context, since string, wait time.Duration) (*feedtype.Standings, error) {
	seen, ok := parseDigest(since)
	if !ok || wait <= 0 {
		return f.standings(ctx)
	}
	over, end := context.WithTimeout(ctx, wait)
	defer end()
	for {
		how, woken, news := f.db.watch.wait(over, everyShard(f.name), seen, true)
		switch {
		case ctx.Err() != nil:
			return nil, f.db.store.Fail(feedtype.FeedObject(f.name), "wait for its shards", ctx.Err())
		case how == quiet, over.Err() != nil:
			return &feedtype.Standings{Digest: since}, nil
		}
		if shards, at, ok := f.db.watch.shardsKnown(f.name); ok && woken != nil && at == news && at.generation == f.Generation() {
			return &feedtype.Standings{Digest: at.digest(), Shards: shards}, nil
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
		asked, err := f.db.looks.ask(ctx, question{waiting: true, shards: []watchKey{everyShard(f.name)}})
		if err != nil {
			return fail(err)
		}
		all := asked.at
		_, there := all[watchKey{feed: f.name}]
		at, _ := standingOf(all, everyShard(f.name))
		if fresh || there && at.generation == f.Generation() {
			if err := f.mode().byShard(f); err != nil {
				return fail(err)
			}
			s := &feedtype.Standings{Digest: at.digest(), Shards: map[int]string{}}
			for key, at := range all {
				if key.feed == f.name && key.ofShard && !key.every {
					s.Shards[key.shard] = at.String()
				}
			}
			return s, nil
		}
		if err := f.catalog.Reload(ctx); err != nil {
			return fail(err)
		}
	}
}

// byShard: parts of one sequence are no feeds by themselves.
func (sequenced) byShard(f *Feed) error {
	return &feedtype.Error{Code: feedtype.InvalidRequest, Object: feedtype.FeedObject(f.name), Cause: "its shards are parts of one feed", Err: errors.ErrUnsupported, Next: "read all of it, or parts"}
}

func (blocking) byShard(*Feed) error { return nil }

// standingOf is a standing that a look has found. A shard that has no position yet is not
// found, and stands at the beginning of its feed.
func standingOf(found map[watchKey]standing, key watchKey) (standing, bool) {
	at, ok := found[key]
	if !ok && key.ofShard {
		at, ok = found[watchKey{feed: key.feed}]
		at.head = feedtype.Position{}
	}
	return at, ok
}
