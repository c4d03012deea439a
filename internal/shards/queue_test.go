package shards

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed/internal/publish"
)

// TestLine (M59): a pass tries the shards that nobody was seen to have, then those that somebody had when their
// time has come, and in the end one of those that wait for a key, in turns: each of these costs seconds, which
// the others would wait.
func TestLine(t *testing.T) {
	var l retryQueue
	keyHeld := fmt.Errorf("%w, %w", publish.ErrHeld, errKeyHeld)
	shards := []int{1, 2, 3, 4, 5, 6}
	put := func(shard int, why error, again time.Duration) {
		l.tried(shard, why)
		l.held[shard].again = time.Now().Add(again)
	}
	put(1, keyHeld, -time.Second)
	put(2, keyHeld, -time.Minute)
	put(3, publish.ErrHeld, -time.Second)
	put(4, keyHeld, time.Minute)
	put(6, keyHeld, -time.Hour)
	for _, want := range []struct{ due, rest []int }{
		{[]int{5, 3, 6}, []int{4, 2, 1}},
		{[]int{5, 3, 2}, []int{4, 6, 1}},
		{[]int{5, 3, 1}, []int{2, 4, 6}},
		{[]int{5, 3}, []int{1, 2, 4, 6}},
	} {
		due, rest := l.sorted(shards)
		if slices.Sort(rest); !slices.Equal(due, want.due) || !slices.Equal(rest, slices.Sorted(slices.Values(want.rest))) {
			t.Errorf("due %v, the rest %v; want %v, %v", due, rest, want.due, want.rest)
		}
		if last := due[len(due)-1]; last != 3 {
			put(last, keyHeld, time.Minute)
		}
	}
}
