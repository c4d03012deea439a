package cli

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
)

// TestWatchOutlivesFailures: with --watch a failure after the first state is printed, and the next state is shown. A
// failure of the first load ends the command.
func TestWatchOutlivesFailures(t *testing.T) {
	away := errors.New("the database is away")
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		var failures strings.Builder
		a := &App{Stdout: io.Discard, Stderr: &failures, watch: true}
		loads, shown := 0, 0
		err := Watch(ctx, a, func() (int, error) {
			if loads++; loads == 2 {
				return 0, away
			}
			return loads, nil
		}, func(state int) error {
			if shown = state; state == 3 {
				interrupt()
			}
			return nil
		})
		if err != nil || shown != 3 || failures.String() != "rowfeed: the database is away\n" {
			t.Errorf("ended with %v after state %d, printed %q", err, shown, failures.String())
		}
		err = Watch(t.Context(), a, func() (int, error) { return 0, away }, func(int) error { return nil })
		if !errors.Is(err, away) {
			t.Errorf("the first load failed: %v", err)
		}
	})
}
