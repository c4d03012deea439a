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

// String is a standing as Standings shows it.
func (s Standing) String() string {
	text := fmt.Sprintf("%d:%s", s.Generation, s.Head)
	if s.waiting {
		text += "+" // as good as an entry
	}
	return text
}

// EveryShard is what has the standing of all shards of a feed together: its head is a digest
// of theirs, and of two that differ neither is ahead.
func EveryShard(feed string) Key { return Key{Feed: feed, OfShard: true, Every: true} }

// together adds the standings of feeds as a whole to those of their shards, where somebody
// waits for them: of other feeds not all shards were read.
func together(all map[Key]Standing, waited []Key) map[Key]Standing {
	feeds := make(map[Key]Standing)
	for key, at := range all {
		if !key.OfShard || !slices.Contains(waited, EveryShard(key.Feed)) {
			continue
		}
		h := fnv.New128a()
		fmt.Fprintf(h, "%d %s", key.Shard, at)
		sum := h.Sum(nil)
		whole := feeds[EveryShard(key.Feed)] // whatever the order in which they come
		whole.Generation = at.Generation
		whole.Head.High ^= binary.BigEndian.Uint64(sum[:8])
		whole.Head.Low ^= binary.BigEndian.Uint64(sum[8:])
		feeds[EveryShard(key.Feed)] = whole
	}
	maps.Copy(all, feeds)
	return all
}

func (s Standing) Digest() string {
	return fmt.Sprintf("%d-%016x%016x", s.Generation, s.Head.High, s.Head.Low)
}

// ParseDigest is the standing that a digest was made of.
func ParseDigest(text string) (at Standing, ok bool) {
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

// standingOf is a standing that a look has found. A shard that has no position yet is not
// found, and stands at the beginning of its feed.
func Of(found map[Key]Standing, key Key) (Standing, bool) {
	at, ok := found[key]
	if !ok && key.OfShard {
		at, ok = found[Key{Feed: key.Feed}]
		at.Head = feedtype.Position{}
	}
	return at, ok
}
