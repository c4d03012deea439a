package publish

import (
	"testing"
	"time"
)

// TestUnknownFailureIsRemovedEveryMinute (M72): a success without a failure of its own process removes the stored
// failure if a minute has passed since the last removal.
func TestUnknownFailureIsRemovedEveryMinute(t *testing.T) {
	var s failures
	first := time.Now()
	for _, c := range []struct {
		after time.Duration
		want  bool
	}{{0, true}, {clearEvery - 1, false}, {clearEvery, true}, {clearEvery + 1, false}, {2 * clearEvery, true}} {
		if attempts, due := s.end(nil, first.Add(c.after)); attempts != 0 || due != c.want {
			t.Errorf("after %v: %d, %v, want 0, %v", c.after, attempts, due, c.want)
		}
	}
}
