package cli

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestProgressShowsTotalAndRate: a bar shows how many rows of how many are done, and the rate since the work began. It
// raises a total that has become too low, and shows the rows alone if they cannot be counted.
func TestProgressShowsTotalAndRate(t *testing.T) {
	count := func(n int64, err error) func() (int64, error) { return func() (int64, error) { return n, err } }
	for _, c := range []struct {
		name  string
		total func() (int64, error)
		done  int64
		want  string
	}{
		{"counted", count(200, nil), 50, "(50/200, 25 rows/s)"},
		{"more than counted", count(200, nil), 300, "/300, "},
		{"not counted", count(0, errors.New("permission denied")), 50, "(50/-, 25 rows/s)"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out strings.Builder
			p := newProgress(&out, "placing rows", c.total)
			<-time.After(time.Second)
			p.Set(1)
			<-time.After(time.Second)
			p.Set(c.done)
			if got := out.String(); !strings.Contains(got, "placing rows") || !strings.Contains(got, c.want) {
				t.Errorf("%s: the bar is %q, without %q", c.name, got, c.want)
			}
			p.Done()
		})
	}
}
