package consume

import (
	"math"
	"slices"

	"github.com/rowfeed/rowfeed/feedtype"
)

// oldCursor is a cursor of the former shard count. It covers the data shards from (inclusive) to to (exclusive).
type oldCursor struct {
	from, to int
	value    feedtype.Cursor
	paused   bool
}

// rebalanced computes the n cursors of the new shard count. Each one is the lowest of the old cursors that share a
// data shard with it, and of start for data shards without an old cursor. So entries may come again, and none is
// skipped. A new cursor says of which part it is, and is paused if one of its old cursors was. at holds the cursor
// states of cursors that are times.
func rebalanced(all []oldCursor, dataShards, n int, start feedtype.Cursor,
	at map[feedtype.Cursor]feedtype.CursorState) ([]CursorRow, error) {
	overlap := make([][]feedtype.Cursor, n)
	next := make([]CursorRow, n)
	covered := make([]bool, dataShards)
	for _, f := range all {
		if f.from >= f.to {
			continue // more shards than data shards: this one never had an entry
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
		if p, err := value.State(); err == nil {
			p.Part = feedtype.CursorPart{}
			if n > 1 {
				p.Part = feedtype.CursorPart{From: i * dataShards / n, To: (i + 1) * dataShards / n, Of: dataShards}
			}
			value = p.Cursor()
		}
		next[i].Shard, next[i].ShardCount, next[i].Value, next[i].Generation = i, n, value, value.Generation()
	}
	return next, nil
}

// partOf returns which of n parts a data shard belongs to: see feedtype.Part. n is at most dataShards.
func partOf(shard, n, dataShards int) int {
	return min(((shard+1)*n-1)/dataShards, n-1)
}

// lowest returns a cursor that is at or below each of several, and has seen no delete that one of them has not seen.
// Its start mark is the lowest of their marks, or of their positions if they have none. A cursor at the beginning or
// at "now" has seen nothing, and needs no delete that the others have seen. A cursor of an older generation wins: the
// feed refuses the result, as it would refuse that cursor. Of several heads that were read, the result has the highest.
func lowest(cursors []feedtype.Cursor, at map[feedtype.Cursor]feedtype.CursorState) (feedtype.Cursor, error) {
	if len(slices.Compact(slices.Clone(cursors))) == 1 {
		return cursors[0], nil
	}
	var states []feedtype.CursorState
	generation := int64(math.MaxInt64)
	for _, c := range cursors {
		if c == feedtype.Now {
			continue // the others are below it
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
			if p.Term != 0 && (low.Term == 0 || p.Head.Above(low.Head)) {
				low.Head, low.Term = p.Head, p.Term
			}
		}
	}
	if slices.ContainsFunc(states, func(p feedtype.CursorState) bool {
		return p.Generation == generation && p.Term != 0 && p.Term != low.Term && low.Head != feedtype.LastPosition
	}) {
		return "", errOvertaken // they have got other terms since compareTerms
	}
	if low.Mark == feedtype.LastPosition {
		return feedtype.Beginning, nil // no cursor has seen anything
	}
	if low.Seen().IsZero() {
		// The lowest cursor reads all rows, and also every delete. Beginning leaves old deletes out. Only the cursor
		// of a time before the first entry asks for both, so one of the given cursors must be such a cursor.
		for c, p := range at {
			if p.Position.IsZero() && slices.Contains(cursors, c) {
				return c, nil
			}
		}
	}
	return low.Cursor(), nil
}
