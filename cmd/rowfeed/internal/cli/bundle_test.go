package cli

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowfeed/rowfeed"
)

// TestRepeatedFailuresAreOneMessage: of failed attempts the first is logged at once, with key, position and attempt,
// and at the end of each minute the latest, with the number of the others. The end is logged once. Dead letters are
// bundled likewise.
func TestRepeatedFailuresAreOneMessage(t *testing.T) { synctest.Test(t, repeatedFailuresAreOneMessage) }

func repeatedFailuresAreOneMessage(t *testing.T) {
	var out bytes.Buffer
	a := &App{Stderr: io.Discard}
	minute := func() {
		<-time.After(bundleEvery) // by the bubble's clock
		synctest.Wait()
	}
	o := a.logging(a.logTo(&out, "text", slog.LevelInfo))
	wants := func(what string, want ...[]string) {
		t.Helper()
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if out.Reset(); len(want) == 0 && lines[0] == "" {
			return
		}
		if len(lines) != len(want) {
			t.Fatalf("%s: %d lines, want %d: %q", what, len(lines), len(want), lines)
		}
		for i, line := range lines {
			for _, part := range want[i] {
				if !strings.Contains(line, part) {
					t.Errorf("%s: %q lacks %q", what, line, part)
				}
			}
		}
	}
	attempts := 0
	fail := func(times int, err error) {
		for range times {
			attempts++
			o.Trouble(rowfeed.TroubleEvent{Feed: "kv", Consumer: "hook", ShardCount: 1, Key: `{"id":7}`, Position: "12",
				Attempt: attempts, Err: err})
		}
	}
	first := errors.New("refused")
	fail(100, first)
	wants("the first", []string{"a consumer fails", "feed=kv", "consumer=hook", `key="{\"id\":7}"`, "position=12",
		"attempt=1", "error=refused"})
	minute()
	wants("the end of the minute", []string{"attempt=100", "omitted=98"})
	minute()
	wants("a minute without failures")
	fail(2, first)
	wants("the next failure", []string{"attempt=101"})
	fail(2, &rowfeed.Error{Code: rowfeed.Unavailable, Cause: "it is away"})
	wants("another error", []string{"attempt=103", "it is away"})
	o.Trouble(rowfeed.TroubleEvent{Feed: "kv", Attempt: 1, Err: first})
	wants("the publisher", []string{"a publisher fails"})
	for range 2 {
		o.Recovered(rowfeed.RecoveredEvent{Feed: "kv", Consumer: "hook", ShardCount: 1, Attempts: attempts})
	}
	wants("the end", []string{"a consumer works again", "attempts=104"})
	for range 3 {
		o.SetAside(rowfeed.SetAsideEvent{Feed: "kv", Consumer: "hook", ShardCount: 1, Attempts: 5, Key: `{"id":7}`,
			Position: "12", Err: first})
	}
	wants("dead letters", []string{"dead letter", `key="{\"id\":7}"`, "position=12", "attempts=5", "error=refused"})
	fail(1, first)
	o.Recovered(rowfeed.RecoveredEvent{Feed: "kv", Consumer: "hook", ShardCount: 1, Attempts: 1})
	wants("within the minute")
	minute()
	wants("the rest of the dead letters", []string{"dead letter", "omitted=1"})
	fail(2, first)
	wants("after the end", []string{"attempt=106", "omitted=2"})
	a.Report(t.Context(), nil)
	minute()
	wants("the command has ended")
}
