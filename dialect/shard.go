package dialect

import (
	"fmt"
	"math"
	"strings"
)

// maxBuckets is the greatest number of buckets of a feed. A page of a part merges as
// many reads as the part has buckets, and reads a bucket's entries in vain where the part
// has but some of its shards.
const maxBuckets = 32

// Bucket is the bucket in which the positions of a data shard are found. A feed has as
// many buckets as data shards, and at most 32; bucket i of n is the i-th of n equal parts
// of the data shards, so that 2, 4, 8, 16 or 32 readers read whole buckets, whatever the
// number of data shards.
func Bucket(shard, dataShards int) int {
	return ((shard+1)*min(dataShards, maxBuckets) - 1) / dataShards
}

// Bucket is Bucket as an expression over one for a data shard; div divides integers.
func (f *Feed) Bucket(shard, div string) string {
	if !f.Sharded() {
		return "0"
	}
	return fmt.Sprintf("((%s + 1) * %d - 1) %s %d", shard, min(f.DataShards, maxBuckets), div, f.DataShards)
}

// Sharded tells whether the feed has more than one data shard.
func (f *Feed) Sharded() bool { return f.DataShards > 1 }

// ByBucket tells whether parts of the feed are read by bucket, and its positions have an
// index for that. Where rows hold their positions, these have none.
func (f *Feed) ByBucket() bool { return f.Sharded() && !f.InRows() }

// BucketSteps are the step that is left to have the index by bucket where the feed needs
// it, and not elsewhere; none where it is so.
func BucketSteps(f *Feed, there bool, add, remove Step) []Step {
	switch {
	case there == f.ByBucket():
		return nil
	case there:
		return []Step{remove}
	}
	return []Step{add}
}

// buckets are the first bucket of the part that q asks for, their number, and how many
// rows a page takes from each at most where every one is cut: somewhat more than its share,
// since chance gives one more than another. A page of 1000 from 8 buckets reads 1.16 times
// as many, and has 985.
func (q PageQuery) buckets(f *Feed) (first, n, limit int) {
	first = Bucket(q.From, f.DataShards)
	n = Bucket(q.To-1, f.DataShards) - first + 1
	share := float64(q.Limit) / float64(n)
	return first, n, min(q.Limit, int(share+1.5*math.Sqrt(share))+2)
}

// partOfPlaces are the keys and positions of a page of a part, cut to the limit: each
// bucket is read in the order of its index, and they are merged.
func partOfPlaces(s Spelling, b *Builder, f *Feed, q PageQuery, p PageParts, columns string) string {
	first, n, limit := q.buckets(f)
	from := " FROM " + Qualified(s, f.Positions()) + p.BucketHint
	const order = "\n  ORDER BY feed_sync_id LIMIT "
	if p.Series != nil {
		// Bucket and position are compared as one value and asked for in that order, so that
		// no other index than the one by bucket will do: with statistics of when one bucket
		// had it all, that of the positions alone looks cheaper.
		return "SELECT x.* FROM " + p.Series(b.Arg(first), b.Arg(first+n-1)) + " AS b (n) CROSS JOIN LATERAL (" +
			"\n  SELECT " + columns + from +
			"\n  WHERE (bucket, feed_sync_id) > (b.n, " + b.Arg(q.After.Number()) + ") AND (bucket, feed_sync_id) <= (b.n, " + p.Head(b) + ")" + q.within(b, "shard") + q.unmarked(b) +
			"\n  ORDER BY bucket, feed_sync_id LIMIT " + b.Arg(limit) + ") x" + order + b.Arg(q.Limit)
	}
	branches := make([]string, n)
	for i := range branches {
		branches[i] = "SELECT " + columns + from +
			"\n  WHERE bucket = " + b.Arg(first+i) + " AND feed_sync_id > " + b.Arg(q.After.Number()) + " AND feed_sync_id <= " + p.Head(b) + q.within(b, "shard") + q.unmarked(b)
		if p.CutBranches && n > 1 {
			branches[i] = "(" + branches[i] + order + b.Arg(limit) + ")"
		}
	}
	return strings.Join(branches, "\n  UNION ALL ") + order + b.Arg(q.Limit)
}

// within is the condition that a shard is of the part that q asks for.
func (q PageQuery) within(b *Builder, ref string) string {
	if q.To == 0 {
		return ""
	}
	return "\n    AND " + ref + " >= " + b.Arg(q.From) + " AND " + ref + " < " + b.Arg(q.To)
}

// unmarked is the condition that leaves out tombstones up to the mark.
func (q PageQuery) unmarked(b *Builder) string {
	return "\n    AND NOT (feed_sync_id <= " + b.Arg(q.Mark.Number()) + " AND (deleted = 1 OR hidden = 1))"
}

// EndAtCut ends a page whose buckets were cut (see [PageParts]) at the lowest position at which
// one of its buckets was cut: above it, rows of that bucket may be missing.
func (p *PageRows) EndAtCut(f *Feed, q PageQuery) {
	if q.To == 0 || f.InRows() {
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
