package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
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
	command *cobra.Command
	err     error
}

func (e *usageError) Error() string {
	return fmt.Sprintf("%v. Next: see `%s --help`", e.err, e.command.CommandPath())
}

func (e *usageError) Unwrap() error { return e.err }

// WrongUse returns an error with which rowfeed ends with ExitUsage. The text follows the name of the command, and is
// followed by a hint to --help.
func WrongUse(cmd *cobra.Command, format string, args ...any) error {
	if cmd.HasParent() {
		format = strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ") + ": " + format
	}
	return &usageError{cmd, fmt.Errorf(format, args...)}
}

// Report prints an error to stderr and returns the exit code.
func (a *App) Report(ctx context.Context, err error) int {
	a.repeated.end() // the command has ended
	switch {
	case err == nil || outputClosed(err):
		return ExitDone
	case ctx.Err() != nil:
		fmt.Fprintln(a.Stderr, "rowfeed: interrupted")
		return ExitFailed
	}
	code, hint := ExitFailed, ""
	var wrong *usageError
	if errors.As(err, &wrong) || errors.Is(err, rowfeed.InvalidRequest) {
		code = ExitUsage
		if !strings.Contains(a.ErrorText(err), ". Next: ") {
			hint = ". Next: see `" + cmp.Or(a.Command, "rowfeed") + " --help`"
		}
	}
	for _, one := range parts(err) {
		fmt.Fprintln(a.Stderr, "rowfeed: "+a.ErrorText(one)+hint)
	}
	return code
}

// outputClosed tells whether the reader of the output has closed its pipe. A connection that breaks has EPIPE as well.
func outputClosed(err error) bool {
	var failed *fs.PathError
	return errors.As(err, &failed) && failed.Path == os.Stdout.Name() && errors.Is(failed.Err, syscall.EPIPE)
}

// parts returns the errors that errors.Join has joined, or the error itself: one of fmt.Errorf has a text of its own.
func parts(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || errors.Join(joined.Unwrap()...).Error() != err.Error() {
		return []error{err}
	}
	return joined.Unwrap()
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
