package dialect

import (
	"maps"
	"strconv"
	"strings"
)

// Seqs are the numbers that a change or record that waits, or is still to be committed, can have: those in Gaps
// and those above Above. The zero value is all numbers.
type Seqs struct {
	Gaps  []Run // ascending, not adjacent to each other, none above Above
	Above int64
}

// All tells whether s is all numbers.
func (s Seqs) All() bool { return len(s.Gaps) == 0 && s.Above == 0 }

// Has tells whether a number is one of s.
func (s Seqs) Has(seq int64) bool {
	if s.All() || seq > s.Above {
		return true
	}
	for _, g := range s.Gaps {
		if g.First <= seq && seq <= g.Last() {
			return true
		}
	}
	return false
}

// RangeScans implements [Syntax].Scan by one statement for each range. With one condition for all ranges, one scan
// would filter the table from its beginning. The names of the statements end in _between, with the arguments :first and
// :last, and in _above, with :above.
func RangeScans(s *Syntax, f *Feed, of string, among Seqs, args Args) (scans []Built) {
	scan := func(name string, ends Args) {
		own := maps.Clone(ends)
		maps.Copy(own, args)
		scans = append(scans, s.Statement(f, name).With(own))
	}
	if among.All() {
		scan("all_"+of, Args{})
		return scans
	}
	for _, g := range among.Gaps {
		scan(of+"_between", Args{"first": g.First, "last": g.Last()})
	}
	scan(of+"_above", Args{"above": among.Above})
	return scans
}

// maxNumbers is how many numbers one condition lists.
const maxNumbers = 256

// OneByOne returns a single condition on a column. It lists the numbers of the gaps, or begins at the first gap
// if there are more than 256 of them. s must not be all numbers.
func (s Seqs) OneByOne(column string) string {
	var numbers []string
	from := s.Above
	for _, g := range s.Gaps {
		if int64(len(numbers))+g.N > maxNumbers {
			numbers, from = nil, s.Gaps[0].First-1
			break
		}
		for n := g.First; n <= g.Last(); n++ {
			numbers = append(numbers, Digits(n))
		}
	}
	condition := column + " > " + Digits(from)
	if len(numbers) > 0 {
		condition += " OR " + column + " IN (" + strings.Join(numbers, ", ") + ")"
	}
	return condition
}

// Digits returns a number in decimal.
func Digits(n int64) string { return strconv.FormatInt(n, 10) }

// Run is N consecutive numbers, of which First is the lowest.
type Run struct{ First, N int64 }

// Last returns the highest number of the run.
func (r Run) Last() int64 { return r.First + r.N - 1 }

// Runs groups ascending numbers into runs. A run has no number that is missing in seqs. So a change that is
// committed meanwhile cannot be in its range.
func Runs(seqs []int64) (runs []Run) {
	for i, seq := range seqs {
		if i > 0 && seqs[i-1]+1 == seq {
			runs[len(runs)-1].N++
		} else {
			runs = append(runs, Run{seq, 1})
		}
	}
	return runs
}

// SeqList returns seqs as a JSON list of numbers.
func SeqList(seqs []int64) string {
	return list(seqs, func(b []byte, seq int64) []byte { return strconv.AppendInt(b, seq, 10) })
}

func list[T any](of []T, element func([]byte, T) []byte) string {
	b := make([]byte, 0, 2+12*len(of))
	for i, x := range of {
		b = element(append(b, "[,"[min(i, 1)]), x)
	}
	if len(of) == 0 {
		b = append(b, '[')
	}
	return string(append(b, ']'))
}
