package watch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rowfeed/rowfeed/feedtype"
)

// String is a watermark as feedtype.Standings shows it.
func (s Watermark) String() string {
	text := fmt.Sprintf("%d:%s", s.Generation, s.Head)
	if s.waiting {
		text += "+" // readers have something to move
	}
	return text
}

// EveryShard is the key of all shards of a feed together. Its watermark is a digest of theirs, so of two different
// watermarks neither is ahead.
func EveryShard(feed string) Key { return Key{Feed: feed, OfShard: true, Every: true} }

// addDigests adds a digest of all shards for each feed on which readers wait as a whole. For other feeds, the poll has
// not read all shards.
func addDigests(all map[Key]Watermark, waited []Key) map[Key]Watermark {
	feeds := make(map[Key]Watermark)
	for key, at := range all {
		if !key.OfShard || !slices.Contains(waited, EveryShard(key.Feed)) {
			continue
		}
		h := fnv.New128a()
		fmt.Fprintf(h, "%d %s", key.Shard, at)
		sum := h.Sum(nil)
		// XOR does not depend on the order of the shards.
		whole := feeds[EveryShard(key.Feed)]
		whole.Generation = at.Generation
		whole.Head.High ^= binary.BigEndian.Uint64(sum[:8])
		whole.Head.Low ^= binary.BigEndian.Uint64(sum[8:])
		feeds[EveryShard(key.Feed)] = whole
	}
	maps.Copy(all, feeds)
	return all
}

// Digest is the watermark as one text, see ParseDigest.
func (s Watermark) Digest() string {
	return fmt.Sprintf("%d-%016x%016x", s.Generation, s.Head.High, s.Head.Low)
}

// ParseDigest is the watermark that a digest was made of.
func ParseDigest(text string) (at Watermark, ok bool) {
	generation, head, _ := strings.Cut(text, "-")
	if len(head) != 32 {
		return at, false
	}
	var errs [3]error
	at.Generation, errs[0] = strconv.ParseInt(generation, 10, 64)
	at.Head.High, errs[1] = strconv.ParseUint(head[:16], 16, 64)
	at.Head.Low, errs[2] = strconv.ParseUint(head[16:], 16, 64)
	return at, errors.Join(errs[:]...) == nil
}

// Of is the watermark that a poll has read for a key. A shard without a position has no row, so its watermark is the
// beginning of its feed.
func Of(found map[Key]Watermark, key Key) (Watermark, bool) {
	at, ok := found[key]
	if !ok && key.OfShard {
		at, ok = found[Key{Feed: key.Feed}]
		at.Head = feedtype.Position{}
	}
	return at, ok
}
