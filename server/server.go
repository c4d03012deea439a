// Package server is what `rowfeed serve` is: the publishers of all feeds, the HTTP
// protocol, the console and the questions that orchestrators ask, started and stopped
// in order.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/console"
	"github.com/rowfeed/rowfeed/feedhttp"
)

// DefaultListen is the address when Config names none.
const DefaultListen = "127.0.0.1:8080"

// Config says what a server does. Only DB is needed.
type Config struct {
	DB *rowfeed.DB
	// Listen is the address, host:port; port 0 takes a free one. Default DefaultListen.
	Listen string
	// Publish runs the publishers of all feeds, also of those added later.
	Publish bool
	// NoCompression sends pages as they are, also to clients that would take them compressed.
	NoCompression bool
	// Log is told what operators should know. Default: nobody.
	Log *slog.Logger
	// Ready is called with the address once the server answers. Default: nobody.
	Ready func(address string)
	// ShutdownTimeout is how long requests may take to finish after the end of the
	// context, before they are cut off. Default 10 s.
	ShutdownTimeout time.Duration
	// DiscoverEvery is how often feeds are looked for that were added or dropped, and
	// the first pause before a publisher that failed is started again. Default 1 s.
	DiscoverEvery time.Duration
	// VerifyEvery is for how long /readyz believes what it found of a feed's triggers
	// before it looks again. Default 10 s.
	VerifyEvery time.Duration
}

func (c Config) withDefaults() Config {
	if c.Listen == "" {
		c.Listen = DefaultListen
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Ready == nil {
		c.Ready = func(string) {}
	}
	if c.ShutdownTimeout == 0 {
		c.ShutdownTimeout = 10 * time.Second
	}
	if c.DiscoverEvery == 0 {
		c.DiscoverEvery = time.Second
	}
	if c.VerifyEvery == 0 {
		c.VerifyEvery = 10 * time.Second
	}
	return c
}

const (
	readHeaderTimeout = 10 * time.Second
	// readTimeout ends bodies, which no request needs.
	readTimeout = 30 * time.Second
	idleTimeout = 2 * time.Minute
	// writeTimeout is for making an answer and sending it; package feedhttp moves it on
	// while a client takes a large page, however slowly.
	writeTimeout   = 2 * time.Minute
	maxHeaderBytes = 32 << 10
)

// Run serves until ctx ends, then stops in order and answers nil: no new connections,
// the requests in hand finish (bounded by ShutdownTimeout), the publishers stop. It
// answers an error when it cannot listen, or listening ends by itself.
func Run(ctx context.Context, cfg Config) error {
	if cfg.DB == nil {
		return errors.New("server: Config.DB is nil")
	}
	cfg = cfg.withDefaults()
	listener, err := listen(ctx, cfg.Listen)
	if err != nil {
		return err
	}
	address := listener.Addr().String()
	if !isLoopback(listener.Addr()) {
		cfg.Log.WarnContext(ctx, "NO AUTHENTICATION: everyone who can reach this address can read every feed; "+
			"listen on 127.0.0.1, or put a proxy in front that asks who is there", "address", address)
	}

	// Neither requests nor publishers end with ctx: they are ended below, in order.
	life := context.WithoutCancel(ctx)
	requests, cutOff := context.WithCancel(life)
	defer cutOff()
	publishing, stopPublishing := context.WithCancel(life)
	defer stopPublishing()

	publishers := newPublishers(cfg)
	published := make(chan struct{})
	go func() {
		defer close(published)
		_ = publishers.run(publishing) // none gives up
	}()

	feeds := feedhttp.NewHandler(feedhttp.Of(cfg.DB), &feedhttp.Config{Log: cfg.Log, NoPublish: !cfg.Publish, NoCompression: cfg.NoCompression})
	srv := &http.Server{
		Handler:           newMux(cfg, publishers, feeds),
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ErrorLog:          slog.NewLogLogger(cfg.Log.Handler(), slog.LevelWarn),
	}
	srv.RegisterOnShutdown(feeds.Close) // nobody waits for what waits for an entry
	served := make(chan error, 1)
	go func() { served <- srv.Serve(listener) }()
	cfg.Log.InfoContext(ctx, "serving", "address", address, "publishing", cfg.Publish)
	cfg.Ready(address)

	select {
	case err = <-served: // not by us: nobody has asked it to end
		err = fmt.Errorf("serve on %s: %w", address, err)
		_ = srv.Close()
	case <-ctx.Done():
		cfg.Log.InfoContext(life, "stopping: finishing requests", "at_most", cfg.ShutdownTimeout.String())
		bounded, cancel := context.WithTimeout(life, cfg.ShutdownTimeout)
		if srv.Shutdown(bounded) != nil {
			cfg.Log.WarnContext(life, "some requests did not finish in time and are cut off")
			cutOff()
			_ = srv.Close()
		}
		cancel()
		<-served
	}
	stopPublishing()
	<-published
	cfg.Log.InfoContext(life, "stopped")
	return err
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: "listen", Cause: fmt.Sprintf("listen: %q is no address", address),
			Next: "write it as host:port, like " + DefaultListen, Err: err}
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err == nil {
		return listener, nil
	}
	e := &rowfeed.Error{Code: rowfeed.Failed, Object: "address " + address, Cause: "cannot listen on it", Err: err,
		Next: "take another with --listen, like " + net.JoinHostPort(host, "0") + " for a free port"}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		e.Cause = "another process listens on it"
		e.Next = "end that process, or " + e.Next
	case errors.Is(err, syscall.EACCES):
		e.Cause = "this user may not listen on it"
	}
	return nil, e
}

// isLoopback tells whether only this machine can reach the address.
func isLoopback(a net.Addr) bool {
	at, err := netip.ParseAddrPort(a.String())
	return err == nil && at.Addr().Unmap().IsLoopback()
}

// newMux puts the parts of the server at their paths.
func newMux(cfg Config, p *publishers, feeds http.Handler) http.Handler {
	health := &health{db: cfg.DB, publishers: p, verifyEvery: cfg.VerifyEvery, asking: make(chan struct{}, 1), verified: make(map[string]verification)}
	mux := http.NewServeMux()
	mux.Handle("/_feeds", feeds)
	mux.Handle("/_feeds/", feeds)
	mux.HandleFunc("/healthz", onlyGet(health.alive))
	mux.HandleFunc("/readyz", onlyGet(health.ready))
	mux.Handle("/", console.NewHandler(feedhttp.Of(cfg.DB), &console.Config{Problems: health.known, Log: cfg.Log}))
	return mux
}
