package watch

import "time"

const (
	// firstPause is the pause after a poll that found a change, unless changes come more often.
	firstPause = time.Millisecond
	// shortestPause is the minimum pause. Changes that arrive during a pause are published together.
	shortestPause = firstPause / 2
	// pollsPerChange is the number of polls between two changes, while changes come evenly.
	pollsPerChange = 4
	// quietIntervals is how many usual intervals between changes pass without a change before pauses grow.
	quietIntervals = 8
)

// Pace adapts the pauses between polls to how often polls found a change of late. For changes every few milliseconds
// pauses are a millisecond or two. For rare changes they are Longest.
type Pace struct {
	Longest  time.Duration
	last     time.Time     // when a poll found a change
	interval time.Duration // the moving average between changes; 0 before the first
}

// Brought notes n changes that a poll has found.
func (p *Pace) Brought(n int, now time.Time) {
	slowest := pollsPerChange * p.Longest // longer intervals make no pause longer
	if p.last.IsZero() {
		p.interval = slowest
	}
	since := min(now.Sub(p.last)/time.Duration(max(n, 1)), slowest)
	p.last = now
	p.interval += (since - p.interval) / 4
}

// Pause is the time until the next poll.
func (p *Pace) Pause(now time.Time) time.Duration {
	if p.last.IsZero() {
		return p.Longest
	}
	since := now.Sub(p.last)
	pause := max(p.interval/pollsPerChange, since/(pollsPerChange*quietIntervals))
	// A change may be the first of many.
	pause = min(pause, max(since/2, firstPause))
	return min(max(pause, shortestPause), p.Longest)
}
