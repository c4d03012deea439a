package pairs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/rowfeed/rowfeed/cmd/internal/bench"
)

// acceptable is the lowest ratio that is not reported as slower.
const acceptable = 0.97

// measure is one run of `rowfeed bench`.
type measure struct {
	name    string
	args    []string
	figures func(r *bench.Report) []figure
}

// figure is one number of a report.
type figure struct {
	name, unit string
	value      float64
	less       bool // less is better
}

// measures name the sizes, so that both builds get the same sizes even if their defaults differ.
var measures = []measure{
	{bench.Drain, []string{"--rows", "50000", "--repetitions", "1"}, func(r *bench.Report) (all []figure) {
		for _, d := range r.Drain {
			all = append(all,
				figure{name: fmt.Sprintf("publish first, batches of %d", d.Batch), unit: "keys/s", value: d.New},
				figure{name: fmt.Sprintf("publish again, batches of %d", d.Batch), unit: "keys/s", value: d.Again})
		}
		return all
	}},
	{bench.Pages, []string{"--rows", "50000", "--repetitions", "3"}, func(r *bench.Report) []figure {
		return []figure{{name: "pages of 1000", unit: "entries/s", value: r.Pages.Speed}}
	}},
	{bench.Consume, []string{"--rows", "50000", "--repetitions", "3"}, func(r *bench.Report) []figure {
		return []figure{{name: "consume", unit: "entries/s", value: r.Consume.Speed}}
	}},
	{bench.Latency, []string{
		"--rate", "200/s", "--seconds", "5", "--repetitions", "1",
	}, func(r *bench.Report) []figure {
		return []figure{{name: "commit to handler, median", unit: "ms", value: r.Latency.P50MS, less: true},
			{name: "commit to handler, p99", unit: "ms", value: r.Latency.P99MS, less: true}}
	}},
	{bench.Idle, []string{"--seconds", "2", "--repetitions", "1"}, func(r *bench.Report) []figure {
		return []figure{{name: "idle publisher", unit: "statements/s", value: r.Idle.Publisher, less: true},
			{name: "idle publisher and consumer", unit: "statements/s", value: r.Idle.Consumer, less: true}}
	}},
}

// build is a binary that is compared with another.
type build struct {
	name   string // of the commit
	binary string
}

// errNoMeasure is returned for a build that is older than a measure.
var errNoMeasure = errors.New("this build has no such measure")

// run runs a measure once with this build. The process runs in folder, which has no rowfeed.yaml.
func (b build) run(ctx context.Context, m measure, folder, url string, more ...string) ([]figure, error) {
	args := slices.Concat([]string{"bench", m.name, "--json", "--db", url}, m.args, more)
	cmd := exec.CommandContext(ctx, b.binary, args...)
	cmd.Dir = folder
	var messages strings.Builder
	cmd.Stderr = &messages
	out, err := cmd.Output()
	if err != nil {
		if strings.Contains(messages.String(), fmt.Sprintf("there is no measure %q", m.name)) {
			return nil, errNoMeasure
		}
		return nil, fmt.Errorf("%s: rowfeed %s: %w\n%s", b.name, strings.Join(args, " "), err, &messages)
	}
	var r bench.Report
	if err := json.Unmarshal(out, &r); err != nil {
		return nil, fmt.Errorf("%s: rowfeed %s: %w", b.name, strings.Join(args, " "), err)
	}
	return m.figures(&r), nil
}

// series is a figure on one engine, with a value for each pair. Base is empty if the base build does not have the
// measure.
type series struct {
	Measure string    `json:"measure"`
	Engine  string    `json:"engine"`
	Unit    string    `json:"unit"`
	Base    []float64 `json:"base"`
	New     []float64 `json:"new"`
	// Ratios has the ratio of speeds, new ÷ base, of each pair. Above 1 the new build is faster.
	Ratios []float64 `json:"ratios"`
	Ratio  float64   `json:"ratio"` // the median of Ratios
}

// comparison is the result of a run.
type comparison struct {
	Base    string    `json:"base"`
	New     string    `json:"new"`
	Pairs   int       `json:"pairs"`
	Figures []*series `json:"figures"`
}

// add adds the figures of both builds in one pair, and returns the ratios of this pair.
func (c *comparison) add(engine string, base, fresh []figure) (ratios []float64) {
	for i, f := range fresh {
		s := c.series(engine, f)
		s.New = append(s.New, f.value)
		if base == nil {
			continue
		}
		s.Base = append(s.Base, base[i].value)
		faster, slower := s.New, s.Base
		if f.less {
			faster, slower = s.Base, s.New
		}
		s.Ratios = bench.Over(faster, slower)
		s.Ratio = bench.Median(s.Ratios)
		ratios = append(ratios, s.Ratios[len(s.Ratios)-1])
	}
	return ratios
}

// series returns the series of a figure. It adds a series if there is none.
func (c *comparison) series(engine string, f figure) *series {
	for _, s := range c.Figures {
		if s.Measure == f.name && s.Engine == engine {
			return s
		}
	}
	s := &series{Measure: f.name, Engine: engine, Unit: f.unit, Base: []float64{}, New: []float64{},
		Ratios: []float64{}}
	c.Figures = append(c.Figures, s)
	return s
}

// print writes a table with a row for each measure and engine.
func (c *comparison) print(w io.Writer) error {
	fmt.Fprintf(w,
		"base: %s\nnew:  %s\nmedians (pairs: %d); ratio: speed of new ÷ speed of base, above 1 is faster\n\n", c.Base,
		c.New, c.Pairs)
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "measure\tengine\tbase\tnew\tunit\tratio\tof the pairs")
	for _, s := range c.Figures {
		base, ratio, spread, slower := "not in base", "–", "–", ""
		if len(s.Ratios) > 0 {
			base, ratio = number(bench.Median(s.Base)), fmt.Sprintf("%.2f", s.Ratio)
			spread = fmt.Sprintf("%.2f to %.2f", slices.Min(s.Ratios), slices.Max(s.Ratios))
			if s.Ratio < acceptable {
				slower = "  slower"
			}
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\t%s%s\n", s.Measure, s.Engine, base, number(bench.Median(s.New)),
			s.Unit, ratio, spread, slower)
	}
	return out.Flush()
}

// number formats small figures with two digits after the point.
func number(v float64) string {
	if v < 100 {
		return fmt.Sprintf("%.2f", v)
	}
	return bench.Count(v)
}
