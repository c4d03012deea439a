package bench

import "time"

const (
	// rowCost is the estimated time of one row that is written, published or read in bulk.
	rowCost = 25 * time.Microsecond
	// maxSettling bounds how long a quiet process runs before its statements are counted.
	maxSettling = time.Second
)

// duration estimates the time of all measures together.
func (c Config) duration() (sum time.Duration) {
	costs := map[string]time.Duration{
		Writers: c.fillCost()*time.Duration(len(captures)) + time.Duration(len(captures)-1)*c.bulk(2) +
			time.Duration(c.Repetitions*len(captures)*len(writes))*c.windowCost(),
		Drain:   time.Duration(c.Repetitions*len(batches)) * c.drainCost(),
		Pages:   c.bulk(2) + time.Duration(c.Repetitions)*c.bulk(1),
		Consume: c.bulk(2) + time.Duration(c.Repetitions)*c.bulk(1),
		Latency: time.Duration(c.Repetitions) * c.Window,
		Idle:    2 * c.idleCost(),
	}
	for _, m := range c.selected() {
		sum += costs[m]
	}
	if c.sharesRows() {
		sum += c.fillCost()
	}
	return sum
}

// bulk estimates the time of so many operations on all rows of a table.
func (c Config) bulk(times int) time.Duration { return time.Duration(c.Rows*times) * rowCost }

func (c Config) fillCost() time.Duration { return c.bulk(1) }

// windowCost estimates one window of the writers, and the publishing of what they wrote.
func (c Config) windowCost() time.Duration { return c.Window * 3 / 2 }

// drainCost estimates two backlogs of one feed: each is recorded and published.
func (c Config) drainCost() time.Duration { return c.bulk(4) }

// idleCost estimates one count of what a quiet process sends.
func (c Config) idleCost() time.Duration {
	return c.settling() + c.Window*time.Duration(c.Repetitions)
}

// settling is how long a quiet process runs before its statements are counted.
func (c Config) settling() time.Duration {
	return min(maxSettling, c.Window*time.Duration(c.Repetitions))
}

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
