package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/rowfeed/rowfeed"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// say prints a line to stdout.
func (a *app) say(format string, args ...any) error {
	_, err := fmt.Fprintln(a.stdout, tamed(fmt.Sprintf(format, args...)))
	return err
}

// tamed writes out what a terminal would obey, or hide, instead of showing it: names, keys and
// statements are other people's. Lines stay lines.
func tamed(text string) string {
	hidden := func(r rune) bool {
		return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
	}
	if strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if hidden(r) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// printJSON prints a value, indented, as every --json does.
func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// printTable prints rows under a header. There are no colours, on a terminal or not.
func (a *app) printTable(header table.Row, rows []table.Row) error {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault // a header may hold a feed's name
	t.AppendHeader(header)
	for _, row := range rows {
		shown := make(table.Row, len(row))
		for i, cell := range row {
			shown[i] = cell
			if text, ok := cell.(string); ok {
				shown[i] = tamed(text)
			}
		}
		t.AppendRow(shown)
	}
	_, err := fmt.Fprintln(a.stdout, t.Render())
	return err
}

// writePage writes a page as NDJSON: an entry a line, then where it ended.
func writePage(out io.Writer, page rowfeed.Page) error {
	_, err := out.Write(page.AppendLines(nil))
	return err
}

// isTerminal tells whether a person is watching.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// progress is a bar on stderr, or nothing where that is no terminal.
type progress struct{ bar *progressbar.ProgressBar }

// newProgress starts a bar; a total of -1 is unknown.
func (a *app) newProgress(what string, total int64) *progress {
	if !isTerminal(a.stderr) {
		return &progress{}
	}
	return &progress{progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(a.stderr), progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString("rows"),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
	)}
}

func (p *progress) set(n int64) {
	if p.bar != nil {
		_ = p.bar.Set64(n) // a bar that cannot be drawn is no reason to stop
	}
}

func (p *progress) done() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}

// steps is a bar of work whose parts are told by name.
type steps struct{ bar *progressbar.ProgressBar }

const wholeBar = 1000

// newSteps starts a bar of steps, or nothing where stderr is no terminal.
func (a *app) newSteps() *steps {
	if !isTerminal(a.stderr) {
		return &steps{}
	}
	return &steps{progressbar.NewOptions(wholeBar, progressbar.OptionSetWriter(a.stderr),
		progressbar.OptionSetElapsedTime(true),
		progressbar.OptionSetPredictTime(false), progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish())}
}

// say names what begins, with a share of the whole (0 to 1) behind it.
func (s *steps) say(what string, behind float64) {
	if s.bar != nil {
		s.bar.Describe(what)
		_ = s.bar.Set(min(int(behind*wholeBar), wholeBar-1)) // a full bar would be cleared
	}
}

func (s *steps) done() {
	if s.bar != nil {
		_ = s.bar.Clear()
	}
}

// plural is "1 key", "2 keys".
func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
