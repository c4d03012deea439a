package dialect

import (
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

// Ranges returns conditions on a column, with WHERE, in ascending order. If s is all numbers, there is one,
// which is empty. number returns a number as the statement has it: a parameter or digits.
func (s Seqs) Ranges(column string, number func(int64) string) []string {
	if s.All() {
		return []string{""}
	}
	var ranges []string
	for _, g := range s.Gaps {
		ranges = append(ranges, " WHERE "+column+" BETWEEN "+number(g.First)+" AND "+number(g.Last()))
	}
	return append(ranges, " WHERE "+column+" > "+number(s.Above))
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
