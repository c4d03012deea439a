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

// networkOptions are a server's towards its clients: names, TLS and limits. Where the command
// line gives none, rowfeed.yaml's hold.
type networkOptions struct {
	hosts             []string
	cert, key, client cli.OptionalText
	limits            server.Limits
}

func (o *networkOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&o.hosts, "allow-host", nil,
		"another `name` under which requests may ask for this server, as a proxy hands it on; may be repeated")
	f.Var(&o.cert, "tls-cert", "serve over TLS with the certificate, and its chain, in this PEM `file`")
	f.Var(&o.key, "tls-key", "its private key: a PEM `file`")
	f.Var(&o.client, "tls-client-ca",
		"let only clients through that have a certificate of an authority in this PEM `file`")
	f.Float64Var(&o.limits.Rate, "rate", 0,
		"at most so many `requests` a second of one client: a token, else an address (default 1000; -1: unbounded)")
	f.IntVar(&o.limits.Burst, "burst", 0,
		"at most so many `requests` of one client at once (default 20 times the rate)")
	f.IntVar(&o.limits.Connections, "max-connections", 0,
		"at most so many `connections` (default 32768; -1: unbounded)")
	f.IntVar(&o.limits.ConnectionsPerAddress, "max-connections-per-address", 0,
		"at most so many `connections` of one address (default: half of --max-connections)")
	f.IntVar(&o.limits.Waiting, "max-waiting", 0,
		"at most so many `requests` that wait for an entry, or stream (default 32768; -1: unbounded)")
	f.IntVar(&o.limits.WaitingPerClient, "max-waiting-per-client", 0,
		"at most so many `requests` of one client that wait (default: half of --max-waiting)")
}

// put puts what is given into a server's settings.
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

// hangups has a server read its TLS files again at each SIGHUP, until ctx ends. Without such files nothing is
// done then; it would end the process if nobody took it.
func hangups(ctx context.Context, cfg *server.Config) {
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
