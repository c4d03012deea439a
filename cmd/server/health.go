package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/access"
	"github.com/rowfeed/rowfeed/feedhttp"
)

const (
	// readyTimeout bounds the questions that /readyz asks the database.
	readyTimeout = 5 * time.Second
	// remember is for how long the console shows what /readyz last found.
	remember = time.Minute
)

// health answers /healthz and /readyz.
type health struct {
	db          *rowfeed.DB
	publishers  *publishers
	verifyEvery time.Duration
	timeout     time.Duration

	asking   chan struct{} // holds one: who looks, and has found
	found    found
	mu       sync.Mutex
	verified map[string]verification // by feed
}

// found is what the last look has found that came to its end.
type found struct {
	begun   time.Time
	reasons []string
}

// verification is what was found of a feed's triggers, and when.
type verification struct {
	at       time.Time
	problems []string
}

// alive says that the process answers, and nothing more.
func (h *health) alive(w http.ResponseWriter, r *http.Request) {
	answer(w, r, http.StatusOK, struct {
		Alive bool `json:"alive"`
	}{true})
}

// ready says whether everything works that consumers rely on.
func (h *health) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), h.timeout)
	defer cancel()
	reasons := h.reasons(ctx)
	if err := ctx.Err(); err != nil && len(reasons) == 0 {
		reasons = append(reasons, feedhttp.ProblemOf(err, "").String())
	}
	status := http.StatusOK
	if len(reasons) > 0 {
		status = http.StatusServiceUnavailable
	}
	if !access.From(r.Context()).May(access.Read, access.EveryFeed) { // strangers learn no name of a feed
		answer(w, r, status, struct {
			Ready bool `json:"ready"`
		}{len(reasons) == 0})
		return
	}
	answer(w, r, status, struct {
		Ready   bool     `json:"ready"`
		Reasons []string `json:"reasons"`
	}{len(reasons) == 0, reasons})
}

// reasons are why the server is not ready. Who comes while others look takes what is found by the
// next look, all of them together: however many strangers ask, nobody waits for more than two.
func (h *health) reasons(ctx context.Context) []string {
	came := time.Now()
	select {
	case h.asking <- struct{}{}:
		defer func() { <-h.asking }()
	case <-ctx.Done(): // nobody waits behind a database that hangs for longer than they asked to
		return []string{feedhttp.ProblemOf(ctx.Err(), "").String()}
	}
	if h.found.begun.After(came) {
		return h.found.reasons
	}
	begun := time.Now()
	reasons := h.look(ctx)
	if ctx.Err() == nil {
		h.found = found{begun, reasons}
	}
	return reasons
}

func (h *health) look(ctx context.Context) []string {
	reasons := []string{}
	feeds, err := h.db.Feeds(ctx)
	if err != nil {
		return append(reasons, feedhttp.ProblemOf(err, "").String())
	}
	for _, f := range feeds {
		h.verify(ctx, f)
		for _, p := range h.known(f.Name()) {
			reasons = append(reasons, fmt.Sprintf("feed %q: %s", f.Name(), p))
		}
	}
	h.forget(feeds)
	return reasons
}

// verify looks at a feed's triggers, unless that was done a moment ago.
func (h *health) verify(ctx context.Context, f *rowfeed.Feed) {
	h.mu.Lock()
	last, ok := h.verified[f.Name()]
	h.mu.Unlock()
	if ok && time.Since(last.at) < h.verifyEvery {
		return
	}
	problems, err := f.Admin().Verify(ctx)
	if errors.Is(ctx.Err(), context.Canceled) {
		return // who asked has gone: nothing was found
	}
	if err != nil {
		problems = []string{feedhttp.ProblemOf(err, f.Name()).String()}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.verified[f.Name()] = verification{time.Now(), problems}
}

func (h *health) forget(feeds []*rowfeed.Feed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name := range h.verified {
		if !slices.ContainsFunc(feeds, func(f *rowfeed.Feed) bool { return f.Name() == name }) {
			delete(h.verified, name)
		}
	}
}

// known is what is wrong with a feed as far as known without asking the database: what
// its publisher tells, and what was last found of its triggers.
func (h *health) known(feed string) []string {
	all := h.publishers.problems(feed)
	h.mu.Lock()
	defer h.mu.Unlock()
	found := h.verified[feed]
	if time.Since(found.at) > max(h.verifyEvery, remember) {
		return all
	}
	for _, p := range found.problems {
		// A publisher that fails by the same cause tells it at more length.
		if !slices.ContainsFunc(all, func(known string) bool { return strings.Contains(known, p) }) {
			all = append(all, p)
		}
	}
	return all
}

// onlyGet refuses what does not read.
func onlyGet(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "Use GET.", http.StatusMethodNotAllowed)
			return
		}
		next(w, r)
	}
}

func answer(w http.ResponseWriter, r *http.Request, status int, body any) {
	data, _ := json.Marshal(body) // bools and strings
	data = append(data, '\n')
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(data)
	}
}
