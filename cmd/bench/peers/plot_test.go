package peers

import (
	"bytes"
	"image/color"
	"math"
	"slices"
	"strconv"
	"testing"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// dots describes the plot of a measure: a row of dots for each entrant, one dot for each of the figures, on a
// logarithmic scale.
type dots struct {
	axis  string   // what the scale shows, with its unit
	of    []string // names of figures
	named []string // their names in the plot, if different
	// at returns the value of a figure, the median by default. Values below least are not drawn.
	at    func(f figure) float64
	least float64
}

var (
	ink    = color.RGBA{0x33, 0x3b, 0x44, 0xff}
	faint  = color.RGBA{0xd5, 0xda, 0xe0, 0xff}
	ours   = color.RGBA{0x0b, 0x7a, 0x75, 0xff}
	theirs = color.RGBA{0x8a, 0x94, 0xa0, 0xff}
)

// glyphs are the glyphs of the figures, in their order.
var glyphs = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.RingGlyph{}, draw.CrossGlyph{}} // ● ○ ×

// draw returns an SVG of all servers, one below the other.
func (d dots) draw(t *testing.T, title string, all []*standings) []byte {
	t.Helper()
	p := plot.New()
	p.Title.Text, p.Title.TextStyle.Font.Size, p.Title.Padding = title, vg.Points(11), vg.Points(8)
	p.X.Label.Text, p.X.Label.TextStyle.Font.Size = d.axis+":"+d.legend(), vg.Points(9)
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.TickerFunc(ticks)
	for _, style := range []*text.Style{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label} {
		style.Color, style.Font.Typeface, style.Font.Variant = ink, "Liberation", "Sans"
	}
	var names []string
	var lowest, highest float64
	for _, s := range slices.Backward(all) {
		for _, who := range slices.Backward(s.entrants) {
			if s.outcomes(who) == nil {
				continue
			}
			var line plotter.XYs
			for _, what := range d.of {
				line = append(line, plotter.XY{X: d.value(s.of(who, what)), Y: float64(len(names))})
			}
			names = append(names, s.label(who))
			d.add(t, p, line, who.contestant == &rowfeedPeer)
			for _, at := range line {
				if lowest == 0 || at.X < lowest {
					lowest = at.X
				}
				highest = max(highest, at.X)
			}
		}
		names = append(names, "") // an empty row between servers
	}
	names = names[:len(names)-1]
	p.NominalY(names...)
	p.Y.Min, p.Y.Max = -0.7, float64(len(names))-0.3
	p.X.Min, p.X.Max = lowest/1.5, highest*1.5
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Width = faint, 0
	p.Add(grid)

	canvas := vgsvg.New(vg.Points(620), vg.Points(70+15*float64(len(names))))
	p.Draw(draw.Crop(draw.New(canvas), vg.Points(10), -vg.Points(12), vg.Points(6), -vg.Points(6)))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// legend shows which dot is which figure.
func (d dots) legend() string {
	names, text := d.of, ""
	if d.named != nil {
		names = d.named
	}
	for i, name := range names {
		text += []string{"   ● ", "   ○ ", "   × "}[i] + name
	}
	return text
}

// ticks are 1, 2 and 5 of each power of ten.
func ticks(low, high float64) (ticks []plot.Tick) {
	for power := math.Pow(10, math.Floor(math.Log10(low))); power <= high; power *= 10 {
		for _, digit := range []float64{1, 2, 5} {
			if v := digit * power; v >= low && v <= high {
				label := strconv.FormatFloat(v, 'f', -1, 64)
				if v >= 1 {
					label = count(v)
				}
				ticks = append(ticks, plot.Tick{Value: v, Label: label})
			}
		}
	}
	return ticks
}

func (d dots) value(f figure) float64 {
	at := d.at
	if at == nil {
		at = figure.Median
	}
	return max(at(f), d.least)
}

// add draws an entrant.
func (d dots) add(t *testing.T, p *plot.Plot, line plotter.XYs, our bool) {
	t.Helper()
	shade := theirs
	if our {
		shade = ours
	}
	between, err := plotter.NewLine(line)
	if err != nil {
		t.Fatal(err)
	}
	between.Color = shade
	p.Add(between)
	for i, at := range line {
		dot, err := plotter.NewScatter(plotter.XYs{at})
		if err != nil {
			t.Fatal(err)
		}
		dot.GlyphStyle = draw.GlyphStyle{Color: shade, Radius: vg.Points(3.5), Shape: glyphs[i]}
		p.Add(dot)
	}
}

// label names an entrant and its server.
func (s *standings) label(who entrant) string {
	name := who.name + " " + who.configuration.name
	if who.alone {
		name += " (its message alone)"
	}
	return name + " · " + s.engine.Name
}
