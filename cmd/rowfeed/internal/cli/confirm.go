package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/rowfeed/rowfeed"
	"github.com/spf13/cobra"
)

// Consent is whether a command may make a change that cannot be undone: --yes and --dry-run.
type Consent struct{ yes, DryRun bool }

// Bind adds the flags.
func (c *Consent) Bind(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&c.yes, "yes", false, "do not ask, as a script needs it")
	cmd.Flags().BoolVar(&c.DryRun, "dry-run", false, "only say how much this is about")
}

// Confirm asks the user of a terminal whether to make a change, such as "drop 12 dead letters", with a sentence on its
// effect. It returns an error if the answer is not yes, or if there is no terminal, unless --yes is given.
func (a *App) Confirm(ctx context.Context, c Consent, object, change, effect string) error {
	if c.yes {
		return nil
	}
	if a.Ask == nil {
		return &rowfeed.Error{Code: rowfeed.Refused, Object: object, Cause: "a confirmation is needed to " +
			change + ", but there is no terminal to ask on; nothing was changed", Next: "repeat the command with --yes"}
	}
	answer, err := a.Ask(ctx, escape(object+": "+change+"? "+effect+" [y/N] "))
	if err != nil {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return &rowfeed.Error{Code: rowfeed.Refused, Object: object, Cause: "not confirmed: nothing was changed",
		Next: "answer y, or give --yes"}
}

// AskOn returns App.Ask for a terminal, and nil if in or out is not one.
func AskOn(in *os.File, out io.Writer) func(context.Context, string) (string, error) {
	if !IsTerminal(in) || !IsTerminal(out) {
		return nil
	}
	return func(ctx context.Context, question string) (string, error) {
		if _, err := fmt.Fprint(out, question); err != nil {
			return "", err
		}
		answers := make(chan string, 1)
		go func() {
			line, _ := bufio.NewReader(in).ReadString('\n') // an end of the input is no consent
			answers <- line
		}()
		select {
		case answer := <-answers:
			return answer, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}
