package service

import (
	"context"

	"github.com/rowfeed/rowfeed/cmd/internal/config"
	"github.com/rowfeed/rowfeed/cmd/metrics"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/cmd/server"
	"github.com/spf13/cobra"
)

// metricsFlag lets a command that serves no feeds tell its metrics.
type metricsFlag struct{ at cli.OptionalText }

func (m *metricsFlag) add(cmd *cobra.Command) {
	cmd.Flags().Var(&m.at, "metrics", "tell metrics at this `address`, host:port, under /metrics; "+
		"without a host, as in :9464, this machine alone reaches it (default: nowhere)")
}

// count has what the library tells counted from here on; before connect.
func count(a *cli.App) { a.Metrics = metrics.New(nil) }

// tell answers scrapes, where the command line or rowfeed.yaml says at which address.
func (m *metricsFlag) tell(ctx context.Context, a *cli.App, s *cli.Session) (stop func(), err error) {
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
