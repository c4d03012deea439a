package history

import (
	"testing"

	"github.com/rowfeed/rowfeed/feedtype"
)

// TestShardsWithoutPositionsUseNoMemory: requests for shards without positions leave nothing in memory.
func TestShardsWithoutPositionsUseNoMemory(t *testing.T) {
	h := New(nil, nil, false, false)
	for shard := 1; shard < 10; shard++ {
		h.Saw(shard, feedtype.CursorState{Generation: 1})
	}
	if len(h.seen) != 0 {
		t.Errorf("%d shards are kept", len(h.seen))
	}
	h.Saw(7, feedtype.CursorState{Generation: 1, Position: feedtype.LastPosition})
	if h.Highest(7).Position != feedtype.LastPosition {
		t.Error("what was seen is forgotten")
	}
}
