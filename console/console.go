package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedhttp"
)

//go:embed assets
var assets embed.FS

var page = template.Must(template.ParseFS(assets, "assets/page.html"))

// Config holds the settings of a Handler. The zero value is good.
type Config struct {
	// Problems tells what is known to be wrong with a feed. Default: nothing is.
	Problems func(feed string) []string
	// Log gets the errors behind what the page only names. Default: nobody.
	Log *slog.Logger
}

// Handler serves the page at / and what it is made of below /_console/. The page
// expects a [feedhttp.Handler] at /_feeds beside it.
type Handler struct {
	catalog feedhttp.Catalog
	cfg     Config
	files   map[string]file // by path
}

type file struct {
	mediaType, tag string
	content        []byte
}

var mediaTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// NewHandler makes a Handler; cfg may be nil.
func NewHandler(catalog feedhttp.Catalog, cfg *Config) *Handler {
	h := &Handler{catalog: catalog, files: make(map[string]file)}
	if cfg != nil {
		h.cfg = *cfg
	}
	if h.cfg.Problems == nil {
		h.cfg.Problems = func(string) []string { return nil }
	}
	if h.cfg.Log == nil {
		h.cfg.Log = slog.New(slog.DiscardHandler)
	}
	entries, _ := assets.ReadDir("assets") // embedded: they are there
	for _, e := range entries {
		mediaType, ok := mediaTypes[path.Ext(e.Name())]
		if !ok {
			continue // the template
		}
		content, _ := assets.ReadFile("assets/" + e.Name())
		sum := sha256.Sum256(content)
		h.files["/_console/"+e.Name()] = file{mediaType, `"` + hex.EncodeToString(sum[:8]) + `"`, content}
	}
	return h
}

// policy allows the page its own style, script, icon and requests, and nothing else.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	f, isFile := h.files[r.URL.Path]
	switch {
	case !isFile && r.URL.Path != "/":
		http.Error(w, "There is nothing here. The console is at /, the feeds are at /_feeds.", http.StatusNotFound)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "Use GET.", http.StatusMethodNotAllowed)
	case isFile:
		header.Set("Content-Type", f.mediaType)
		header.Set("Cache-Control", "no-cache") // asks each time whether the tag is still the same
		header.Set("ETag", f.tag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.content))
	default:
		h.servePage(w, r)
	}
}

func (h *Handler) servePage(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	view, err := h.look(r.Context(), query.Get("feed"), query.Get("shard"))
	if gone := r.Context().Err(); gone != nil && err == nil {
		err = gone // what was found may not be all
	}
	status := http.StatusOK
	if err != nil {
		p := feedhttp.ProblemOf(err, "")
		status, view.Trouble = p.Status, p.String()
		if !errors.Is(err, rowfeed.UnknownFeed) {
			h.cfg.Log.ErrorContext(r.Context(), "console cannot show the feeds", "error", err)
		}
	}
	view.Server = serverURL(r)
	var body bytes.Buffer
	if err := page.Execute(&body, view); err != nil {
		h.cfg.Log.ErrorContext(r.Context(), "console cannot make its page", "error", err)
		http.Error(w, "The page cannot be made; the server's log has the cause.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body.Bytes())
	}
}

// serverURL is where the browser found this server, for the commands to copy.
func serverURL(r *http.Request) string {
	scheme := "http"
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	host := r.Host
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:[]"
	if host == "" || strings.Trim(host, plain) != "" {
		host = "127.0.0.1:8080" // nothing that a shell would read otherwise
	}
	return scheme + "://" + host
}
