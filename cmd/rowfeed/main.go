// Command rowfeed turns tables of an ordinary SQL database into change feeds.
//
// This package composes the commands (root.go). They are in packages by what they are for: internal/feeds,
// internal/service, internal/read and internal/operate. Commands about rowfeed itself are here: bench, conform, config,
// docs, completion and version. Each command has an options struct, a constructor that binds it to flags, and a run
// method that does the work. Package internal/cli has what all commands share.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/cmd/tracing"
)

func main() {
	// With SIGPIPE ignored, writing to a closed pipe returns an error. The command tail then ends as after a signal.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal ends the command in an orderly way. A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr, os.Getenv))
}

// run is the whole program. It returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer, getenv func(string) string) int {
	a := &cli.App{Stdout: stdout, Stderr: stderr, Getenv: getenv, Ask: cli.AskOn(os.Stdin, stderr)}
	root := newRoot(a)
	refuseUnknownHelp(root)
	root.SetArgs(args)
	var sendSpans func()
	var err error
	if a.Tracer, sendSpans, err = tracing.FromEnvironment(ctx, getenv); err != nil {
		return a.Report(ctx, err)
	}
	defer sendSpans()
	cmd, err := root.ExecuteContextC(ctx)
	a.Command = cmd.CommandPath()
	return a.Report(ctx, err)
}
