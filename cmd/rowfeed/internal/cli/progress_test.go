package cli

import (
	"errors"
	"strings"
	"testing"
)

// TestProgressShowsTotal: a bar shows how many rows of how many are done. It raises a total that has become too low,
// and shows the rows alone if they cannot be counted.
func TestProgressShowsTotal(t *testing.T) {
	count := func(n int64, err error) func() (int64, error) { return func() (int64, error) { return n, err } }
	for _, c := range []struct {
		name  string
		total func() (int64, error)
		done  int64
		want  string
	}{
		{"counted", count(200, nil), 50, "(50/200, "},
		{"more than counted", count(200, nil), 300, "/300, "},
		{"not counted", count(0, errors.New("permission denied")), 50, "(50/-, "},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			p := &Progress{what: "placing rows", total: c.total, out: &out}
			p.Set(c.done)
			if got := out.String(); !strings.Contains(got, "placing rows") || !strings.Contains(got, c.want) {
				t.Errorf("the bar is %q, without %q", got, c.want)
			}
			p.Done()
		})
	}
}
