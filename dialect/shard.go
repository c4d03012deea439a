package dialect

import "fmt"

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

// Sharded tells whether the feed has more than one data shard. Then its positions have an
// index by bucket.
func (f *Feed) Sharded() bool { return f.DataShards > 1 }

// buckets are the first bucket of the part that q asks for, their number, and how many
// rows a page takes from each at most where every one is cut. A little more than its share
// makes up for keys that are not spread evenly.
func (q PageQuery) buckets(f *Feed) (first, n, limit int) {
	first = Bucket(q.From, f.DataShards)
	n = Bucket(q.To-1, f.DataShards) - first + 1
	const slack = 16
	return first, n, min(q.Limit, q.Limit/n+slack)
}

// partOfPlaces are the keys and positions of a page of a part, cut to the limit: each
// bucket is read in the order of its index, and they are merged.
func partOfPlaces(s Spelling, b *Builder, f *Feed, q PageQuery, p PageParts, columns, hint string, above func(ref string) string) string {
	first, n, limit := q.buckets(f)
	const order = "\n  ORDER BY feed_sync_id LIMIT "
	text := ""
	for i := range n {
		branch := "SELECT " + columns + "\n  FROM " + Qualified(s, f.Positions()) + hint +
			"\n  WHERE bucket = " + b.Arg(first+i) + " AND " + above("feed_sync_id") + q.within(b, "shard") + q.unmarked(b)
		if p.CutBranches && n > 1 {
			branch = "(" + branch + order + b.Arg(limit) + ")"
		}
		if i > 0 {
			text += "\n  UNION ALL "
		}
		text += branch
	}
	return text + order + b.Arg(q.Limit)
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
	return "\n    AND NOT (feed_sync_id <= " + b.Arg(q.Mark) + " AND (deleted = 1 OR hidden = 1))"
}

// EndAtCut ends a page read with [PageParts].CutBranches at the lowest position at which
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
