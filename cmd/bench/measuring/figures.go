package measuring

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/cmd/internal/bench"
)

// Figure is one value per repetition.
type Figure []float64

// Median returns the middle value.
func (f Figure) Median() float64 { return bench.Median(f) }

// Quantile returns the value that a share q of the values does not exceed.
func (f Figure) Quantile(q float64) float64 { return bench.Quantile(f, q) }

// Max returns the highest value.
func (f Figure) Max() float64 { return f.Quantile(1) }

// Over divides the figure by another figure of the same repetitions.
func (f Figure) Over(other Figure) Figure { return bench.Over(f, other) }

// Ratio formats the median and the range: "0.91 (0.85–0.97)".
func (f Figure) Ratio() string {
	if len(f) < 2 {
		return fmt.Sprintf("%.2f", f.Median())
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", f.Median(), slices.Min(f), slices.Max(f))
}

// Count formats a number with separated thousands.
func Count(v float64) string { return bench.Count(v) }

// Milliseconds converts a duration to milliseconds.
func Milliseconds(d time.Duration) float64 { return bench.Milliseconds(d) }

// Figures collects figures by name.
type Figures[K cmp.Ordered] map[K]Figure

// Add appends a value to the figure of a name.
func (f Figures[K]) Add(name K, v float64) { f[name] = append(f[name], v) }

// Table is a table in Markdown.
type Table struct {
	Title string
	Head  []string
	Rows  [][]string
}

// Row adds a row.
func (t *Table) Row(cells ...string) { t.Rows = append(t.Rows, cells) }

// Print writes the table to stdout.
func (t *Table) Print() { fmt.Println(t.Markdown()) }

// Markdown returns the table with its title.
func (t *Table) Markdown() string {
	var b strings.Builder
	b.WriteString("\n### " + t.Title + "\n\n| " + strings.Join(t.Head, " | ") + " |\n|" +
		strings.Repeat("---|", len(t.Head)) + "\n")
	for _, cells := range t.Rows {
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	return b.String()
}
