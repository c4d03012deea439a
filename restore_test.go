package rowfeed

import (
	"testing"

	"github.com/rowfeed/rowfeed/dialect"
)

// TestNothingSeen: whoever asks for shards that are not there, one after the other, leaves
// nothing behind in the process.
func TestNothingSeen(t *testing.T) {
	f := &Feed{seen: map[int]place{}}
	for shard := 1; shard < 10; shard++ {
		f.saw(shard, 1, dialect.Position{})
	}
	if len(f.seen) != 0 {
		t.Errorf("%d shards are kept", len(f.seen))
	}
	f.saw(7, 1, dialect.LastPosition)
	if f.highest(7).position != dialect.LastPosition {
		t.Error("what was seen is forgotten")
	}
}
