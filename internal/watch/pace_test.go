package watch

import (
	"testing"
	"time"
)

// paced looks for a minute, in no time, for changes that come at so many a second, or two
// milliseconds apart in bursts that begin at that rate. It answers how many looks there were, and how long changes
// waited for theirs: on average, and at most.
func paced(perSecond float64, burst int) (looks int, mean, most time.Duration) {
	p := Pace{Longest: 50 * time.Millisecond}
	start := time.Unix(0, 0)
	var due []time.Time
	for at := time.Duration(0); at < time.Minute; at += time.Duration(float64(time.Second) / perSecond) {
		for i := range burst {
			due = append(due, start.Add(at+time.Duration(i)*2*time.Millisecond))
		}
	}
	all := len(due)
	var waited time.Duration
	for now := start; now.Before(start.Add(time.Minute)); now = now.Add(p.Pause(now)) {
		looks++
		found := 0
		for ; found < len(due) && !due[found].After(now); found++ {
			wait := now.Sub(due[found])
			waited, most = waited+wait, max(most, wait)
		}
		if due = due[found:]; found > 0 {
			p.Brought(found, now)
		}
	}
	return looks, waited / time.Duration(all), most
}

// TestPace: looks come as often as changes do, so that these do not wait long, and a database
// in which little happens is asked little.
func TestPace(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name          string
		perSecond     float64
		burst         int
		looks         int // a second, at most
		mean, longest time.Duration
	}{
		{"nothing", 1.0 / 120, 1, 21, 50 * ms, 50 * ms},
		{"one a second", 1, 1, 35, 26 * ms, 51 * ms},
		{"20 a second", 20, 1, 250, 8 * ms, 51 * ms},
		{"200 a second", 200, 1, 1000, 1 * ms, 51 * ms},
		{"1,000 a second", 1000, 1, 2100, ms, 51 * ms},
		{"a burst of 100 each second", 1, 100, 600, 2 * ms, 51 * ms},
	} {
		looks, mean, most := paced(c.perSecond, c.burst)
		t.Logf("%s: %d looks a second, a change waits for %s, at most %s", c.name, looks/60, mean, most)
		if looks/60 > c.looks || mean > c.mean || most > c.longest {
			t.Errorf("%s: %d looks a second, a change waits for %s, at most %s; want at most %d, %s and %s",
				c.name, looks/60, mean, most, c.looks, c.mean, c.longest)
		}
	}
}

// TestPaceEnds: after the last change pauses grow to the longest, and never beyond.
func TestPaceEnds(t *testing.T) {
	p := Pace{Longest: 50 * time.Millisecond}
	now := time.Unix(0, 0)
	if got := p.Pause(now); got != p.Longest {
		t.Errorf("%s before anything has come", got)
	}
	for range 1000 {
		now = now.Add(5 * time.Millisecond)
		p.Brought(1, now)
	}
	before, looks := p.Pause(now), 0
	if before > 2*time.Millisecond {
		t.Errorf("%s after a change that came as fast as 1,000 before", before)
	}
	for end := now; before < p.Longest; looks++ {
		now = now.Add(before)
		next := p.Pause(now)
		if next < before || next > p.Longest || now.Sub(end) > 5*time.Second {
			t.Fatalf("a pause of %s after one of %s, %s after the last change", next, before, now.Sub(end))
		}
		before = next
	}
	if looks > 200 {
		t.Errorf("%d looks until pauses are long again", looks)
	}
}
