package bench

import "time"

// progress tells which step of a run begins, and how much of the run is finished.
type progress struct {
	tell        func(step string, finished float64) // may be nil
	done, total time.Duration                       // of the estimate
}

// begin announces a step, with the estimate of its duration.
func (p *progress) begin(step string, estimate time.Duration) {
	if p.tell != nil {
		p.tell(step, min(float64(p.done)/float64(max(p.total, 1)), 1))
	}
	p.done += estimate
}
