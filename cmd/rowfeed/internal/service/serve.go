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
		Long: `Publishes all feeds, also those added meanwhile, and serves them over HTTP, with a
console for people at /, until it is interrupted; then it finishes the requests that it
has. Several servers on one database are safe; of their publishers one works at a time
(see "rowfeed publish --help").

The address comes from --listen, else from the key listen in rowfeed.yaml, else it is
127.0.0.1:8080. With --no-publish somebody else publishes ("rowfeed publish", or
another server). With --replica the database is a replica (a standby of PostgreSQL, a
read-only replica of MariaDB or MySQL): nothing is published, and a cursor that is ahead
of it is answered by an empty page until the replica has caught up.

With --auth tokens whoever asks must send a token that "rowfeed token add" has made, and
sees what it allows; /healthz stays open, and /readyz tells strangers no reasons. It is
the default on an address that others than this machine can reach; --auth none says that
everyone there may read every feed. On 127.0.0.1 it refuses requests for hosts of other
names (--allow-host), as a page of a stranger in a browser here might send them.

With --tls-cert and --tls-key it serves over TLS (1.2 and above, with HTTP/2). The files
are read again when they change, and at SIGHUP; what cannot be used is logged, and what
was there before still holds. With --tls-client-ca only clients with a certificate of
these authorities get through.

Clients are bounded: requests a second, connections, requests that wait. Whoever asks
too often is answered 429 with Retry-After. What comes from this machine without a token
may be a proxy that hands on what others ask, and has no bound of its own.

Relays under the key relays of rowfeed.yaml are run, too: see "rowfeed relay --help".`,
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
		"who may ask: `tokens` or none (default none where only this machine can, else tokens)")
	o.network.flags(cmd)
	cmd.Flags().BoolVar(&o.noCompression, "no-compression", false,
		"send pages as they are, also to clients that take zstd or gzip")
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
		return err // said now rather than to every request
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
	hangups(relaying, &cfg)
	// Not before it listens: a relay that is started may divide its consumer's cursors.
	cfg.Ready = func(string) {
		wait = StartRelays(relaying, a, s, relays, relayAgain)
		notify(ctx, s.Log)
	}
	return runServer(ctx, a, cfg)
}

// runServer runs the server until ctx ends; its Ready may be nil.
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

// authenticate decides who may ask a server.
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
			Cause: "whoever asks there must have a token, and there is none that holds: nobody could read anything",
			Next: "make one with `rowfeed token add NAME --feed '*' --right read`, or listen on 127.0.0.1; " +
				"--auth none lets everyone read every feed who can reach the address"}
	}
	tokens := access.NewTokens(s.DB)
	cfg.Access, cfg.Login = access.Identify(tokens), tokens.Of
	return nil
}
