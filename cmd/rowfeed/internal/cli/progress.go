package cli

import (
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// Progress is a progress bar on stderr, with the rate and the time left. It shows nothing if stderr is no terminal.
type Progress struct {
	total          func() (int64, error)
	asked, counted bool                     // total was called, and has succeeded
	bar            *progressbar.ProgressBar // nil without a terminal
}

// NewProgress returns a bar whose clock runs from now on. Only if there is a terminal, the first Set asks for the
// total. If that fails, the bar shows no time left.
func (a *App) NewProgress(what string, total func() (int64, error)) *Progress {
	if !IsTerminal(a.Stderr) {
		return &Progress{}
	}
	return newProgress(a.Stderr, what, total)
}

func newProgress(out io.Writer, what string, total func() (int64, error)) *Progress {
	const unasked = 1
	bar := progressbar.NewOptions64(unasked,
		progressbar.OptionSetWriter(out), progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString("rows"),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
	bar.StartWithoutRender()
	return &Progress{total: total, bar: bar}
}

// Set shows that n rows are done.
func (p *Progress) Set(n int64) {
	if p.bar == nil {
		return
	}
	if !p.asked {
		total, err := p.total()
		if p.counted = err == nil; err != nil {
			total = -1 // the bar's sign for an unknown total
		}
		p.bar.ChangeMax64(total)
		p.asked = true
	}
	if p.counted && n > p.bar.GetMax64() { // rows were added since they were counted
		p.bar.ChangeMax64(n)
	}
	_ = p.bar.Set64(n) // the work goes on without a bar
}

// Done removes the bar.
func (p *Progress) Done() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}

// Steps is a progress bar that shows the name of the current step.
type Steps struct{ bar *progressbar.ProgressBar }

const wholeBar = 1000

// NewSteps starts a bar of steps. It shows nothing if stderr is no terminal.
func (a *App) NewSteps() *Steps {
	if !IsTerminal(a.Stderr) {
		return &Steps{}
	}
	return &Steps{progressbar.NewOptions(wholeBar, progressbar.OptionSetWriter(a.Stderr),
		progressbar.OptionSetElapsedTime(true),
		progressbar.OptionSetPredictTime(false), progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish())}
}

// Begin shows the name of the step that begins, and which share of all work (0 to 1) is done.
func (s *Steps) Begin(what string, done float64) {
	if s.bar != nil {
		s.bar.Describe(what)
		_ = s.bar.Set(min(int(done*wholeBar), wholeBar-1)) // a full bar would disappear
	}
}

// Done removes the bar.
func (s *Steps) Done() {
	if s.bar != nil {
		_ = s.bar.Clear()
	}
}
