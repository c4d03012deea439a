package gap

import (
	"cmp"
	"slices"

	"github.com/rowfeed/rowfeed/dialect"
)

const (
	// maxScanGaps bounds the gaps that one statement reads.
	maxScanGaps = 8
	// minSkip is how many published numbers in a row are worth a range of their own in the statement.
	minSkip = 256
)

// remove returns s without seqs, which ascend.
func remove(s dialect.Seqs, seqs []int64) dialect.Seqs {
	if len(seqs) == 0 {
		return s
	}
	gaps, above := slices.Clone(s.Gaps), s.Above
	if last := seqs[len(seqs)-1]; last > above {
		gaps, above = append(gaps, dialect.Run{First: above + 1, N: last - above}), last
	}
	out := dialect.Seqs{Above: above}
	keep := func(first, last int64) {
		if first <= last {
			out.Gaps = append(out.Gaps, dialect.Run{First: first, N: last - first + 1})
		}
	}
	runs := dialect.Runs(seqs)
	for _, g := range gaps {
		first := g.First
		for len(runs) > 0 && runs[0].First <= g.Last() {
			keep(first, min(runs[0].First-1, g.Last()))
			first = max(first, runs[0].Last()+1)
			if runs[0].Last() > g.Last() {
				break // The run continues in the next gap.
			}
			runs = runs[1:]
		}
		keep(first, g.Last())
	}
	return out
}

// removeUpTo returns s without the numbers up to last.
func removeUpTo(s dialect.Seqs, last int64) dialect.Seqs {
	out := dialect.Seqs{Above: max(s.Above, last)}
	for _, g := range s.Gaps {
		if first := max(g.First, last+1); first <= g.Last() {
			out.Gaps = append(out.Gaps, dialect.Run{First: first, N: g.Last() - first + 1})
		}
	}
	return out
}

// coarsen returns a set that contains s and has at most maxScanGaps gaps. It joins gaps across the shortest runs of
// published numbers between them, which are read again.
func coarsen(s dialect.Seqs) dialect.Seqs {
	type skip struct {
		gap int // the gap before the run of published numbers
		n   int64
	}
	var skips []skip
	for i, g := range s.Gaps {
		next := s.Above + 1
		if i+1 < len(s.Gaps) {
			next = s.Gaps[i+1].First
		}
		skips = append(skips, skip{i, next - g.Last() - 1})
	}
	slices.SortFunc(skips, func(a, b skip) int { return cmp.Compare(b.n, a.n) })
	kept := make([]bool, len(s.Gaps))
	for i, k := range skips {
		kept[k.gap] = i < maxScanGaps && k.n >= minSkip
	}
	out := dialect.Seqs{Above: s.Above}
	join := false // the next gap is joined to the one before
	for i, g := range s.Gaps {
		if join {
			last := &out.Gaps[len(out.Gaps)-1]
			last.N = g.Last() - last.First + 1
		} else {
			out.Gaps = append(out.Gaps, g)
		}
		join = !kept[i]
	}
	if join {
		last := len(out.Gaps) - 1
		out.Above, out.Gaps = out.Gaps[last].First-1, out.Gaps[:last]
	}
	return out
}
