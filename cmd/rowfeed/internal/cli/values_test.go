package cli

import (
	"slices"
	"testing"
	"time"
)

func TestDurationsMayHaveDays(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30d": 30 * 24 * time.Hour, "1d12h": 36 * time.Hour, "90m": 90 * time.Minute, "0": 0, "0d": 0,
		"1.5h": 90 * time.Minute,
	} {
		if got, err := parseDuration(text); err != nil || got != want {
			t.Errorf("%q is %s (%v), want %s", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "d", "30", "-1d", "1d24h", "1d-1h", "1.5d", "1h1d", "999999d", "99999999999999999999d", "soon",
	} {
		if got, err := parseDuration(text); err == nil {
			t.Errorf("%q is %s, want an error", text, got)
		}
	}
}

func TestRatesAreParsedPerSecond(t *testing.T) {
	for text, want := range map[string]float64{"20/s": 20, "90/m": 1.5, "7200/h": 2, "5": 5, "0.5/s": 0.5} {
		var r Rate
		if err := r.Set(text); err != nil || r.PerSecond != want {
			t.Errorf("%q is %v (%v), want %v", text, r.PerSecond, err, want)
		}
	}
	for _, text := range []string{"", "0", "-1/s", "1/", "1/x", "NaN", "Inf/s", "fast"} {
		var r Rate
		if err := r.Set(text); err == nil {
			t.Errorf("%q is %v, want an error", text, r.PerSecond)
		}
	}
}

func TestNameListsAreSplitOutsideOfParentheses(t *testing.T) {
	for text, want := range map[string][]string{
		"a": {"a"}, "a,b": {"a", "b"}, " a , b ": {"a", "b"}, "id:numeric(10,2),b": {"id:numeric(10,2)", "b"},
		`"odd,name",b`: {"odd,name", "b"},
	} {
		var l NameList
		if err := l.Set(text); err != nil || !slices.Equal(l.Names, want) {
			t.Errorf("%q is %q (%v), want %q", text, l.Names, err, want)
		}
	}
	for _, text := range []string{"", ",", "a,", `"a`, "a(1,2"} {
		var l NameList
		if err := l.Set(text); err == nil {
			t.Errorf("%q is %q, want an error", text, l.Names)
		}
	}
}
