package console

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/rowfeed/rowfeed/cmd/access"
	"github.com/rowfeed/rowfeed/feedhttp"
)

// Config holds the settings of a Handler. The zero value has the defaults.
type Config struct {
	// Problems returns the known problems of a feed. Default: there are none.
	Problems func(feed string) []string
	// Login returns the identity that a token belongs to. If it is nil there is no login page, and each request has
	// its identity in the context.
	Login func(ctx context.Context, token string) (access.Identity, error)
	// Log receives the full text of errors that a page shows only in part. Default: errors are not logged.
	Log *slog.Logger
}

// Handler serves the pages at / and their scripts, styles and samples below /_console/. The pages expect a
// [feedhttp.Handler] at /_feeds of the same server, with the same rights.
type Handler struct {
	pages  *pages
	files  map[string]file // by name
	sample *sampler
}

// NewHandler returns a Handler. It reads rows through catalog, which checks the rights on them. It reads and changes
// everything else through data, and checks the rights of the identity in each request's context. cfg may be nil.
func NewHandler(catalog feedhttp.Catalog, data Data, cfg *Config) *Handler {
	var set Config
	if cfg != nil {
		set = *cfg
	}
	if set.Problems == nil {
		set.Problems = func(string) []string { return nil }
	}
	if set.Log == nil {
		set.Log = slog.New(slog.DiscardHandler)
	}
	states := states{data.Feeds, set.Problems, set.Log}
	unlogged := states
	unlogged.log = slog.New(slog.DiscardHandler) // samples are too frequent to log their errors
	h := &Handler{files: make(map[string]file), sample: newSampler(unlogged, set.Login != nil),
		pages: &pages{routesOf(catalog, data, states, &set), http.NewCrossOriginProtection(), set.Login != nil,
			set.Log}}
	entries, _ := assets.ReadDir("assets") // embedded files: no error
	for _, e := range entries {
		mediaType, ok := mediaTypes[path.Ext(e.Name())]
		if !ok {
			continue // a template
		}
		content, _ := assets.ReadFile("assets/" + e.Name())
		sum := sha256.Sum256(content)
		h.files[e.Name()] = file{mediaType, `"` + hex.EncodeToString(sum[:8]) + `"`, content}
	}
	return h
}

func routesOf(catalog feedhttp.Catalog, data Data, states states, cfg *Config) map[string]route {
	consumers := consumerPages{data.Lists}
	acts := actionPages{data.Actions, &refusals{of: make(map[string]*rate.Limiter)}}
	login := loginPages{cfg.Login, cfg.Log}
	return map[string]route{
		"":             {get: feedsPage{states, consumers}.show},
		"feeds/*":      {get: feedPage{catalog, data.Lists, states, consumers}.show},
		"consumers":    {get: consumers.all},
		"consumers/*":  {get: consumers.one},
		"leases":       {get: leasesPage{data.Lists}.show},
		"dead-letters": {get: lettersPage{data.Lists}.show},
		"blocked":      {get: blockedPage{data.Feeds, states}.show},
		"audit":        {get: auditPage{data.Lists}.show},
		"confirm":      {get: acts.confirm},
		"act/*":        {post: acts.act},
		"login":        {get: login.show, post: login.submit, open: true},
		"logout":       {post: login.logout, open: true},
	}
}

// Run takes samples of all feeds until ctx ends, so that plots show the last 15 minutes at the first visit. Without Run
// they begin with the visit.
func (h *Handler) Run(ctx context.Context) { h.sample.run(ctx) }

// policy allows only styles, scripts, images, requests and forms of this server.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	name, own := strings.CutPrefix(r.URL.Path, "/_console/")
	if f, ok := h.files[name]; own && (ok || name == "sample") {
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			header.Set("Allow", "GET, HEAD")
			http.Error(w, "Use GET.", http.StatusMethodNotAllowed)
		case !ok:
			h.sample.serve(w, r)
		default:
			header.Set("Content-Type", f.mediaType)
			header.Set("Cache-Control", "no-cache") // the browser revalidates it with its ETag
			header.Set("ETag", f.tag)
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.content))
		}
		return
	}
	h.pages.serve(w, r)
}
