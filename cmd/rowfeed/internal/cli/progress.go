package cli

import (
	"time"

	"github.com/schollz/progressbar/v3"
)

// progress is a bar on stderr, or nothing where that is no terminal.
type Progress struct{ bar *progressbar.ProgressBar }

// newProgress starts a bar; a total of -1 is unknown.
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

func (p *Progress) Set(n int64) {
	if p.bar != nil {
		_ = p.bar.Set64(n) // a bar that cannot be drawn is no reason to stop
	}
}

func (p *Progress) Done() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}

// steps is a bar of work whose parts are told by name.
type Steps struct{ bar *progressbar.ProgressBar }

const wholeBar = 1000

// newSteps starts a bar of steps, or nothing where stderr is no terminal.
func (a *App) NewSteps() *Steps {
	if !IsTerminal(a.Stderr) {
		return &Steps{}
	}
	return &Steps{progressbar.NewOptions(wholeBar, progressbar.OptionSetWriter(a.Stderr),
		progressbar.OptionSetElapsedTime(true),
		progressbar.OptionSetPredictTime(false), progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish())}
}

// say names what begins, with a share of the whole (0 to 1) behind it.
func (s *Steps) Begin(what string, behind float64) {
	if s.bar != nil {
		s.bar.Describe(what)
		_ = s.bar.Set(min(int(behind*wholeBar), wholeBar-1)) // a full bar would be cleared
	}
}

func (s *Steps) Done() {
	if s.bar != nil {
		_ = s.bar.Clear()
	}
}
