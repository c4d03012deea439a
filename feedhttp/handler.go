package feedhttp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
)

// Config holds the settings of a Handler. The zero value is good.
type Config struct {
	// Log gets what clients must not see: the complete error behind every answer with a status of 500 or more.
	// Default: none.
	Log *slog.Logger
	// NoPublish says that this process must not publish. Requests with consistent=true, which would publish, are then
	// refused with 400.
	NoPublish bool
	// NoCompression turns compression off. By default pages of 1400 bytes or more are compressed with zstd or gzip
	// for clients that accept it. Streams are never compressed.
	NoCompression bool
	// Tracer creates spans of requests, which continue the trace of the client's headers. Default: none.
	Tracer feedtype.Tracer
	// Heartbeat is the interval of comments in a stream without entries. They keep the client and proxies from
	// closing the connection. Default 15 s.
	Heartbeat time.Duration
	// WriteTimeout is the maximum time in which a client has to read 64 KiB of an answer before it is disconnected.
	// Default 30 s.
	WriteTimeout time.Duration
	// PageTimeout is the maximum time to make a page, in addition to the request's own wait. If the database does not
	// answer in time, the answer is 503, as if it could not be reached. Default 30 s.
	PageTimeout time.Duration
	// Wait, if set, is called before a request waits for an entry, and before a stream begins. leave is called when
	// the wait or the stream has ended. An error of Wait is answered instead. Default: all requests may wait.
	Wait func(ctx context.Context) (leave func(), err error)
}

const defaultPageTimeout = 30 * time.Second

func (c Config) withDefaults() Config {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Heartbeat <= 0 {
		c.Heartbeat = defaultHeartbeat
	}
	if c.WriteTimeout <= 0 {
		c.WriteTimeout = defaultWriteTimeout
	}
	if c.PageTimeout <= 0 {
		c.PageTimeout = defaultPageTimeout
	}
	if c.Wait == nil {
		c.Wait = func(context.Context) (func(), error) { return func() {}, nil }
	}
	return c
}

// sources gives endpoints the feeds of the catalog, within the limits of the server.
type sources struct {
	catalog Catalog
	timeout time.Duration // see Config.PageTimeout
	wait    func(ctx context.Context) (leave func(), err error)
	closing context.Context // ends when Close is called
}

// Handler serves a Catalog's feeds at /_feeds. It is safe for concurrent use.
type Handler struct {
	routes routes
	out    *responder
	log    *slog.Logger
	tracer feedtype.Tracer
	end    context.CancelFunc
}

// NewHandler returns a Handler. cfg may be nil. The paths that it serves begin with /_feeds. To serve it below
// another path, wrap it in [http.StripPrefix].
func NewHandler(catalog Catalog, cfg *Config) *Handler {
	if cfg == nil {
		cfg = &Config{}
	}
	set := cfg.withDefaults()
	closing, end := context.WithCancel(context.Background())
	out := &responder{sender{set.WriteTimeout}, set.Log, set.NoCompression}
	sources := &sources{catalog, set.PageTimeout, set.Wait, closing}
	return &Handler{newRoutes(set, sources, out), out, set.Log, set.Tracer, end}
}

// Close ends streams, and answers requests that wait for an entry with the current page. All other requests continue,
// so it can be passed to [http.Server.RegisterOnShutdown].
func (h *Handler) Close() { h.end() }

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer h.recoverPanic(w, r)
	r, end := h.traced(r)
	feed, err := h.serve(w, r)
	end(feedtype.SpanEnd{Err: err})
	if err == nil {
		return
	}
	if gone := r.Context().Err(); gone != nil {
		// The client has disconnected, or the server ends a request that takes too long. Without an answer net/http
		// would send an empty 200.
		h.out.answer(w, r, ProblemOf(gone, feed))
		return
	}
	p := ProblemOf(err, feed)
	if p.Status >= http.StatusInternalServerError {
		h.log.ErrorContext(r.Context(), "request failed", "path", r.URL.Path, "status", p.Status, "error", err)
	}
	h.out.answer(w, r, p)
}

// traced continues the trace of the client, if there is a tracer.
func (h *Handler) traced(r *http.Request) (_ *http.Request, end func(feedtype.SpanEnd)) {
	t := h.tracer
	if t == nil {
		return r, func(feedtype.SpanEnd) {}
	}
	ctx, end := feedtype.StartSpan(t.Extract(r.Context(), r.Header.Get), t,
		feedtype.Span{Op: feedtype.SpanServe, Feed: feedOf(r.URL.Path)})
	return r.WithContext(ctx), end
}

// feedOf returns the feed's name in a path, if the text may be a name. Other text of clients does not get into spans.
func feedOf(path string) string {
	name := path[strings.LastIndexByte(path, '/')+1:]
	if len(name) > 39 || strings.HasPrefix(name, "_") {
		return ""
	}
	return name
}

// recoverPanic answers a panic with a problem. At that time nothing has been written: answers are written when they
// are complete, and writeParts handles its own panics.
func (h *Handler) recoverPanic(w http.ResponseWriter, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(v)
	}
	h.log.ErrorContext(r.Context(), "request panicked", "path", r.URL.Path, "panic", fmt.Sprint(v), "stack",
		string(debug.Stack()))
	h.out.answer(w, r, ProblemOf(problem(feedtype.Failed, "", "the request failed (the server's log has the cause)"), ""))
}

