package watch

import (
	"testing"
	"time"
)

// paced simulates a minute of polls. At each of perSecond times a second a burst of changes comes, two milliseconds
// apart. It answers the number of polls, and how long changes waited for theirs: on average, and at most.
func paced(perSecond float64, burst int) (polls int, mean, most time.Duration) {
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
		polls++
		found := 0
		for ; found < len(due) && !due[found].After(now); found++ {
			wait := now.Sub(due[found])
			waited, most = waited+wait, max(most, wait)
		}
		if due = due[found:]; found > 0 {
			p.Brought(found, now)
		}
	}
	return polls, waited / time.Duration(all), most
}

// TestPollsFollowRateOfChanges: polls follow the rate of changes, so that changes do not wait long and a quiet database
// is rarely polled.
func TestPollsFollowRateOfChanges(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name          string
		perSecond     float64
		burst         int
		polls         int // a second, at most
		mean, longest time.Duration
	}{
		{"nothing", 1.0 / 120, 1, 21, 50 * ms, 50 * ms},
		{"one a second", 1, 1, 35, 26 * ms, 51 * ms},
		{"20 a second", 20, 1, 250, 8 * ms, 51 * ms},
		{"200 a second", 200, 1, 1000, 1 * ms, 51 * ms},
		{"1,000 a second", 1000, 1, 2100, ms, 51 * ms},
		{"a burst of 100 each second", 1, 100, 600, 2 * ms, 51 * ms},
	} {
		polls, mean, most := paced(c.perSecond, c.burst)
		t.Logf("%s: %d polls a second, a change waits for %s, at most %s", c.name, polls/60, mean, most)
		if polls/60 > c.polls || mean > c.mean || most > c.longest {
			t.Errorf("%s: %d polls a second, a change waits for %s, at most %s; want at most %d, %s and %s",
				c.name, polls/60, mean, most, c.polls, c.mean, c.longest)
		}
	}
}

// TestPausesGrowUpToLongest: after the last change pauses grow to Longest, and never beyond.
func TestPausesGrowUpToLongest(t *testing.T) {
	p := Pace{Longest: 50 * time.Millisecond}
	now := time.Unix(0, 0)
	if got := p.Pause(now); got != p.Longest {
		t.Errorf("a pause of %s before the first change", got)
	}
	for range 1000 {
		now = now.Add(5 * time.Millisecond)
		p.Brought(1, now)
	}
	before, polls := p.Pause(now), 0
	if before > 2*time.Millisecond {
		t.Errorf("a pause of %s after 1,000 changes at 5 ms", before)
	}
	for end := now; before < p.Longest; polls++ {
		now = now.Add(before)
		next := p.Pause(now)
		if next < before || next > p.Longest || now.Sub(end) > 5*time.Second {
			t.Fatalf("a pause of %s after one of %s, %s after the last change", next, before, now.Sub(end))
		}
		before = next
	}
	if polls > 200 {
		t.Errorf("%d polls until pauses are long again", polls)
	}
}
