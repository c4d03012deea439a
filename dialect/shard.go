package dialect

import (
	"fmt"
	"math"
	"strconv"
)

// maxBuckets is the maximum number of a feed's buckets. A page of a part merges one read for each bucket of the
// part. If the part has only some of a bucket's shards, the read passes the entries of the other ones in vain.
const maxBuckets = 32

// Bucket returns the bucket of a data shard, in which its positions are found. A feed has as many buckets as
// data shards, but at most 32. Bucket i of n is the i-th of n equal parts of the data shards. So 2, 4, 8, 16 or
// 32 readers read whole buckets, for every number of data shards. The bucket of [NoShard] is -1.
func Bucket(shard, dataShards int) int {
	if shard < 0 {
		return -1
	}
	return ((shard+1)*min(dataShards, maxBuckets) - 1) / dataShards
}

// Bucket returns the function Bucket as an expression. shard is an expression for the data shard, div the
// operator that divides integers.
func (f *Feed) Bucket(shard, div string) string {
	if !f.Sharded() {
		return "0"
	}
	bucket := fmt.Sprintf("((%s + 1) * %d - 1) %s %d", shard, min(f.DataShards, maxBuckets), div, f.DataShards)
	if f.OwnShard != "" {
		return "CASE WHEN " + shard + " < 0 THEN -1 ELSE " + bucket + " END"
	}
	return bucket
}

// NoShard is the data shard of a key whose row holds none in [Feed].OwnShard, or has no row any more. It is outside of
// every part. With [Feed.RowShards], the delete of such a key belongs to all parts: see [Feed.InPart].
const NoShard = -1

// shardOfRow returns an expression for the data shard that a row of the source holds in [Feed].OwnShard, or NoShard if
// the value is none of the feed's data shards.
func (f *Feed) shardOfRow(s *Syntax, row string) string {
	if f.OwnShard == "" {
		return strconv.Itoa(NoShard)
	}
	ref := Ref(s, row, f.OwnShard)
	integer := ""
	if s.IsInteger != nil {
		integer = s.IsInteger(ref) + " AND "
	}
	return fmt.Sprintf("CASE WHEN %s%s >= 0 AND %s < %d THEN %s ELSE %d END", integer, ref, ref, f.DataShards, ref,
		NoShard)
}

// InPart tells whether a row of a page belongs to the part that q asks for.
func (f *Feed) InPart(r PageRow, q PageQuery) bool {
	switch {
	case q.To == 0:
		return true
	case r.Shard == NoShard && !f.ReadsBuckets():
		return r.Hidden || r.Deleted && !r.Present
	}
	return r.Shard >= q.From && r.Shard < q.To
}

// KeyShards tells whether publishers compute data shards from keys, and write them.
func (f *Feed) KeyShards() bool { return f.Sharded() && f.OwnShard == "" }

// RowShards tells whether the data shard of a key is the one that its row holds in [Feed].OwnShard now. Otherwise a key
// keeps the first one. Readers of several parts may then have the row, so its delete belongs to all parts. This is so
// if rows hold their positions, or have held them.
func (f *Feed) RowShards() bool { return f.OwnShard != "" && (f.InRows() || f.Moved) }

// ReadsBuckets tells whether parts of the feed are read by bucket. Otherwise they are read in the order of positions.
func (f *Feed) ReadsBuckets() bool { return !f.ReadsRows() && !f.RowShards() }

// Sharded tells whether the feed has more than one data shard.
func (f *Feed) Sharded() bool { return f.DataShards > 1 }

// ByBucket tells whether parts of the feed are read by bucket, so that its table of positions needs an index by
// bucket. It is false if rows hold their positions.
func (f *Feed) ByBucket() bool { return f.Sharded() && !f.InRows() }

// BucketSteps returns add if the feed needs the index by bucket and does not have it, remove if the index is
// there but not needed, and otherwise nothing.
func BucketSteps(f *Feed, there bool, add, remove Step) []Step {
	switch {
	case there == f.ByBucket():
		return nil
	case there:
		return []Step{remove}
	}
	return []Step{add}
}

// buckets returns the first bucket of the part that q asks for, and the number of its buckets. limit is how many
// rows a page reads of each bucket if it cuts them. That is somewhat more than a bucket's share of q.Limit,
// because rows are spread by chance. On average, a page of 1000 rows from 8 buckets reads 1160 rows and shows 985.
func (q PageQuery) buckets(f *Feed) (first, n, limit int) {
	first = Bucket(q.From, f.DataShards)
	n = Bucket(q.To-1, f.DataShards) - first + 1
	share := float64(q.Limit) / float64(n)
	return first, n, min(q.Limit, int(share+1.5*math.Sqrt(share))+2)
}

// EndAtCut ends a page whose buckets were cut at the lowest position at which a bucket was
// cut. Above it, rows of that bucket may be missing.
func (p *PageRows) EndAtCut(f *Feed, q PageQuery) {
	if q.To == 0 || !f.ReadsBuckets() {
		return
	}
	first, n, limit := q.buckets(f)
	if n == 1 {
		return
	}
	count := make([]int, n)
	for i, r := range p.Rows {
		bucket := Bucket(r.Shard, f.DataShards) - first
		if count[bucket]++; count[bucket] == limit {
			p.Cut = p.Cut || i+1 < q.Limit
			p.Rows = p.Rows[:i+1]
			return
		}
	}
}
