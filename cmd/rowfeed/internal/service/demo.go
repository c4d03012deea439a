package service

import (
	"context"
	"errors"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/config"
	"github.com/rowfeed/rowfeed/cmd/internal/demo"
	"github.com/rowfeed/rowfeed/cmd/internal/sinks"
	"github.com/rowfeed/rowfeed/cmd/metrics"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/cmd/server"
	"github.com/spf13/cobra"
)

// DemoOptions are the options of the command demo.
type DemoOptions struct {
	Listen   string
	duration cli.Duration
	Rate     cli.Rate
	Wrote    func(int64) // for tests
}

func newDemo(a *cli.App) *cobra.Command {
	o := &DemoOptions{Rate: cli.Rate{PerSecond: 20}}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Try rowfeed: a database, writers, the publisher and the server in one process",
		Long: `Runs everything in one process, with nothing to prepare: an embedded SQLite database in
a temporary folder, a table kv, writers that insert, update, delete and change keys, the
publisher, and the server with its console. The demo prints commands to try. At the end
it prints whether feed and table agree. Ctrl-C ends the demo and removes the folder.

With --db the demo makes the table and the feed in that database, and they stay there.
It does not touch a table kv that it did not make. It ignores ROWFEED_DB and
rowfeed.yaml.`,
		Example: `  rowfeed demo
  rowfeed demo --listen 127.0.0.1:9000 --rate 200/s
  rowfeed demo --duration 10s`,
		Args: cli.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.Run(cmd.Context(), a) },
	}
	cmd.Flags().StringVar(&o.Listen, "listen", config.DefaultListen, "`address` to listen on")
	cmd.Flags().Var(&o.duration, "duration", "end after this time (default: never)")
	cmd.Flags().Var(&o.Rate, "rate", "writes per second")
	return cmd
}

func (o *DemoOptions) Run(ctx context.Context, a *cli.App) error {
	if o.duration.Given && o.duration.Duration <= 0 {
		return &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: "duration",
			Cause: "demo: --duration must be positive", Next: "give a duration like 10s"}
	}
	cfg, err := a.LibraryConfig(&config.File{})
	if err != nil {
		return err
	}
	log := a.Logger(&config.File{}, "warn")
	a.Metrics = metrics.New(nil)
	cfg.Observer = a.Observer(log)
	if a.URL, err = sinks.Resolve("db", a.DB.String(), a.Getenv); err != nil {
		return err
	}
	err = demo.Run(ctx, demo.Config{
		URL: a.URL, DB: cfg, Rate: o.Rate.PerSecond, Duration: o.duration.Duration, Out: a.Stdout, Wrote: o.Wrote,
		Serve: func(ctx context.Context, db *rowfeed.DB, ready func(string)) error {
			return runServer(ctx, a, server.Config{DB: db, Listen: o.Listen, Publish: true, Log: log, Ready: ready,
				Everyone: a.URL == ""}) // the demo made all rows itself: they need no tokens
		},
	})
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return nil // interrupted before the demo had started
	}
	return err
}
