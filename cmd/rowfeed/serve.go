package main

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/config"
	"github.com/rowfeed/rowfeed/server"
)

type serveOptions struct {
	listen        optionalText
	noCompression bool
}

func newServe(a *app) *cobra.Command {
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

Relays under the key relays of rowfeed.yaml are run, too: see "rowfeed relay --help".`,
		Example: `  rowfeed serve
  rowfeed serve --listen :9000 --db postgres://me:secret@localhost/shop
  rowfeed serve --replica --db postgres://me:secret@standby/shop
  curl '127.0.0.1:8080/_feeds/fetch/kv?after=&limit=5'`,
		Args: takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), a) },
	}
	cmd.Flags().Var(&o.listen, "listen", "`address` to listen on (default "+config.DefaultListen+")")
	cmd.Flags().BoolVar(&o.noCompression, "no-compression", false, "send pages as they are, also to clients that take gzip")
	a.leaseFlag(cmd)
	return cmd
}

func (o *serveOptions) run(ctx context.Context, a *app) error {
	s, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer s.done()
	if _, err := s.Feeds(ctx); err != nil {
		return err // said now rather than to every request
	}
	listen := config.First(config.DefaultListen, o.listen.value, s.file.Listen)
	relays, err := a.relays(s)
	if err != nil {
		return err
	}
	relaying, stop := context.WithCancel(ctx)
	wait := func() {}
	defer func() { stop(); wait() }()
	// Not before it listens: a relay that is started may divide its consumer's cursors.
	a.noCompression = o.noCompression
	return a.serve(ctx, s.DB, s.log, listen, !a.noPublish && !a.replica, func(string) { wait = a.startRelays(relaying, s, relays, relayAgain) })
}

// serve runs the server until ctx ends; ready may be nil.
func (a *app) serve(ctx context.Context, db *rowfeed.DB, log *slog.Logger, listen string, publish bool, ready func(string)) error {
	return server.Run(ctx, server.Config{DB: db, Listen: listen, Publish: publish, NoCompression: a.noCompression, Log: log, Ready: func(address string) {
		if ready != nil {
			ready(address)
		}
		if a.serving != nil {
			a.serving(address)
		}
	}})
}
