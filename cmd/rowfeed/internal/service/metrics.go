package service

import (
	"context"

	"github.com/rowfeed/rowfeed/cmd/internal/config"
	"github.com/rowfeed/rowfeed/cmd/metrics"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/cmd/server"
	"github.com/spf13/cobra"
)

// metricsFlag is the flag --metrics of a command that serves no feeds over HTTP.
type metricsFlag struct{ at cli.OptionalText }

func (m *metricsFlag) add(cmd *cobra.Command) {
	cmd.Flags().Var(&m.at, "metrics", "serve metrics at this `address`, host:port, under /metrics; "+
		"without a host, as in :9464, only this machine can reach it (default: no metrics)")
}

// count lets a collect metrics. Call it before a.Connect.
func count(a *cli.App) { a.Metrics = metrics.New(nil) }

// serve starts a server of metrics if the command line or rowfeed.yaml has an address for it.
func (m *metricsFlag) serve(ctx context.Context, a *cli.App, s *cli.Session) (stop func(), err error) {
	at := config.First("", m.at.Value, s.File.Metrics)
	if at == "" {
		return func() {}, nil
	}
	address, stop, err := server.StartMetrics(ctx,
		server.Scraping{Metrics: a.Metrics, Listen: at, DB: s.DB, Log: s.Log})
	if err == nil && a.OnListen != nil {
		a.OnListen(address)
	}
	return stop, err
}
