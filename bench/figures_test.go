package bench

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// figure is one value per repetition.
type figure []float64

// median is the middle value; NaN when there is none.
func (f figure) median() float64 { return f.quantile(0.5) }

// quantile is the value that a share q of all does not exceed.
func (f figure) quantile(q float64) float64 {
	if len(f) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(f))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func (f figure) max() float64 { return f.quantile(1) }

// over is this figure in proportion to another one of the same repetitions.
func (f figure) over(other figure) figure {
	ratios := make(figure, min(len(f), len(other)))
	for i := range ratios {
		ratios[i] = f[i] / other[i]
	}
	return ratios
}

// ratio writes the median and the range: "0.91 (0.85–0.97)".
func (f figure) ratio() string {
	if len(f) < 2 {
		return fmt.Sprintf("%.2f", f.median())
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", f.median(), slices.Min(f), slices.Max(f))
}

// count writes a number with thousands set apart.
func count(v float64) string {
	digits := fmt.Sprintf("%.0f", v)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// figures collects figures by name and keeps the order in which names came.
type figures[K cmp.Ordered] map[K]figure

func (f figures[K]) add(name K, v float64) { f[name] = append(f[name], v) }

// table prints Markdown.
type table struct {
	title string
	head  []string
	rows  [][]string
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) print() {
	var b strings.Builder
	b.WriteString("\n### " + t.title + "\n\n| " + strings.Join(t.head, " | ") + " |\n|" + strings.Repeat("---|", len(t.head)) + "\n")
	for _, cells := range t.rows {
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	fmt.Println(b.String())
}
