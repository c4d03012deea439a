package service

import (
	"cmp"
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/rowfeed/rowfeed/cmd/internal/config"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/cmd/server"
	"github.com/spf13/cobra"
)

// networkOptions are the options of a server that concern its clients: host names, TLS and limits. An option that the
// command line does not give is taken from rowfeed.yaml.
type networkOptions struct {
	hosts             []string
	cert, key, client cli.OptionalText
	limits            server.Limits
}

func (o *networkOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&o.hosts, "allow-host", nil,
		"accept requests for this host `name` as well, such as the one that a proxy passes on; may be repeated")
	f.Var(&o.cert, "tls-cert", "serve over TLS with the certificate and its chain in this PEM `file`")
	f.Var(&o.key, "tls-key", "PEM `file` with the private key of --tls-cert")
	f.Var(&o.client, "tls-client-ca",
		"accept only clients with a certificate of an authority in this PEM `file`")
	f.Float64Var(&o.limits.Rate, "rate", 0,
		"maximum `requests` per second of one client: a token, else an address (default 1000; -1: no limit)")
	f.IntVar(&o.limits.Burst, "burst", 0,
		"maximum `requests` of one client in a burst (default 20 times the rate)")
	f.IntVar(&o.limits.Connections, "max-connections", 0,
		"maximum number of `connections` (default 32768; -1: no limit)")
	f.IntVar(&o.limits.ConnectionsPerAddress, "max-connections-per-address", 0,
		"maximum number of `connections` of one address (default: half of --max-connections)")
	f.IntVar(&o.limits.Waiting, "max-waiting", 0,
		"maximum number of `requests` that wait for an entry or stream (default 32768; -1: no limit)")
	f.IntVar(&o.limits.WaitingPerClient, "max-waiting-per-client", 0,
		"maximum number of waiting `requests` of one client (default: half of --max-waiting)")
}

// put copies the options into cfg.
func (o *networkOptions) put(cfg *server.Config, file *config.File) {
	cfg.Hosts = o.hosts
	if len(cfg.Hosts) == 0 {
		cfg.Hosts = file.AllowHosts
	}
	cert, key, client := config.First("", o.cert.Value, file.TLSCert), config.First("",
		o.key.Value, file.TLSKey), config.First("", o.client.Value, file.TLSClientCA)
	if cert != "" || key != "" || client != "" {
		cfg.TLS = &server.TLS{Cert: cert, Key: key, ClientCA: client}
	}
	cfg.Limits = server.Limits{
		Rate:                  cmp.Or(o.limits.Rate, file.Rate),
		Burst:                 cmp.Or(o.limits.Burst, file.Burst),
		Connections:           cmp.Or(o.limits.Connections, file.MaxConnections),
		ConnectionsPerAddress: cmp.Or(o.limits.ConnectionsPerAddress, file.MaxConnectionsPerAddress),
		Waiting:               cmp.Or(o.limits.Waiting, file.MaxWaiting),
		WaitingPerClient:      cmp.Or(o.limits.WaitingPerClient, file.MaxWaitingPerClient),
	}
}

// reloadOnHangup makes a server read its TLS files again at each SIGHUP, until ctx ends. A server without such files
// catches the signal as well, because SIGHUP would otherwise end the process.
func reloadOnHangup(ctx context.Context, cfg *server.Config) {
	signals, again := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGHUP)
	tls, log := cfg.TLS != nil, cfg.Log
	if tls {
		cfg.TLS.Reload = again
	}
	go func() {
		defer signal.Stop(signals)
		for {
			select {
			case <-ctx.Done():
				return
			case <-signals:
			}
			if !tls {
				log.Info("SIGHUP: there are no files to read again")
				continue
			}
			select {
			case <-ctx.Done():
				return
			case again <- struct{}{}:
			}
		}
	}()
}
