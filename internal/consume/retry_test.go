package consume

import (
	"testing"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
)

// TestBackoffDoublesUpToMaximum: pauses double and come to their maximum; long ones do not overflow.
func TestBackoffDoublesUpToMaximum(t *testing.T) {
	for _, c := range []struct {
		first, most, want time.Duration
		n                 int
	}{
		{0, 0, 100 * time.Millisecond, 1},
		{0, 0, 400 * time.Millisecond, 3},
		{0, 0, 30 * time.Second, 1000},
		{time.Minute, 0, time.Minute, 1},
		{time.Minute, time.Second, time.Second, 1},
		{3 * time.Hour, 4 * time.Hour, 4 * time.Hour, 21},
		{1 << 60, 1 << 61, 1 << 61, 5},
	} {
		consumer := &Consumer{Retry: feedtype.Retry{Backoff: c.first, MaxBackoff: c.most}}
		r := &retry{assignment: &assignment{c: consumer.withDefaults()}}
		if got := r.backoff(c.n); got < c.want/2 || got > c.want/2+c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
