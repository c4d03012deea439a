package main

import (
	"time"

	"github.com/schollz/progressbar/v3"
)

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
