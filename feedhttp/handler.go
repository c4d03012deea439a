package feedhttp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed/feedtype"
)

// Config holds the settings of a Handler. The zero value is good.
type Config struct {
	// Log gets what a client is not told: the whole error behind every answer of 500 or
	// more. Default: nobody.
	Log *slog.Logger
	// NoPublish says that this process must not publish: consistent=true, which would,
	// is then refused with 400.
	NoPublish bool
	// NoCompression leaves pages as they are, also for who would take them compressed. Default:
	// those of 1400 bytes or more are, by zstd or gzip. Streams never are.
	NoCompression bool
	// Tracer makes spans of requests, which go on with the trace that a client's headers carry.
	// Default: none are made.
	Tracer feedtype.Tracer
	// Heartbeat is how often a stream without entries sends a comment, so that neither
	// end nor what is between takes it for dead. Default 15 s.
	Heartbeat time.Duration
	// WriteTimeout is how long a client may take for 64 KiB of an answer before it is cut
	// off. Default 30 s.
	WriteTimeout time.Duration
	// PageTimeout bounds the making of a page, beyond the request's own wait: a database
	// that hangs is answered with 503 like one that is away. Default 30 s.
	PageTimeout time.Duration
	// Wait is asked before a request waits for an entry, and before one streams; leave is
	// called when it no longer does. An error is the answer instead. Default: all may.
	Wait func(ctx context.Context) (leave func(), err error)
}

const defaultPageTimeout = 30 * time.Second

// Handler serves a Catalog's feeds at /_feeds. It is safe for concurrent use.
type Handler struct {
	catalog Catalog
	cfg     Config
	log     *slog.Logger

	routes []route
	tags   sync.Map // of columns, by feed: see columnsTag

	// life ends with Close.
	life context.Context
	end  context.CancelFunc
}

// NewHandler makes a Handler; cfg may be nil. The paths it knows start with /_feeds;
// to serve it elsewhere wrap it in [http.StripPrefix].
func NewHandler(catalog Catalog, cfg *Config) *Handler {
	if cfg == nil {
		cfg = &Config{}
	}
	h := &Handler{catalog: catalog, cfg: *cfg, log: cfg.Log, routes: routes()}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	if h.cfg.Heartbeat <= 0 {
		h.cfg.Heartbeat = defaultHeartbeat
	}
	if h.cfg.WriteTimeout <= 0 {
		h.cfg.WriteTimeout = defaultWriteTimeout
	}
	if h.cfg.PageTimeout <= 0 {
		h.cfg.PageTimeout = defaultPageTimeout
	}
	if h.cfg.Wait == nil {
		h.cfg.Wait = func(context.Context) (func(), error) { return func() {}, nil }
	}
	h.life, h.end = context.WithCancel(context.Background())
	return h
}

// Close ends what would otherwise last: streams end, and requests that wait for an
// entry are answered with the page that there is. All else goes on, so that it is what
// [http.Server.RegisterOnShutdown] wants.
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
		// The client is gone and hears nothing, or the server cuts off what takes too long.
		// To answer nothing would send an empty 200.
		h.answer(w, r, ProblemOf(gone, feed))
		return
	}
	p := ProblemOf(err, feed)
	if p.Status >= http.StatusInternalServerError {
		h.log.ErrorContext(r.Context(), "request failed", "path", r.URL.Path, "status", p.Status, "error", err)
	}
	h.answer(w, r, p)
}

// traced goes on with the client's trace, where anybody traces.
func (h *Handler) traced(r *http.Request) (_ *http.Request, end func(feedtype.SpanEnd)) {
	t := h.cfg.Tracer
	if t == nil {
		return r, func(feedtype.SpanEnd) {}
	}
	ctx, end := feedtype.StartSpan(t.Extract(r.Context(), r.Header.Get), t,
		feedtype.Span{Op: feedtype.SpanServe, Feed: feedOf(r.URL.Path)})
	return r.WithContext(ctx), end
}

