package bench

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	measure "github.com/rowfeed/rowfeed/cmd/internal/bench"
)

// figure is one value per repetition.
type figure []float64

// median is the middle value.
func (f figure) median() float64 { return measure.Median(f) }

// quantile is the value that a share q of all does not exceed.
func (f figure) quantile(q float64) float64 { return measure.Quantile(f, q) }

func (f figure) max() float64 { return f.quantile(1) }

// over is this figure in proportion to another one of the same repetitions.
func (f figure) over(other figure) figure { return measure.Over(f, other) }

// ratio writes the median and the range: "0.91 (0.85–0.97)".
func (f figure) ratio() string {
	if len(f) < 2 {
		return fmt.Sprintf("%.2f", f.median())
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", f.median(), slices.Min(f), slices.Max(f))
}

// count writes a number with thousands set apart.
func count(v float64) string { return measure.Count(v) }

func milliseconds(d time.Duration) float64 { return measure.Milliseconds(d) }

// figures collects figures by name and keeps the order in which names came.
type figures[K cmp.Ordered] map[K]figure

func (f figures[K]) add(name K, v float64) { f[name] = append(f[name], v) }

// table is one of Markdown.
type table struct {
	title string
	head  []string
	rows  [][]string
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) print() { fmt.Println(t.markdown()) }

func (t *table) markdown() string {
	var b strings.Builder
	b.WriteString("\n### " + t.title + "\n\n| " + strings.Join(t.head, " | ") + " |\n|" + strings.Repeat("---|", len(t.head)) + "\n")
	for _, cells := range t.rows {
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	return b.String()
}
