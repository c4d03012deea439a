// Package server implements `rowfeed serve`: the publishers of all feeds, the HTTP protocol, the console, and the
// endpoints for orchestrators. It starts and stops them in order.
package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"golang.org/x/time/rate"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/access"
	"github.com/rowfeed/rowfeed/cmd/console"
	"github.com/rowfeed/rowfeed/cmd/metrics"
	"github.com/rowfeed/rowfeed/feedhttp"
)

// DefaultListen is the default of Config.Listen.
const DefaultListen = "127.0.0.1:8080"

// Config holds the settings of a server. Only DB is required.
type Config struct {
	DB *rowfeed.DB
	// Listen is the address, host:port. Port 0 selects a free port. Default: DefaultListen.
	Listen string
	// Access is the authentication in front of everything: it stores the identity of the client in the request
	// ([access.With]) or refuses the request, as [access.Identify] does. Default: no authentication, and all requests
	// have the identity [access.Everyone].
	Access func(http.Handler) http.Handler
	// Login returns the identity for a token that was entered in the console, with Access: [access.Tokens.Of]. Nil:
	// the console has no login.
	Login func(ctx context.Context, token string) (access.Identity, error)
	// Everyone allows every client of an address that other machines can reach, without Access. Without Everyone and
	// Access, a server refuses to start there.
	Everyone bool
	// Hosts are the names of the server, in addition to its address. A server that listens on a loopback address
	// refuses requests for other hosts. With Hosts, every server does.
	Hosts []string
	// TLS has the certificates of the server. Default: no TLS.
	TLS *TLS
	// Limits limit what clients may use. The zero value has a default for every limit.
	Limits Limits
	// Publish runs the publishers of all feeds, including those added later.
	Publish bool
	// NoCompression turns off the compression of pages.
	NoCompression bool
	// Log gets messages for operators. Default: none.
	Log *slog.Logger
	// Metrics are served at /metrics to clients that may read every feed. They count the requests of this server, and
	// show the state of DB. To count the events of DB, the caller sets the Observer of DB. Default: none.
	Metrics *metrics.Metrics
	// Tracer creates spans of requests to feeds. Default: none.
	Tracer rowfeed.Tracer
	// Ready, if set, is called with the address once the server answers.
	Ready func(address string)
	// ShutdownTimeout is how long requests may take to finish after the end of the context, before they are aborted.
	// Default 10 s.
	ShutdownTimeout time.Duration
	// DiscoverEvery is the interval at which the server looks for added and dropped feeds. It is also the first pause
	// before a failed publisher is started again. Default 1 s.
	DiscoverEvery time.Duration
	// VerifyEvery is how long /readyz uses the last verification of a feed's triggers before it verifies them again.
	// Default 10 s.
	VerifyEvery time.Duration

	readyTimeout time.Duration // 0 means the constant readyTimeout
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
	c.readyTimeout = cmp.Or(c.readyTimeout, readyTimeout)
	c.Limits = c.Limits.withDefaults()
	return c
}

const (
	idleTimeout = 2 * time.Minute
	// writeTimeout is the maximum time to make and send an answer. Package feedhttp extends it while a client reads a
	// large page, however slowly.
	writeTimeout = 2 * time.Minute
	// http2Patience is how long an HTTP/2 client may read nothing while data waits for it.
	http2Patience = 30 * time.Second
)

// Run serves until ctx ends. It then stops in order and returns nil: it accepts no new connections, lets requests
// finish (for at most ShutdownTimeout), and stops the publishers. It returns an error if it cannot listen, if other
// machines could read the feeds without authentication (see Everyone), or if listening fails.
func Run(ctx context.Context, cfg Config) error {
	if cfg.DB == nil {
		return errors.New("server: Config.DB is nil")
	}
	if err := cfg.Limits.check(); err != nil {
		return err
	}
	cfg = cfg.withDefaults()
	var files *certificates
	if cfg.TLS != nil {
		var err error
		if files, err = readCertificates(*cfg.TLS, cfg.Log); err != nil {
			return err
		}
	}
	listener, err := listen(ctx, "listen", cfg.Listen)
	if err != nil {
		return err
	}
	address := listener.Addr().String()
	if err := cfg.exposed(listener.Addr()); err != nil {
		_ = listener.Close()
		return err
	}
	if !isLoopback(listener.Addr()) && cfg.Access == nil {
		cfg.Log.WarnContext(ctx, "NO AUTHENTICATION: every client that can reach this address can read every feed; "+
			"listen on 127.0.0.1, or put a proxy in front that authenticates clients", "address", address)
	}

	// Requests and publishers do not end with ctx: they are ended below, in order.
	life := context.WithoutCancel(ctx)
	requests, cutOff := context.WithCancel(life)
	defer cutOff()
	publishing, stopPublishing := context.WithCancel(life)
	defer stopPublishing()

	if cfg.Metrics != nil {
		cfg.Metrics.Watch(requests, cfg.DB)
	}
	publishers := newPublishers(cfg)
	var background sync.WaitGroup
	background.Go(func() { _ = publishers.run(publishing) }) // publishers do not give up here

	limiter := newLimiter(cfg.Limits)
	feeds := feedhttp.NewHandler(access.Over(feedhttp.Of(cfg.DB)), &feedhttp.Config{Log: cfg.Log,
		NoPublish: !cfg.Publish, NoCompression: cfg.NoCompression, Wait: limiter.wait, Client: client,
		Tracer: cfg.Tracer})
	if cfg.Metrics != nil {
		cfg.Metrics.WatchPages(feeds.PageMemory)
	}
	mux, pages := newMux(cfg, publishers, feeds)
	background.Go(func() { pages.Run(publishing) })
	srv := cfg.newHTTPServer(requests, cfg.inFront(listener.Addr(), limiter, mux))
	srv.RegisterOnShutdown(feeds.Close) // shutdown does not wait for requests that wait for an entry
	connections := newCountedListener(listener, cfg.Limits, cfg.tellRefused(life))
	served := make(chan error, 1)
	go func() {
		if files == nil {
			served <- srv.Serve(connections)
			return
		}
		srv.TLSConfig = &tls.Config{GetConfigForClient: files.current}
		go files.follow(requests)
		served <- srv.ServeTLS(connections, "", "")
	}()
	cfg.Log.InfoContext(ctx, "serving", "address", address, "publishing", cfg.Publish, "tls", files != nil)
	cfg.Ready(address)

	select {
	case err = <-served: // listening has failed by itself
		err = fmt.Errorf("serve on %s: %w", address, err)
		_ = srv.Close()
	case <-ctx.Done():
		cfg.finish(life, srv, cutOff)
		<-served
	}
	stopPublishing()
	background.Wait()
	cfg.Log.InfoContext(life, "stopped")
	return err
}

