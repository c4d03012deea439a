package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

const (
	watchPause  = 2 * time.Second
	clearScreen = "\x1b[H\x1b[2J" // ECMA-48: the cursor to the first line, and erase all
)

// AddWatch adds the flag --watch to a command that calls [Watch].
func (a *App) AddWatch(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.watch, "watch", false,
		fmt.Sprintf("print it again every %g s until interrupted; with -o json as one line each time",
			watchPause.Seconds()))
}

// Watch loads a state and shows it. With --watch it repeats this until ctx ends. On a terminal it clears the screen
// each time. If the first load succeeded, the errors of others are printed: the database may come back.
func Watch[T any](ctx context.Context, a *App, load func() (T, error), show func(T) error) error {
	for first := true; ; first = false {
		state, err := load()
		loaded := err == nil
		switch {
		case err != nil && a.watch && ctx.Err() != nil:
			return nil
		case err != nil && first:
			return err
		case err != nil:
			_, err = fmt.Fprintln(a.Stderr, "rowfeed:", err)
		case a.watch && IsTerminal(a.Stdout):
			_, err = fmt.Fprint(a.Stdout, clearScreen)
		case !first && !a.JSON:
			_, err = fmt.Fprintln(a.Stdout)
		}
		if err == nil && loaded {
			err = show(state)
		}
		if err != nil || !a.watch {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchPause):
		}
	}
}
