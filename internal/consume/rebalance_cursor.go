package consume

import (
	"math"
	"slices"

	"github.com/rowfeed/rowfeed/feedtype"
)

// oldCursor is a cursor that a consumer had before the number of its shards was changed, for
// the data shards from, inclusive, to to.
type oldCursor struct {
	from, to int
	value    feedtype.Cursor
	paused   bool
}

// rebalanced divides dataShards data shards among n shards of a consumer that has had other
// ones. Each new cursor is the lowest of the former ones that share a data shard with it,
// and start stands for data shards that had none: entries come again, and none is passed
// over. It is paused where one of them was. at has the places of cursors "at:".
func rebalanced(all []oldCursor, dataShards, n int, start feedtype.Cursor, at map[feedtype.Cursor]feedtype.CursorState) ([]CursorRow, error) {
	overlap := make([][]feedtype.Cursor, n)
	next := make([]CursorRow, n)
	covered := make([]bool, dataShards)
	for _, f := range all {
		if f.from >= f.to {
			continue // fewer data shards than shards: it never had an entry
		}
		for i := partOf(f.from, n, dataShards); i <= partOf(f.to-1, n, dataShards); i++ {
			overlap[i] = append(overlap[i], f.value)
			next[i].Paused = next[i].Paused || f.paused
		}
		for s := f.from; s < f.to; s++ {
			covered[s] = true
		}
	}
	for i := range next {
		if slices.Contains(covered[i*dataShards/n:(i+1)*dataShards/n], false) {
			overlap[i] = append(overlap[i], start)
		}
		value, err := lowest(overlap[i], at)
		if err != nil {
			return nil, err
		}
		next[i].Shard, next[i].ShardCount, next[i].Value, next[i].Generation = i, n, value, value.Generation()
	}
	return next, nil
}

// partOf tells which of n parts of dataShards a data shard is in, see Part. n is not
// greater than dataShards.
func partOf(shard, n, dataShards int) int {
	return min(((shard+1)*n-1)/dataShards, n-1)
}

// lowest is a cursor that is at or below each of several, and has seen no delete that one
// of them has not: its start mark is the lowest of their marks, or of their positions where
// they have none. Who has seen nothing at all, at the beginning or at "now", needs no
// delete that the others have seen. A cursor of an older generation than others makes the
// feed refuse all of it, as it would refuse that one.
func lowest(cursors []feedtype.Cursor, at map[feedtype.Cursor]feedtype.CursorState) (feedtype.Cursor, error) {
	if len(slices.Compact(slices.Clone(cursors))) == 1 {
		return cursors[0], nil
	}
	var states []feedtype.CursorState
	generation := int64(math.MaxInt64)
	for _, c := range cursors {
		if c == feedtype.Now {
			continue // no place of the others' is above it
		}
		p, known := at[c]
		if !known {
			if _, is, _ := c.Time(); is {
				return "", errOvertaken
			}
			var err error
			if p, err = c.State(); err != nil {
				return "", err
			}
		}
		if !p.Start {
			generation = min(generation, p.Generation)
		}
		states = append(states, p)
	}
	low := feedtype.CursorState{Generation: generation, Position: feedtype.LastPosition, Mark: feedtype.LastPosition}
	for _, p := range states {
		switch {
		case p.Start:
			low.Position = feedtype.Position{}
		case p.Generation == generation:
			low.Position, low.Mark = low.Position.Min(p.Position), low.Mark.Min(p.Seen())
		}
	}
	if low.Mark == feedtype.LastPosition {
		return feedtype.Beginning, nil // nobody has seen anything
	}
	if low.Seen().IsZero() {
		// Below every position, and yet every delete is wanted: only a time says so.
		for c, p := range at {
			if p.Position.IsZero() && slices.Contains(cursors, c) {
				return c, nil
			}
		}
	}
	return low.Cursor(), nil
}
