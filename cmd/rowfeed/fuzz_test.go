package main

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
		var d duration
		if d.Set(text) == nil && d.Duration != 0 {
			var again duration
			if err := again.Set(d.String()); err != nil || again.Duration != d.Duration {
				t.Errorf("duration %q: %q, then %v", text, d.String(), err)
			}
		}
		var s speed
		if s.Set(text) == nil {
			if !(s.perSecond > 0 && s.perSecond <= 1e9) {
				t.Errorf("speed %q: %g", text, s.perSecond)
			}
			var again speed
			if err := again.Set(s.String()); err != nil || again != s {
				t.Errorf("speed %q: %q, then %v", text, s.String(), err)
			}
		}
		var seconds secondsFlag
		if seconds.Set(text) == nil && (seconds < 0 || time.Duration(seconds) > time.Hour) {
			t.Errorf("seconds %q: %s", text, time.Duration(seconds))
		}
		var r retention
		if r.Set(text) == nil && (r.Age < 0 || r.Count < 0) {
			t.Errorf("retention %q: %+v", text, r)
		}
		var names nameList
		if names.Set(text) == nil && (len(names.names) == 0 || slices.Contains(names.names, "")) {
			t.Errorf("names %q: %q", text, names.names)
		}
		var shard shardNumber
		if shard.Set(text) == nil {
			var again shardNumber
			if err := again.Set(shard.String()); err != nil || again != shard {
				t.Errorf("shard %q: %s, then %v", text, shard.String(), err)
			}
		}
	})
}
