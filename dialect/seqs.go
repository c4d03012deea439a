package dialect

import (
	"strconv"
	"strings"
)

// Seqs are the numbers that changes waiting in a feed's table of changes may have: those in
// Gaps and those above Above. The zero value is all numbers.
type Seqs struct {
	Gaps  []Run // ascending, not touching each other, none above Above
	Above int64
}

// All tells whether no number is left out.
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

// Ranges are conditions on a column, with their WHERE, in ascending order; a single empty
// one where s is all numbers. number writes a number down, as a parameter or as it is.
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

// maxNumbers bounds the numbers that one condition names one by one.
const maxNumbers = 256

// OneByOne is a single condition on a column, for s that is not all numbers: those of gaps are named one by one and,
// where they are many, all are meant from the first one on.
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

// Digits writes a number down.
func Digits(n int64) string { return strconv.FormatInt(n, 10) }
