package cli

import (
	"slices"
	"testing"
	"time"
)

// FuzzFlags: what a flag takes it shows as it would take it again.
func FuzzFlags(f *testing.F) {
	for _, seed := range []string{
		"", "30d", "1d12h", "90m", "-1s", "1e9d", "100/s", "90/m", "NaN/s", "Inf", "2", "0.5", "forever", "100", "a,b",
		`"a,b",c(1,2)`, `id:numeric(10,2)`, "(", `"`, "9999999999h", "0x10", "1_000",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var d Duration
		if d.Set(text) == nil && d.Duration != 0 {
			var again Duration
			if err := again.Set(d.String()); err != nil || again.Duration != d.Duration {
				t.Errorf("duration %q: %q, then %v", text, d.String(), err)
			}
		}
		var s Rate
		if s.Set(text) == nil {
			if !(s.PerSecond > 0 && s.PerSecond <= 1e9) {
				t.Errorf("speed %q: %g", text, s.PerSecond)
			}
			var again Rate
			if err := again.Set(s.String()); err != nil || again != s {
				t.Errorf("speed %q: %q, then %v", text, s.String(), err)
			}
		}
		var seconds Seconds
		if seconds.Set(text) == nil && (seconds < 0 || time.Duration(seconds) > time.Hour) {
			t.Errorf("seconds %q: %s", text, time.Duration(seconds))
		}
		var r Retention
		if r.Set(text) == nil && (r.Age < 0 || r.Count < 0) {
			t.Errorf("retention %q: %+v", text, r)
		}
		var names NameList
		if names.Set(text) == nil && (len(names.Names) == 0 || slices.Contains(names.Names, "")) {
			t.Errorf("names %q: %q", text, names.Names)
		}
		var shard ShardNumber
		if shard.Set(text) == nil {
			var again ShardNumber
			if err := again.Set(shard.String()); err != nil || again != shard {
				t.Errorf("shard %q: %s, then %v", text, shard.String(), err)
			}
		}
	})
}
