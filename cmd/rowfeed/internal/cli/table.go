package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
)

// The header of a table has these types for columns that differ from the others.
type (
	Wide    string // is shown with -o wide only
	Text    string // is cut to the width of the table, but not with -o wide
	Wrapped string // is wrapped to the width of the table on a terminal, but not with -o wide
)

const (
	// tableWidth is the maximum width of a table without -o wide. A table with long names is wider: names are not cut,
	// because users copy them, and a number, a state or a time would be wrong if it were cut.
	tableWidth  = 80
	leastWidth  = 20 // of a column that is cut or wrapped
	columnSpace = "  "
)

// AddOutput adds the flags -o and --json to a command. A command without a table accepts wide, too, because
// ROWFEED_OUTPUT is for all commands.
func (a *App) AddOutput(cmd *cobra.Command, withTable bool) {
	o, usage := &outputFlag{a: a}, "print this `format`: json"
	o.of = []string{"wide", "json"}
	if withTable {
		usage += ", or wide for all columns of the table"
	}
	cmd.Flags().VarP(o, "output", "o", usage)
	cmd.Flags().BoolVar(&a.JSON, "json", false, "the same as -o json")
}

// outputFlag is the flag -o.
type outputFlag struct {
	oneOf
	a *App
}

func (o *outputFlag) Set(text string) error {
	if err := o.oneOf.Set(text); err != nil {
		return err
	}
	o.a.JSON, o.a.wide = text == "json", text == "wide"
	return nil
}

// PrintTable prints rows below a header, in aligned columns. An empty cell is shown as "-".
func (a *App) PrintTable(header table.Row, rows []table.Row) error {
	look := appearance{wide: a.wide, wrap: IsTerminal(a.Stdout)}
	look.colours = look.wrap && a.Getenv("NO_COLOR") == ""
	_, err := fmt.Fprintln(a.Stdout, look.render(header, rows))
	return err
}

// stateColours are the colours of states that need attention, on a terminal.
var stateColours = map[string]text.Color{
	"failing": text.FgRed, "failed": text.FgRed, "revoked": text.FgRed, "expired": text.FgYellow,
	"paused": text.FgYellow, "behind": text.FgYellow, "aside": text.FgYellow, "differs": text.FgYellow,
	"unknown": text.FgYellow, "ok": text.FgGreen, "active": text.FgGreen, "passed": text.FgGreen,
	"held": text.FgGreen, "holds": text.FgGreen,
}

// appearance is what differs between a terminal and a pipe, and with -o wide.
type appearance struct{ wide, wrap, colours bool }

func (a appearance) render(header table.Row, rows []table.Row) string {
	var shown []int // the columns
	for i := range header {
		if _, hidden := header[i].(Wide); !hidden || a.wide {
			shown = append(shown, i)
		}
	}
	t := table.NewWriter()
	t.SetStyle(table.Style{Box: table.BoxStyle{PaddingRight: columnSpace},
		Options: table.OptionsNoBordersAndSeparators})
	t.SuppressTrailingSpaces()
	lines := make([]table.Row, len(rows)+1)
	widths, flexible := make([]int, len(shown)), 0
	for column, i := range shown {
		name := fmt.Sprint(header[i])
		lines[0] = append(lines[0], strings.ToUpper(name))
		_, wrapped := header[i].(Wrapped)
		_, cut := header[i].(Text)
		widths[column] = text.StringWidth(name)
		for n, row := range rows {
			cell := escape(cmp.Or(fmt.Sprint(row[i]), "-"))
			if cut {
				cell = strings.Join(strings.Fields(cell), " ")
			}
			widths[column] = max(widths[column], text.LongestLineLen(cell))
			lines[n+1] = append(lines[n+1], cell)
		}
		if (wrapped && a.wrap || cut) && !a.wide {
			flexible++
			widths[column] = 0
		}
	}
	rest := tableWidth - len(columnSpace)*(len(shown)-1)
	for _, w := range widths {
		rest -= w
	}
	var columns []table.ColumnConfig
	for column, i := range shown {
		c := table.ColumnConfig{Number: column + 1, Align: text.AlignLeft}
		if widths[column] == 0 {
			c.WidthMax, c.WidthMaxEnforcer = max(rest/flexible, leastWidth), text.WrapSoft
			if _, cut := header[i].(Text); cut {
				c.WidthMaxEnforcer = func(cell string, most int) string { return text.Snip(cell, most, "…") }
			}
		}
		if a.colours {
			c.Transformer = func(cell any) string {
				if colour, ok := stateColours[fmt.Sprint(cell)]; ok {
					return colour.Sprint(cell)
				}
				return fmt.Sprint(cell)
			}
		}
		columns = append(columns, c)
	}
	t.SetColumnConfigs(columns)
	for _, line := range lines {
		t.AppendRow(line)
	}
	return t.Render()
}
