package watch

import "time"

const (
	// firstPause is the first one after a look that brought something, unless changes come
	// faster than that.
	firstPause = time.Millisecond
	// shortestPause bounds pauses from below: what comes meanwhile is published together.
	shortestPause = firstPause / 2
	// looksPerChange is how often a look comes between two changes, while they come evenly.
	looksPerChange = 4
	// pacePatience is how many times the usual time between two changes has to pass without one
	// before pauses grow.
	pacePatience = 8
)

// Pace spaces looks by how often they have brought something of late: changes that come
// every few milliseconds are looked for every one or two, and those that come once in a
// while as seldom as allowed.
type Pace struct {
	Longest time.Duration
	last    time.Time     // when something came
	lull    time.Duration // how long it usually takes until something comes; 0 before anything has
}

// Brought notes n changes that a look has found.
func (p *Pace) Brought(n int, now time.Time) {
	slowest := looksPerChange * p.Longest // beyond it pauses could not be any longer
	if p.last.IsZero() {
		p.lull = slowest
	}
	gap := min(now.Sub(p.last)/time.Duration(max(n, 1)), slowest)
	p.last = now
	p.lull += (gap - p.lull) / 4
}

// Pause is the time until the next look.
func (p *Pace) Pause(now time.Time) time.Duration {
	if p.last.IsZero() {
		return p.Longest
	}
	since := now.Sub(p.last)
	pause := max(p.lull/looksPerChange, since/(looksPerChange*pacePatience))
	// One change may be the first of many.
	pause = min(pause, max(since/2, firstPause))
	return min(max(pause, shortestPause), p.Longest)
}
