package main

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
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// usageError is a wrong use of the command line.
type usageError struct {
	command string
	err     error
}

func (e *usageError) Error() string {
	return fmt.Sprintf("%v. Next: see `%s --help`", e.err, e.command)
}

func (e *usageError) Unwrap() error { return e.err }

func usage(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{cmd.CommandPath(), fmt.Errorf(format, args...)}
}

// report prints an error and answers the exit code.
func (a *app) report(ctx context.Context, err error) int {
	switch {
	case err == nil || errors.Is(err, syscall.EPIPE): // whoever read the output has gone
		return exitDone
	case ctx.Err() != nil:
		fmt.Fprintln(a.stderr, "rowfeed: interrupted")
		return exitFailed
	}
	text, code := a.plain(err), exitFailed
	var wrong *usageError
	if errors.As(err, &wrong) || errors.Is(err, rowfeed.InvalidRequest) {
		code = exitUsage
		if !strings.Contains(text, ". Next: ") {
			text += ". Next: see `" + cmp.Or(a.command, "rowfeed") + " --help`"
		}
	}
	fmt.Fprintln(a.stderr, "rowfeed: "+text)
	return code
}

// plain is an error's text for a log or a terminal: no password, and nothing that it would obey.
func (a *app) plain(err error) string { return a.plainText(err.Error()) }

func (a *app) plainText(text string) string {
	text = open.ScrubText(a.url, text)
	for _, url := range a.hidden {
		text = open.ScrubText(url, text)
	}
	return tamed(text)
}
