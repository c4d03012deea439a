package feedhttp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/rowfeed/rowfeed/feedtype"
)

// Handler serves a Catalog's feeds at /_feeds. It is safe for concurrent use.
type Handler struct {
	routes routes
	out    *responder
	log    *slog.Logger
	tracer feedtype.Tracer
	memory *memory
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
	memory := newMemory(set.PageMemory, set.PageTimeout/2)
	sources := &sources{catalog, set.PageTimeout, set.Wait, closing, memory, set.Client}
	return &Handler{newRoutes(set, sources, out), out, set.Log, set.Tracer, memory, end}
}

// PageMemory returns the memory that pages use now, and its limit, in bytes. refused counts the requests that waited
// for memory in vain. See Config.PageMemory.
func (h *Handler) PageMemory() (inUse, limit int, refused int64) { return h.memory.state() }

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
		h.out.writeProblem(w, r, ProblemOf(gone, feed))
		return
	}
	p := ProblemOf(err, feed)
	// Refusals of a server at its limits would fill the log. Metrics count them.
	if p.Status >= http.StatusInternalServerError && !errors.Is(err, Overloaded) {
		h.log.ErrorContext(r.Context(), "request failed", "path", r.URL.Path, "status", p.Status, "error", err)
	}
	h.out.writeProblem(w, r, p)
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
	failed := problem(feedtype.Failed, "", "the request failed (the server's log has the cause)")
	h.out.writeProblem(w, r, ProblemOf(failed, ""))
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
		return feed, problem(methodNotAllowed, "use GET", "this path does not support %s", r.Method)
	}
	values, err := parseQuery(r.URL.RawQuery, route.parameters...)
	if err != nil {
		return feed, err
	}
	format, ok := negotiate(r.Header.Values("Accept"), route.formats...)
	if !ok {
		return feed, problem(notAcceptable, "send Accept: "+strings.Join(route.formats, " or "),
			"Accept: %q allows none of: %s", strings.Join(r.Header.Values("Accept"), ", "),
			strings.Join(route.formats, ", "))
	}
	return feed, route.answer(w, r, call{feed: feed, values: values, format: format})
}
