package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/cmd/access"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/feedtype"
)

const (
	// readyTimeout is the maximum time of the queries of /readyz.
	readyTimeout = 5 * time.Second
	// remember is how long the console shows the last result of /readyz.
	remember = time.Minute
)

// health answers /healthz and /readyz.
type health struct {
	db          *rowfeed.DB
	publishers  *publishers
	verifyEvery time.Duration
	timeout     time.Duration

	asking   chan struct{} // held by the request that checks, and that writes found
	found    found
	mu       sync.Mutex
	verified map[string]verification // by feed
}

// found is the result of the last completed check.
type found struct {
	begun   time.Time
	reasons []string
	failing []failing
}

// failing is one cause that keeps publishers, consumers or relays from their work.
type failing struct {
	Who      []string  `json:"concerns"`
	Error    string    `json:"error,omitempty"` // only for clients that administer all the feeds
	Since    time.Time `json:"since"`           // of the first of them
	Attempts int       `json:"attempts"`

	feeds []string
}

// verification is the result of verifying a feed's triggers.
type verification struct {
	at       time.Time
	problems []string
}

// alive answers that the process runs, and nothing more.
func (h *health) alive(w http.ResponseWriter, r *http.Request) {
	answer(w, r, http.StatusOK, struct {
		Alive bool `json:"alive"`
	}{true})
}

// ready answers whether everything works that consumers need.
func (h *health) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), h.timeout)
	defer cancel()
	found := h.reasons(ctx)
	reasons := found.reasons
	if err := ctx.Err(); err != nil && len(reasons) == 0 {
		reasons = append(reasons, feedhttp.ProblemOf(err, "").String())
	}
	status := http.StatusOK
	if len(reasons) > 0 {
		status = http.StatusServiceUnavailable
	}
	if !access.From(r.Context()).May(access.Read, access.EveryFeed) { // other clients must not see the names of feeds
		answer(w, r, status, struct {
			Ready bool `json:"ready"`
		}{len(reasons) == 0})
		return
	}
	answer(w, r, status, struct {
		Ready   bool     `json:"ready"`
		Reasons []string `json:"reasons"`
		// Failing does not make the server unready: it still serves all readers.
		Failing []failing `json:"failing,omitempty"`
	}{len(reasons) == 0, reasons, shown(access.From(r.Context()), found.failing)})
}

// shown returns what fails, as the identity may see it. An error may contain rows, and hosts and users of the driver's
// text. So it is shown to identities that administer the feeds, and without a view.
func shown(who access.Identity, all []failing) []failing {
	all = slices.Clone(all) // other requests share it
	for i, f := range all {
		if !who.View.IsZero() || slices.ContainsFunc(f.feeds, func(feed string) bool {
			return !who.May(access.Administer, feed)
		}) {
			all[i].Error = ""
		}
	}
	return all
}

// reasons returns why the server is not ready. Requests that arrive during a check share the result of the next
// check. So a request waits for at most two checks, whatever the number of requests.
func (h *health) reasons(ctx context.Context) found {
	came := time.Now()
	select {
	case h.asking <- struct{}{}:
		defer func() { <-h.asking }()
	case <-ctx.Done(): // a request does not wait longer than its own timeout
		return found{reasons: []string{feedhttp.ProblemOf(ctx.Err(), "").String()}}
	}
	if h.found.begun.After(came) {
		return h.found
	}
	now := found{begun: time.Now()}
	now.reasons, now.failing = h.check(ctx)
	if ctx.Err() == nil {
		h.found = now
	}
	return now
}

// check returns why the server is not ready, and what fails in any process. Each cause is named once, with the feeds
// that it concerns. An error that concerns no single feed is a reason by itself.
func (h *health) check(ctx context.Context) (reasons []string, failing []failing) {
	feeds, err := h.db.Feeds(ctx)
	if err != nil {
		return []string{feedhttp.ProblemOf(err, "").String()}, nil
	}
	concerned := map[string][]string{} // by cause
	var causes []string
	told := map[string]bool{} // feeds whose problems are among the reasons
	for _, f := range feeds {
		h.verify(ctx, f)
		for _, p := range h.known(f.Name()) {
			p = strings.TrimPrefix(p, feedtype.FeedObject(f.Name())+": ")
			if concerned[p] == nil {
				causes = append(causes, p)
			}
			concerned[p] = append(concerned[p], strconv.Quote(f.Name()))
			told[f.Name()] = true
		}
	}
	h.forget(feeds)
	reasons = []string{}
	for _, cause := range causes {
		which := "feed "
		if len(concerned[cause]) > 1 {
			which = "feeds "
		}
		reasons = append(reasons, which+strings.Join(concerned[cause], ", ")+": "+cause)
	}
	all, err := h.db.Admin().Failing(ctx)
	if err != nil { // the login may have no rights on cursors, which readers do not need
		return reasons, nil
	}
	return reasons, byCause(slices.DeleteFunc(all, func(f admin.Failing) bool {
		return f.Kind == admin.KindPublisher && told[f.Feed]
	}))
}

// byCause joins what fails with the same error.
func byCause(all []admin.Failing) (joined []failing) {
	for _, f := range all {
		who := f.Kind + " of feed " + strconv.Quote(f.Feed)
		if f.Consumer != "" {
			who = f.Kind + " " + strconv.Quote(f.Consumer) + " of feed " + strconv.Quote(f.Feed)
		}
		i := slices.IndexFunc(joined, func(j failing) bool { return j.Error == f.Error })
		if i < 0 {
			i = len(joined)
			joined = append(joined, failing{Error: f.Error, Since: f.Since})
		}
		j := &joined[i]
		j.feeds = append(j.feeds, f.Feed)
		if !slices.Contains(j.Who, who) { // several shards of a consumer are one
			j.Who = append(j.Who, who)
		}
		if f.Since.Before(j.Since) {
			j.Since = f.Since
		}
		j.Attempts = max(j.Attempts, f.Attempts)
	}
	return joined
}

// verify verifies a feed's triggers, unless that was done recently.
func (h *health) verify(ctx context.Context, f *rowfeed.Feed) {
	h.mu.Lock()
	last, ok := h.verified[f.Name()]
	h.mu.Unlock()
	if ok && time.Since(last.at) < h.verifyEvery {
		return
	}
	problems, err := f.Admin().Verify(ctx)
	if errors.Is(ctx.Err(), context.Canceled) {
		return // the client has disconnected: there is no result
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

// known returns the problems of a feed that are known without a query: those of its publisher, and those of the last
// verification of its triggers.
func (h *health) known(feed string) []string {
	all := h.publishers.problems(feed)
	h.mu.Lock()
	defer h.mu.Unlock()
	found := h.verified[feed]
	if time.Since(found.at) > max(h.verifyEvery, remember) {
		return all
	}
	for _, p := range found.problems {
		// A publisher that fails for the same reason reports it in more detail.
		if !slices.ContainsFunc(all, func(known string) bool { return strings.Contains(known, p) }) {
			all = append(all, p)
		}
	}
	return all
}

// onlyGet refuses methods other than GET and HEAD.
func onlyGet(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			feedhttp.Refuse(w, r, feedhttp.Problem{Type: "urn:rowfeed:problem:method-not-allowed",
				Title: "Method not allowed", Status: http.StatusMethodNotAllowed,
				Detail: "this path does not support " + r.Method, Next: "use GET"})
			return
		}
		next(w, r)
	}
}

func answer(w http.ResponseWriter, r *http.Request, status int, body any) {
	data, _ := json.Marshal(body) // bools and strings cannot fail
	data = append(data, '\n')
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(data)
	}
}
