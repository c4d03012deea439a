package service

import (
	"context"
	"fmt"
	"slices"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/cmd/access"
	"github.com/rowfeed/rowfeed/cmd/internal/config"
	"github.com/rowfeed/rowfeed/cmd/metrics"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/cmd/server"
	"github.com/spf13/cobra"
)

type serveOptions struct {
	listen, auth  cli.OptionalText
	network       networkOptions
	noCompression bool
}

func newServe(a *cli.App) *cobra.Command {
	o := &serveOptions{}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Publish all feeds, and serve them over HTTP",
		Long: `Publishes all feeds, including those that are added later, and serves them over HTTP,
with a web console at /. The server runs until it is interrupted, and then finishes the
requests in progress. Several servers on one database are safe: for each feed, only one
of their publishers works at a time (see "rowfeed publish --help").

The address is that of --listen, else that of the key listen in rowfeed.yaml, else
127.0.0.1:8080. With --no-publish the server does not publish: "rowfeed publish" or
another server has to. With --replica the database is a replica (a PostgreSQL standby,
or a read-only replica of MariaDB or MySQL). The server then publishes nothing. If a
cursor is ahead of the replica, the server answers with an empty page until the replica
has caught up.

With --auth tokens every request needs a token made by "rowfeed token add", and may do
what that token allows. /healthz needs no token. /readyz needs none either, but gives
its reasons only to requests with a token. This is the default if other machines can
reach the address. With --auth none, every client that can reach the address may read
every feed. On 127.0.0.1 the server refuses requests for hosts of other names, because
a web page of another site could send such requests through a browser on this machine.
--allow-host allows a name.

With --tls-cert and --tls-key the server uses TLS (1.2 or later, with HTTP/2). It reads
the files again when they change, and at SIGHUP. If it cannot use the new files, it logs
the reason and keeps the certificate that it has. With --tls-client-ca a client needs a
certificate of one of these authorities.

Each client has limits: requests per second, and requests that wait for entries. A
client is a token or, without one, an address. A request above a limit gets 429. Each
address has a limit of connections, and the server closes further ones. Connections
from this machine, and its requests without a token, have no such limits, because a
proxy may pass them on for many clients.

The server also runs the relays listed under the key relays of rowfeed.yaml: see
"rowfeed relay --help".`,
		Example: `  rowfeed serve
  rowfeed serve --listen 127.0.0.1:9000 --db file:/run/secrets/database
  rowfeed serve --tls-cert cert.pem --tls-key key.pem --tls-client-ca clients.pem
  rowfeed serve --replica --db postgres://me@standby/shop
  curl '127.0.0.1:8080/_feeds/fetch/kv?after=&limit=5'`,
		Args: cli.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), a) },
	}
	cmd.Flags().Var(&o.listen, "listen", "`address` to listen on (default "+config.DefaultListen+")")
	cmd.Flags().Var(&o.auth, "auth",
		"require `tokens`, or none (default none if only this machine can reach the address)")
	o.network.flags(cmd)
	cmd.Flags().BoolVar(&o.noCompression, "no-compression", false,
		"never compress pages, even for clients that accept zstd or gzip")
	leaseFlag(a, cmd)
	return cmd
}

func (o *serveOptions) run(ctx context.Context, a *cli.App) error {
	a.Metrics = metrics.New(nil)
	s, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := s.Feeds(ctx); err != nil {
		return err // reported once at the start, not for every request
	}
	cfg := server.Config{DB: s.DB, Listen: config.First(config.DefaultListen, o.listen.Value, s.File.Listen),
		Log:     s.Log,
		Publish: !a.NoPublish && !a.Replica, NoCompression: o.noCompression}
	if err := authenticate(ctx, s, config.First("", o.auth.Value, s.File.Auth), &cfg); err != nil {
		return err
	}
	o.network.put(&cfg, s.File)
	relays, err := Relays(a, s)
	if err != nil {
		return err
	}
	relaying, stop := context.WithCancel(ctx)
	wait := func() {}
	defer func() { stop(); wait() }()
	reloadOnHangup(relaying, &cfg)
	// Relays start only once the server listens: a relay that starts may change the shard count of its consumer.
	cfg.Ready = func(string) {
		wait = StartRelays(relaying, a, s, relays, relayRestartPause)
		notify(ctx, s.Log)
	}
	return runServer(ctx, a, cfg)
}

// runServer runs the server until ctx ends. cfg.Ready may be nil.
func runServer(ctx context.Context, a *cli.App, cfg server.Config) error {
	ready := cfg.Ready
	cfg.Metrics, cfg.Tracer = a.Metrics, a.Tracer
	cfg.Ready = func(address string) {
		if ready != nil {
			ready(address)
		}
		if a.OnListen != nil {
			a.OnListen(address)
		}
	}
	return server.Run(ctx, cfg)
}

// authenticate sets whether requests to a server need tokens.
func authenticate(ctx context.Context, s *cli.Session, auth string, cfg *server.Config) error {
	if auth == "" {
		if auth = "tokens"; server.IsLoopback(cfg.Listen) {
			return nil
		}
	}
	switch auth {
	case "none":
		cfg.Everyone = true
		return nil
	case "tokens":
	default:
		return &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: "auth",
			Cause: fmt.Sprintf("auth: %q is neither tokens nor none", auth)}
	}
	all, err := s.Admin().Tokens(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(t *admin.Token) bool { return t.State == admin.TokenHolds }) {
		return &rowfeed.Error{Code: rowfeed.Refused, Object: "address " + cfg.Listen,
			Cause: "requests to this address need a token, but no valid token exists: every request would be refused",
			Next: "make a token with `rowfeed token add NAME --feed '*' --right read`, or listen on 127.0.0.1; " +
				"with --auth none every client that can reach the address may read every feed"}
	}
	tokens := access.NewTokens(s.DB)
	cfg.Access, cfg.Login = access.Identify(tokens, "/readyz", "/_feeds/openapi.json"), tokens.Of
	return nil
}
