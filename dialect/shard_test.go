package dialect_test

import (
	"testing"

	"github.com/rowfeed/rowfeed/dialect"
)

// TestBucketsFollowOrderOfShards (M25): buckets are numbered without a gap, in the order of the shards. 2, 4, 8, 16 or
// 32 readers read whole buckets, whatever the number of data shards (M25).
func TestBucketsFollowOrderOfShards(t *testing.T) {
	counts := []int{1000, 1023, 1024, 1025, 4096, 65_535, 65_536}
	for n := range 200 {
		counts = append(counts, n+1)
	}
	for _, shards := range counts {
		n := min(shards, 32)
		last := 0
		for shard := range shards {
			b := dialect.Bucket(shard, shards)
			if b != last && b != last+1 || shard == 0 && b != 0 {
				t.Fatalf("of %d shards, %d is in bucket %d behind bucket %d", shards, shard, b, last)
			}
			last = b
		}
		if last != n-1 {
			t.Fatalf("%d shards are in %d buckets, not %d", shards, last+1, n)
		}
		for readers := 2; readers <= 32 && shards >= 32; readers *= 2 {
			for i := 1; i < readers; i++ {
				from := i * shards / readers
				if dialect.Bucket(from-1, shards) == dialect.Bucket(from, shards) {
					t.Fatalf("of %d shards, readers %d and %d of %d share a bucket", shards, i-1, i, readers)
				}
			}
		}
	}
}