// feedOf is the feed that a path is of, as far as it may be one's name: whatever else a client
// makes up is not noted.
func feedOf(path string) string {
	name := path[strings.LastIndexByte(path, '/')+1:]
	if len(name) > 39 || strings.HasPrefix(name, "_") {
		return ""
	}
	return name
}

// recoverPanic answers a panic with a problem. Nothing has been written then: answers are,
// when everything has been made, and what begins before that cuts itself off (writeParts).
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
	h.answer(w, r, ProblemOf(problem(feedtype.Failed, "", "the request failed (the server's log has the cause)"), ""))
}

// serve answers a request, or tells which error to answer, and of which feed.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request) (feed string, err error) {
	w.Header().Set("Vary", vary)
	route, feed := h.match(r.URL.Path)
	// An encoded slash is none to whoever has judged the path in front of us.
	if route == nil || strings.Contains(strings.ToLower(r.URL.RawPath), "%2f") {
		return "", problem(notFound, h.directions(), "there is nothing at %q", r.URL.Path)
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
	return feed, route.answer(h, w, r, call{feed: feed, values: values, format: format})
}

func (h *Handler) list(w http.ResponseWriter, r *http.Request, c call) error {
	names, err := h.catalog.Names(r.Context())
	if err != nil {
		return err
	}
	body := []byte(`{"feeds":[`)
	first := true
	for _, name := range names {
		data, err := h.describe(r.Context(), name)
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
	h.writeWhole(w, r, c.format, append(body, "]}\n"...))
	return nil
}

// describe returns a feed's element of the list: its Info, or its name and the problem. There is a problem if only
// this feed is broken (its table may be gone) or if the client may not see it (a view does not fit it). The element is
// nil if the feed was dropped meanwhile.
func (h *Handler) describe(ctx context.Context, name string) ([]byte, error) {
	source, err := h.catalog.Source(ctx, name)
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
			h.log.ErrorContext(ctx, "feed cannot be described", "feed", name, "error", err)
		}
		return marshal(struct {
			Name    string  `json:"name"`
			Problem Problem `json:"problem"`
		}{name, ProblemOf(err, name)})
	}
	return nil, err
}

func (h *Handler) info(w http.ResponseWriter, r *http.Request, c call) error {
	source, err := h.catalog.Source(r.Context(), c.feed)
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
	w.Header().Set(columnsHeader, h.columnsTag(c.feed, info.Columns))
	h.writeWhole(w, r, c.format, append(body, '\n'))
	return nil
}

func (h *Handler) fetch(w http.ResponseWriter, r *http.Request, c call) error {
	req, err := parseRequest(c.values)
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(r.Context(), req.Wait+h.cfg.PageTimeout)
	defer cancel()
	r = r.WithContext(bounded)
	source, err := h.catalog.Source(r.Context(), c.feed)
	if err != nil {
		return err
	}
	if req.Consistent && h.cfg.NoPublish {
		return badParameter("consistent", "ask a server that publishes, or leave it out",
			"this server does not publish, so it cannot make sure")
	}
	page, err := h.waited(r, source, req)
	if err != nil {
		return err
	}
	h.pageHeader(w, c.feed, page)
	parts := page.AppendLinesPart
	switch c.format {
	case jsonMediaType:
		parts = objectParts(page, c.feed)
	case eventsMediaType:
		h.eventsHeader(w, page)
		parts = eventParts(page, c.feed, func(i int) string { return page.Entries[i].ID(c.feed) })
	}
	h.writePage(w, r, answerForm{c.format, c.format + " of " + c.feed, parts}, page)
	return nil
}

// waited fetches a page; Close ends its waiting.
func (h *Handler) waited(r *http.Request, source feedtype.Source, req feedtype.Request) (feedtype.Page, error) {
	if req.Wait > 0 {
		leave, err := h.cfg.Wait(r.Context())
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
	defer context.AfterFunc(h.life, cancel)()
	page, err := source.Fetch(ctx, req)
	if err != nil && h.life.Err() != nil && r.Context().Err() == nil {
		req.Wait = 1 // nanosecond: the page that there is, read once for all who wait for it
		return source.Fetch(r.Context(), req)
	}
	return page, err
}
