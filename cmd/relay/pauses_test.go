package relay

import (
	"testing"
	"time"
)

// TestPausesGrowUntilARunLasts: runs that fail at once are further and further apart. After a long run the pause is
// short again.
func TestPausesGrowUntilARunLasts(t *testing.T) {
	p := newPauses()
	first := p.after(0)
	var last time.Duration
	for range 20 {
		last = p.after(time.Second)
	}
	again := p.after(time.Minute)
	if first > 200*time.Millisecond || last < 5*time.Second || again > 200*time.Millisecond {
		t.Errorf("pauses: first %s, after 20 short runs %s, after a long one %s", first, last, again)
	}
}
