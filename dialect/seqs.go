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
