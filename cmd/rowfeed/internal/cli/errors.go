package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/open"
	"github.com/spf13/cobra"
)

// The exit codes.
const (
	ExitDone   = 0
	ExitFailed = 1
	ExitUsage  = 2
)

// usageError is a command line that cannot be run.
type usageError struct {
	command string
	err     error
}

func (e *usageError) Error() string {
	return fmt.Sprintf("%v. Next: see `%s --help`", e.err, e.command)
}

func (e *usageError) Unwrap() error { return e.err }

// WrongUse returns an error with which rowfeed ends with ExitUsage. The text is followed by a hint to --help.
func WrongUse(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{cmd.CommandPath(), fmt.Errorf(format, args...)}
}

// Report prints an error to stderr and returns the exit code.
func (a *App) Report(ctx context.Context, err error) int {
	a.repeated.end() // the command has ended
	switch {
	case err == nil || errors.Is(err, syscall.EPIPE): // the reader of the output has closed its pipe
		return ExitDone
	case ctx.Err() != nil:
		fmt.Fprintln(a.Stderr, "rowfeed: interrupted")
		return ExitFailed
	}
	text, code := a.ErrorText(err), ExitFailed
	var wrong *usageError
	if errors.As(err, &wrong) || errors.Is(err, rowfeed.InvalidRequest) {
		code = ExitUsage
		if !strings.Contains(text, ". Next: ") {
			text += ". Next: see `" + cmp.Or(a.Command, "rowfeed") + " --help`"
		}
	}
	fmt.Fprintln(a.Stderr, "rowfeed: "+text)
	return code
}

// ErrorText returns an error's text for a log or a terminal, without passwords and control characters.
func (a *App) ErrorText(err error) string { return a.safeText(err.Error()) }

func (a *App) safeText(text string) string {
	text = open.ScrubText(a.URL, text)
	for _, url := range a.SecretURLs {
		text = open.ScrubText(url, text)
	}
	return escape(text)
}
