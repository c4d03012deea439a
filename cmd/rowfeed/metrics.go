package main

import (
	"context"

	"github.com/rowfeed/rowfeed/cmd/internal/config"
	"github.com/rowfeed/rowfeed/cmd/metrics"
	"github.com/rowfeed/rowfeed/cmd/server"
	"github.com/spf13/cobra"
)

// countFlag lets a command that serves no feeds tell its metrics.
func (a *app) countFlag(cmd *cobra.Command) {
	cmd.Flags().Var(&a.metricsAt, "metrics", "tell metrics at this `address`, host:port, under /metrics; "+
		"without a host, as in :9464, this machine alone reaches it (default: nowhere)")
}

// count has what the library tells counted from here on; before connect.
func (a *app) count() { a.metrics = metrics.New(nil) }

// tellMetrics answers scrapes, where the command line or rowfeed.yaml says at which address.
func (a *app) tellMetrics(ctx context.Context, s *session) (stop func(), err error) {
	at := config.First("", a.metricsAt.value, s.file.Metrics)
	if at == "" {
		return func() {}, nil
	}
	address, stop, err := server.StartMetrics(ctx,
		server.Scraping{Metrics: a.metrics, Listen: at, DB: s.DB, Log: s.log})
	if err == nil && a.serving != nil {
		a.serving(address)
	}
	return stop, err
}
