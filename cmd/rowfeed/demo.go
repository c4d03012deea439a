package main

import (
	"context"
	"errors"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/config"
	"github.com/rowfeed/rowfeed/cmd/internal/demo"
	"github.com/rowfeed/rowfeed/cmd/internal/sinks"
	"github.com/rowfeed/rowfeed/cmd/metrics"
	"github.com/rowfeed/rowfeed/cmd/server"
	"github.com/spf13/cobra"
)

type demoOptions struct {
	listen   string
	duration duration
	rate     speed
	wrote    func(int64) // for tests
}

func newDemo(a *app) *cobra.Command {
	o := &demoOptions{rate: speed{20}}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See it run: a database, writers, the publisher and the server in one",
		Long: `Runs everything in one process, with nothing to prepare: an embedded SQLite database
in a temporary folder, a table kv with writers that insert, update, delete and change
keys, the publisher, and the server with its console. It prints lines to try, and at
the end whether feed and table agree. Ctrl-C ends it and removes the folder.

With --db the table and the feed are made in that database and stay there; a table kv
that is not the demo's is left alone. ROWFEED_DB and rowfeed.yaml are not looked at.`,
		Example: `  rowfeed demo
  rowfeed demo --listen 127.0.0.1:9000 --rate 200/s
  rowfeed demo --duration 10s`,
		Args: takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), a) },
	}
	cmd.Flags().StringVar(&o.listen, "listen", config.DefaultListen, "`address` to listen on")
	cmd.Flags().Var(&o.duration, "duration", "end by itself after this time (default: never)")
	cmd.Flags().Var(&o.rate, "rate", "writes a second")
	return cmd
}

func (o *demoOptions) run(ctx context.Context, a *app) error {
	if o.duration.set && o.duration.Duration <= 0 {
		return &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: "duration",
			Cause: "demo: --duration must be positive", Next: "give a duration like 10s"}
	}
	cfg, err := a.library(&config.File{})
	if err != nil {
		return err
	}
	log := a.logger(&config.File{}, "warn")
	a.metrics = metrics.New(nil)
	cfg.Observer = a.observer(log)
	if a.url, err = sinks.Resolve("db", a.db.String(), a.getenv); err != nil {
		return err
	}
	err = demo.Run(ctx, demo.Config{
		URL: a.url, DB: cfg, Rate: o.rate.perSecond, Duration: o.duration.Duration, Out: a.stdout, Wrote: o.wrote,
		Serve: func(ctx context.Context, db *rowfeed.DB, ready func(string)) error {
			return runServer(ctx, a, server.Config{DB: db, Listen: o.listen, Publish: true, Log: log, Ready: ready,
				Everyone: a.url == ""}) // all rows are made up
		},
	})
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return nil // interrupted before it had begun
	}
	return err
}
