package ulidfeed

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed/internal/publish"
)

// TestPassTriesFreeShardsFirst (M59): a pass tries the shards that were not held, then those whose pause is over, and
// last one of the shards that wait for a key, in turns. Each attempt at such a shard costs seconds, for which the
// others would wait.
func TestPassTriesFreeShardsFirst(t *testing.T) {
	var q retryQueue
	keyHeld := fmt.Errorf("%w, %w", publish.ErrHeld, errKeyHeld)
	shards := []int{1, 2, 3, 4, 5, 6}
	hold := func(shard int, reason error, next time.Duration) {
		q.record(shard, reason)
		q.held[shard].next = time.Now().Add(next)
	}
	hold(1, keyHeld, -time.Second)
	hold(2, keyHeld, -time.Minute)
	hold(3, publish.ErrHeld, -time.Second)
	hold(4, keyHeld, time.Minute)
	hold(6, keyHeld, -time.Hour)
	for _, want := range []struct{ due, rest []int }{
		{[]int{5, 3, 6}, []int{4, 2, 1}},
		{[]int{5, 3, 2}, []int{4, 6, 1}},
		{[]int{5, 3, 1}, []int{2, 4, 6}},
		{[]int{5, 3}, []int{1, 2, 4, 6}},
	} {
		due, rest := q.split(shards)
		if slices.Sort(rest); !slices.Equal(due, want.due) ||
			!slices.Equal(rest, slices.Sorted(slices.Values(want.rest))) {
			t.Errorf("due %v, the rest %v; want %v, %v", due, rest, want.due, want.rest)
		}
		if last := due[len(due)-1]; last != 3 {
			hold(last, keyHeld, time.Minute)
		}
	}
}