// newHTTPServer sets the limits of connections. Requests end with the context at the latest.
func (c Config) newHTTPServer(requests context.Context, handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: c.Limits.HeaderTimeout,
		ReadTimeout:       c.Limits.BodyTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    c.Limits.HeaderBytes,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ErrorLog:          slog.NewLogLogger(c.Log.Handler(), slog.LevelWarn),
		HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerConnection: 64 << 10, // no request has a larger body
			SendPingTimeout:               idleTimeout,
			WriteByteTimeout:              http2Patience,
		},
	}
}

// tellRefused returns a function that logs, at most once a minute, why connections are refused.
func (c Config) tellRefused(ctx context.Context) func(cause string) {
	refusals := rate.Sometimes{First: 1, Interval: time.Minute}
	return func(cause string) {
		refusals.Do(func() {
			c.Log.WarnContext(ctx,
				"a connection was closed at once: there are "+cause+"; this is logged once a minute")
		})
	}
}

// finish lets running requests finish, and aborts those that take too long.
func (c Config) finish(life context.Context, srv *http.Server, cutOff context.CancelFunc) {
	c.Log.InfoContext(life, "stopping: finishing requests", "at_most", c.ShutdownTimeout)
	bounded, cancel := context.WithTimeout(life, c.ShutdownTimeout)
	defer cancel()
	if srv.Shutdown(bounded) != nil {
		c.Log.WarnContext(life, "some requests did not finish in time and are cut off")
		cutOff()
		_ = srv.Close()
	}
}

// listen listens on an address. param is the name of its parameter, for errors.
func listen(ctx context.Context, param, address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: param,
			Cause: fmt.Sprintf("%s: %q is not an address", param, address),
			Next:  "write it as host:port, like " + DefaultListen, Err: err}
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err == nil {
		return listener, nil
	}
	e := &rowfeed.Error{Code: rowfeed.Failed, Object: "address " + address, Cause: "cannot listen on it", Err: err,
		Next: "choose another with --" + param + ", like " + net.JoinHostPort(host, "0") + " for a free port"}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		e.Cause = "another process listens on it"
		e.Next = "end that process, or " + e.Next
	case errors.Is(err, syscall.EACCES):
		e.Cause = "this user may not listen on it"
	}
	return nil, e
}

// inFront returns next behind the host check, the limits and the authentication.
func (c Config) inFront(at net.Addr, l *limiter, next http.Handler) http.Handler {
	asks := c.Access
	if asks == nil {
		asks = everyone
	}
	all := l.second(next)
	identified := asks(all)
	front := c.onlyHosts(at, l.first(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" { // it needs neither an identity nor the database
			all.ServeHTTP(w, r)
			return
		}
		identified.ServeHTTP(w, r)
	})))
	if c.Metrics != nil { // count refused requests, too
		front = c.Metrics.Requests(routeOf, front)
	}
	return front
}

// newMux returns the parts of the server at their paths, and the console among them.
func newMux(cfg Config, p *publishers, feeds http.Handler) (*http.ServeMux, *console.Handler) {
	health := &health{db: cfg.DB, publishers: p, verifyEvery: cfg.VerifyEvery, timeout: cfg.readyTimeout,
		asking: make(chan struct{}, 1), verified: make(map[string]verification)}
	mux := http.NewServeMux()
	mux.Handle("/_feeds", access.Required(feeds))
	mux.Handle("/_feeds/", access.Required(feeds))
	mux.Handle("/_feeds/openapi.json", feeds) // the same on every server, for generators of clients
	mux.HandleFunc("/healthz", onlyGet(health.alive))
	mux.HandleFunc("/readyz", onlyGet(health.ready))
	pages := console.NewHandler(access.Over(feedhttp.Of(cfg.DB)), console.Of(cfg.DB),
		&console.Config{Problems: health.known, Login: cfg.Login, Log: cfg.Log})
	mux.Handle("/", pages)
	if cfg.Metrics != nil {
		mux.HandleFunc("/metrics", onlyGet(scrape(cfg.Metrics.Handler())))
	}
	return mux, pages
}
