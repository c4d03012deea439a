package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/access"
	"github.com/rowfeed/rowfeed/cmd/metrics"
	"github.com/rowfeed/rowfeed/feedhttp"
)

// scrape answers with the metrics, which name every feed and consumer. The client must have the right to read every
// feed.
func scrape(metrics http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if who := access.From(r.Context()); !who.May(access.Read, access.EveryFeed) {
			err := access.ErrNobody
			if who.Name != "" {
				err = &rowfeed.Error{Code: rowfeed.Forbidden, Cause: "metrics need the right to read every feed",
					Next: "use a token that was made with --feed '*' --right read"}
			}
			feedhttp.Refuse(w, r, feedhttp.ProblemOf(err, ""))
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		metrics.ServeHTTP(w, r)
	}
}

// routeOf returns the route of a request, one of a few fixed texts for every possible path.
func routeOf(r *http.Request) string {
	switch path := r.URL.Path; path {
	case "/healthz", "/readyz", "/metrics":
		return path[1:]
	case "/_feeds", "/_feeds/":
		return "list"
	}
	if rest, ok := strings.CutPrefix(r.URL.Path, "/_feeds/"); ok {
		switch kind, _, deeper := strings.Cut(rest, "/"); {
		case !deeper:
			return "info"
		case kind == "fetch" || kind == "stream" || kind == "shards" || kind == "http-feeds":
			return kind
		}
		return "other"
	}
	if r.URL.Path == "/" || strings.HasPrefix(r.URL.Path, "/_console/") {
		return "console"
	}
	return "other"
}

// Scraping holds the settings of the metrics endpoint of a process that serves no feeds.
type Scraping struct {
	Metrics *metrics.Metrics
	// Listen is the address, host:port. Port 0 selects a free port. Without a host only this machine can reach it.
	// Every client that reaches it sees the names of all feeds and consumers.
	Listen string
	// DB is the database whose state is also shown, or nil.
	DB *rowfeed.DB
	// Log gets messages for operators. Default: none.
	Log *slog.Logger
}

// StartMetrics serves /metrics and /healthz, and nothing else, until stop is called. It returns an error if it cannot
// listen.
func StartMetrics(ctx context.Context, what Scraping) (address string, stop func(), err error) {
	cfg := Config{Listen: what.Listen, Log: what.Log, Metrics: what.Metrics}.withDefaults()
	if strings.HasPrefix(cfg.Listen, ":") {
		cfg.Listen = "127.0.0.1" + cfg.Listen
	}
	listener, err := listen(ctx, "metrics", cfg.Listen)
	if err != nil {
		return "", nil, err
	}
	requests, end := context.WithCancel(context.WithoutCancel(ctx))
	if what.DB != nil {
		what.Metrics.Watch(requests, what.DB)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", onlyGet(new(health).alive))
	mux.HandleFunc("/metrics", onlyGet(scrape(what.Metrics.Handler())))
	srv := cfg.newHTTPServer(requests, cfg.inFront(listener.Addr(), newLimiter(cfg.Limits), mux))
	served := make(chan struct{})
	go func() {
		defer close(served)
		// Publishing and delivering continue without it.
		if err := srv.Serve(newCountedListener(listener, cfg.Limits, cfg.tellRefused(requests))); !errors.Is(err,
			http.ErrServerClosed) {
			cfg.Log.ErrorContext(requests, "the metrics endpoint has failed", "error", err)
		}
	}()
	address = listener.Addr().String()
	cfg.Log.InfoContext(ctx, "serving metrics", "address", address)
	if !isLoopback(listener.Addr()) {
		cfg.Log.WarnContext(ctx,
			"every client that can reach this address can read the metrics, which name all feeds and consumers",
			"address", address)
	}
	return address, func() {
		end()
		_ = srv.Close()
		<-served
	}, nil
}
