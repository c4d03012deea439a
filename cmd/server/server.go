// Package server is what `rowfeed serve` is: the publishers of all feeds, the HTTP
// protocol, the console and the questions that orchestrators ask, started and stopped
// in order.
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
	"syscall"
	"time"

	"golang.org/x/time/rate"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/access"
	"github.com/rowfeed/rowfeed/cmd/console"
	"github.com/rowfeed/rowfeed/cmd/metrics"
	"github.com/rowfeed/rowfeed/feedhttp"
)

// DefaultListen is the address when Config names none.
const DefaultListen = "127.0.0.1:8080"

// Config says what a server does. Only DB is needed.
type Config struct {
	DB *rowfeed.DB
	// Listen is the address, host:port; port 0 takes a free one. Default DefaultListen.
	Listen string
	// Access stands in front of everything: it tells who sends a request ([access.With]), or
	// refuses it, as [access.Identify] does. Default: nobody is asked, and all requests are
	// [access.Everyone]'s.
	Access func(http.Handler) http.Handler
	// Login tells whose token somebody has typed into the console, with Access: [access.Tokens.Of].
	// Nil: nobody logs in there.
	Login func(ctx context.Context, token string) (access.Identity, error)
	// Everyone says that this is meant also where others than this machine can reach the
	// address. Without it, and without Access, a server refuses to run there.
	Everyone bool
	// Hosts are the names under which it is asked for, besides its address. Requests for
	// others are refused where it listens on an address of this machine only; where there
	// are Hosts, everywhere.
	Hosts []string
	// TLS says how it shows who it is. Default: no TLS.
	TLS *TLS
	// Limits bound what clients may take. The zero value is good.
	Limits Limits
	// Publish runs the publishers of all feeds, also of those added later.
	Publish bool
	// NoCompression sends pages as they are, also to clients that would take them compressed.
	NoCompression bool
	// Log is told what operators should know. Default: nobody.
	Log *slog.Logger
	// Metrics are served at /metrics to who may read every feed, and count this server's
	// requests; the state of DB is told with them. That DB's Observer counts, too, is the
	// caller's to see to. Default: none.
	Metrics *metrics.Metrics
	// Tracer makes spans of requests to feeds. Default: none are made.
	Tracer rowfeed.Tracer
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

	readyTimeout time.Duration // 0: readyTimeout
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
	// writeTimeout is for making an answer and sending it; package feedhttp moves it on
	// while a client takes a large page, however slowly.
	writeTimeout = 2 * time.Minute
	// http2Patience is for how long a connection of many streams may take nothing at all.
	http2Patience = 30 * time.Second
)

// Run serves until ctx ends, then stops in order and answers nil: no new connections,
// the requests in hand finish (bounded by ShutdownTimeout), the publishers stop. It
// answers an error when it cannot listen, or may not where everyone could read the feeds
// without being asked who they are, or listening ends by itself.
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
		cfg.Log.WarnContext(ctx, "NO AUTHENTICATION: everyone who can reach this address can read every feed; "+
			"listen on 127.0.0.1, or put a proxy in front that asks who is there", "address", address)
	}

	// Neither requests nor publishers end with ctx: they are ended below, in order.
	life := context.WithoutCancel(ctx)
	requests, cutOff := context.WithCancel(life)
	defer cutOff()
	publishing, stopPublishing := context.WithCancel(life)
	defer stopPublishing()

	if cfg.Metrics != nil {
		cfg.Metrics.Watch(requests, cfg.DB)
	}
	publishers := newPublishers(cfg)
	published := make(chan struct{})
	go func() {
		defer close(published)
		_ = publishers.run(publishing) // none gives up
	}()

	limiter := newLimiter(cfg.Limits)
	feeds := feedhttp.NewHandler(access.Over(feedhttp.Of(cfg.DB)), &feedhttp.Config{Log: cfg.Log,
		NoPublish: !cfg.Publish, NoCompression: cfg.NoCompression, Wait: limiter.wait, Tracer: cfg.Tracer})
	srv := cfg.newHTTPServer(requests, cfg.inFront(listener.Addr(), limiter, newMux(cfg, publishers, feeds)))
	srv.RegisterOnShutdown(feeds.Close) // nobody waits for what waits for an entry
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
	case err = <-served: // not by us: nobody has asked it to end
		err = fmt.Errorf("serve on %s: %w", address, err)
		_ = srv.Close()
	case <-ctx.Done():
		cfg.finish(life, srv, cutOff)
		<-served
	}
	stopPublishing()
	<-published
	cfg.Log.InfoContext(life, "stopped")
	return err
}

// newHTTPServer bounds what a connection may take; requests end with the context at the latest.
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
			MaxReceiveBufferPerConnection: 64 << 10, // no request has more of a body
			SendPingTimeout:               idleTimeout,
			WriteByteTimeout:              http2Patience,
		},
	}
}

// tellRefused says, now and then, why connections are closed at once.
func (c Config) tellRefused(ctx context.Context) func(cause string) {
	refusals := rate.Sometimes{First: 1, Interval: time.Minute}
	return func(cause string) {
		refusals.Do(func() {
			c.Log.WarnContext(ctx,
				"a connection was closed at once: there are "+cause+"; more such are told of once a minute")
		})
	}
}

// finish lets the requests in hand finish, and cuts off those that do not in time.
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

// listen listens on an address that a parameter of this name gives.
func listen(ctx context.Context, param, address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: param,
			Cause: fmt.Sprintf("%s: %q is no address", param, address),
			Next:  "write it as host:port, like " + DefaultListen, Err: err}
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err == nil {
		return listener, nil
	}
	e := &rowfeed.Error{Code: rowfeed.Failed, Object: "address " + address, Cause: "cannot listen on it", Err: err,
		Next: "take another with --" + param + ", like " + net.JoinHostPort(host, "0") + " for a free port"}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		e.Cause = "another process listens on it"
		e.Next = "end that process, or " + e.Next
	case errors.Is(err, syscall.EACCES):
		e.Cause = "this user may not listen on it"
	}
	return nil, e
}

// inFront is what a request passes before it comes to next.
func (c Config) inFront(at net.Addr, l *limiter, next http.Handler) http.Handler {
	asks := c.Access
	if asks == nil {
		asks = everyone
	}
	front := c.onlyHosts(at, l.first(asks(l.second(next))))
	if c.Metrics != nil { // also what is refused on the way
		front = c.Metrics.Requests(routeOf, front)
	}
	return front
}

// newMux puts the parts of the server at their paths.
func newMux(cfg Config, p *publishers, feeds http.Handler) http.Handler {
	health := &health{db: cfg.DB, publishers: p, verifyEvery: cfg.VerifyEvery, timeout: cfg.readyTimeout,
		asking: make(chan struct{}, 1), verified: make(map[string]verification)}
	mux := http.NewServeMux()
	feeds = access.Required(feeds)
	mux.Handle("/_feeds", feeds)
	mux.Handle("/_feeds/", feeds)
	mux.HandleFunc("/healthz", onlyGet(health.alive))
	mux.HandleFunc("/readyz", onlyGet(health.ready))
	mux.Handle("/", console.NewHandler(access.Over(feedhttp.Of(cfg.DB)), console.Of(cfg.DB),
		&console.Config{Problems: health.known, Login: cfg.Login, Log: cfg.Log}))
	if cfg.Metrics != nil {
		mux.HandleFunc("/metrics", onlyGet(scrape(cfg.Metrics.Handler())))
	}
	return mux
}