// serve answers a request, or returns the error to answer, and its feed.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request) (feed string, err error) {
	w.Header().Set("Vary", vary)
	route, feed := h.routes.match(r.URL.Path)
	// A proxy that checks paths in front of the server does not see an encoded slash as a slash.
	if route == nil || strings.Contains(strings.ToLower(r.URL.RawPath), "%2f") {
		return "", problem(notFound, h.routes.directions(), "there is nothing at %q", r.URL.Path)
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return feed, problem(methodNotAllowed, "use GET", "%s is not for reading", r.Method)
	}
	values, err := parseQuery(r.URL.RawQuery, route.parameters...)
	if err != nil {
		return feed, err
	}
	format, ok := negotiate(r.Header.Values("Accept"), route.formats...)
	if !ok {
		return feed, problem(notAcceptable, "send Accept: "+strings.Join(route.formats, " or "),
			"Accept: %q allows none of: %s", strings.Join(r.Header.Values("Accept"), ", "), strings.Join(route.formats,
				", "))
	}
	return feed, route.answer(w, r, call{feed: feed, values: values, format: format})
}

type feedsEndpoint struct {
	sources *sources
	out     *responder
	tags    *columnTags
}

func (e feedsEndpoint) list(w http.ResponseWriter, r *http.Request, c call) error {
	names, err := e.sources.catalog.Names(r.Context())
	if err != nil {
		return err
	}
	body := []byte(`{"feeds":[`)
	first := true
	for _, name := range names {
		data, err := e.describe(r.Context(), name)
		if err != nil {
			return err
		}
		if data == nil {
			continue
		}
		if !first {
			body = append(body, ',')
		}
		body, first = append(body, data...), false
	}
	e.out.writeWhole(w, r, c.format, append(body, "]}\n"...))
	return nil
}

// describe returns a feed's element of the list: its Info, or its name and the problem. There is a problem if only
// this feed is broken (its table may be gone) or if the client may not see it (a view does not fit it). The element is
// nil if the feed was dropped meanwhile.
func (e feedsEndpoint) describe(ctx context.Context, name string) ([]byte, error) {
	source, err := e.sources.catalog.Source(ctx, name)
	var info *feedtype.Info
	if err == nil {
		info, err = source.Info(ctx)
	}
	switch {
	case err == nil:
		return marshal(info)
	case errors.Is(err, feedtype.UnknownFeed):
		return nil, nil
	case errors.Is(err, feedtype.Refused) || errors.Is(err, feedtype.Failed) || errors.Is(err, feedtype.Forbidden):
		if Withheld(err) {
			e.out.log.ErrorContext(ctx, "feed cannot be described", "feed", name, "error", err)
		}
		return marshal(struct {
			Name    string  `json:"name"`
			Problem Problem `json:"problem"`
		}{name, ProblemOf(err, name)})
	}
	return nil, err
}

func (e feedsEndpoint) info(w http.ResponseWriter, r *http.Request, c call) error {
	source, err := e.sources.catalog.Source(r.Context(), c.feed)
	if err != nil {
		return err
	}
	info, err := source.Info(r.Context())
	if err != nil {
		return err
	}
	body, err := marshal(info)
	if err != nil {
		return err
	}
	w.Header().Set(columnsHeader, e.tags.of(c.feed, info.Columns))
	e.out.writeWhole(w, r, c.format, append(body, '\n'))
	return nil
}

type fetchEndpoint struct {
	sources   *sources
	out       *responder
	tags      *columnTags
	noPublish bool
}

func (e fetchEndpoint) answer(w http.ResponseWriter, r *http.Request, c call) error {
	req, err := parseRequest(c.values)
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(r.Context(), req.Wait+e.sources.timeout)
	defer cancel()
	r = r.WithContext(bounded)
	source, err := e.sources.catalog.Source(r.Context(), c.feed)
	if err != nil {
		return err
	}
	if req.Consistent && e.noPublish {
		return badParameter("consistent", "ask a server that publishes, or leave it out",
			"this server does not publish, so it cannot make sure")
	}
	page, err := e.sources.waited(r, source, req)
	if err != nil {
		return err
	}
	e.tags.pageHeader(w, c.feed, page)
	parts := page.AppendLinesPart
	switch c.format {
	case jsonMediaType:
		parts = objectParts(page, c.feed)
	case eventsMediaType:
		eventsHeader(w, page)
		parts = eventParts(page, c.feed, func(i int) string { return page.Entries[i].ID(c.feed) })
	}
	e.out.writePage(w, r, answerForm{c.format, c.format + " of " + c.feed, parts}, page)
	return nil
}

// waited fetches a page, and waits until Close is called at the latest.
func (s *sources) waited(r *http.Request, source feedtype.Source, req feedtype.Request) (feedtype.Page, error) {
	if req.Wait > 0 {
		leave, err := s.wait(r.Context())
		if err != nil {
			return feedtype.Page{}, err
		}
		defer leave()
	}
	if req.Wait == 0 || req.Consistent {
		return source.Fetch(r.Context(), req)
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.closing, cancel)()
	page, err := source.Fetch(ctx, req)
	if err != nil && s.closing.Err() != nil && r.Context().Err() == nil {
		req.Wait = 1 // 1 ns: waiting requests then share one read of the current page
		return source.Fetch(r.Context(), req)
	}
	return page, err
}
