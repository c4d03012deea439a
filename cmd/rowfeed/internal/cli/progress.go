package cli

import (
	"time"

	"github.com/schollz/progressbar/v3"
)

// Progress is a progress bar on stderr. It shows nothing if stderr is no terminal.
type Progress struct{ bar *progressbar.ProgressBar }

// NewProgress starts a bar. A total of -1 means that it is unknown.
func (a *App) NewProgress(what string, total int64) *Progress {
	if !IsTerminal(a.Stderr) {
		return &Progress{}
	}
	return &Progress{progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(a.Stderr), progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString("rows"),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
	)}
}

// Set shows that n rows are done.
func (p *Progress) Set(n int64) {
	if p.bar != nil {
		_ = p.bar.Set64(n) // the work goes on without a bar
	}
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
