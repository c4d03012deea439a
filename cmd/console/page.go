package console

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/access"
	"github.com/rowfeed/rowfeed/feedhttp"
)

const (
	// pageTimeout bounds the database work of a page or an action.
	pageTimeout = 15 * time.Second
	// maxForm is the maximum size of a form in bytes. Keys may be long.
	maxForm = 1 << 20
)

// route has the functions that answer a path, by method. "*" stands for any last part of a path.
type route struct {
	get, post func(*request) (*answer, error)
	open      bool // without a login
}

// request is an HTTP request of a page, with its identity.
type request struct {
	*http.Request
	w     http.ResponseWriter
	who   access.Identity
	param string // the part of the path that "*" matches
}

// answer is a page, or a redirect.
type answer struct {
	template string
	title    string
	nav      string // the current entry of the navigation
	content  any
	redirect string // relative to the console's root
	status   int    // 0 means 200
}

// frame has the values of the layout that all pages share.
type frame struct {
	Base               string // relative URL of the console's root: "./", "../"
	Title, Nav, Server string
	Who                string // name of the token; "" without login
	CanLogOut          bool
	Shown              bool // the navigation is shown: the user is logged in, or need not be
	Administers        bool // at least one feed
	AdministersAll     bool
	Message            *message
	Content            any
}

// errorView is the content of an error page.
type errorView struct {
	Title, Detail, Next string
	Back, BackTitle     string // Back is relative to the console's root
}

// pages serves the page of a path, or an error page.
type pages struct {
	routes     map[string]route
	forms      *http.CrossOriginProtection
	needsLogin bool // requests without a login are redirected to the login page
	log        *slog.Logger
}

// find returns the route of a path, and the part that "*" matches.
func (p *pages) find(urlPath string) (at route, rest string, ok bool) {
	first, rest, several := strings.Cut(strings.TrimPrefix(urlPath, "/"), "/")
	if !several {
		at, ok = p.routes[first]
		return at, "", ok
	}
	at, ok = p.routes[first+"/*"]
	return at, rest, ok && rest != "" && !strings.Contains(rest, "/")
}

// serve answers every request with a page, also in case of an error.
func (p *pages) serve(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	q := &request{Request: r.WithContext(ctx), w: w, who: access.From(ctx)}
	at, rest, ok := p.find(r.URL.Path)
	q.param = rest
	var a *answer
	var err error
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case !ok:
		a = &answer{template: "error", title: "Not found", status: http.StatusNotFound,
			content: errorView{"Page not found", "No page has this address.",
				"The first page lists the feeds. Their entries are served below /_feeds.", "", "Show the feeds"}}
	case reads && at.get == nil, !reads && (at.post == nil || r.Method != http.MethodPost):
		allow := make([]string, 0, 3)
		if at.get != nil {
			allow = append(allow, "GET", "HEAD")
		}
		if at.post != nil {
			allow = append(allow, "POST")
		}
		w.Header().Set("Allow", strings.Join(allow, ", "))
		http.Error(w, "Use "+allow[0]+".", http.StatusMethodNotAllowed)
		return
	case !reads && p.forms.Check(r) != nil:
		err = &rowfeed.Error{Code: rowfeed.Forbidden, Cause: "the form was sent from another site",
			Next: "open the console and use its own form"}
	case !at.open && p.needsLogin && q.who.Name == "":
		a = &answer{redirect: "login?next=" + url.QueryEscape(strings.TrimPrefix(r.URL.RequestURI(), "/"))}
		if !reads {
			a.redirect = "login"
		}
	case reads:
		a, err = at.get(q)
	default:
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		q.Body = r.Body
		if err = q.ParseForm(); err != nil {
			err = &rowfeed.Error{Code: rowfeed.InvalidRequest, Cause: "the form cannot be read",
				Next: "send less than 1 MiB, as a form"}
		} else {
			a, err = at.post(q)
		}
	}
	if gone := r.Context().Err(); gone != nil && err == nil {
		err = gone // the result may be incomplete
	}
	if err != nil {
		a = p.errorAnswer(q, a, err)
	}
	if a.redirect != "" || a.template == "" {
		w.Header().Set("Location", base(r.URL.Path)+a.redirect)
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	p.render(q, a)
}

// errorAnswer returns the error page of err. If a is not nil, the page has a link to the redirect of a.
func (p *pages) errorAnswer(q *request, a *answer, err error) *answer {
	problem := feedhttp.ProblemOf(err, "")
	if feedhttp.Withheld(err) && !errors.Is(err, context.Canceled) {
		p.log.ErrorContext(q.Context(), "the console cannot answer", "path", q.URL.Path, "error", err)
	}
	if errors.Is(err, rowfeed.UnknownConsumer) || errors.Is(err, rowfeed.UnknownLease) {
		problem.Status, problem.Title = http.StatusNotFound, "Not found"
	}
	if errors.Is(err, rowfeed.InvalidRequest) {
		problem.Title = "This cannot be done"
	}
	t := errorView{Title: problem.Title, Detail: problem.Detail, Next: problem.Next, BackTitle: "Show the feeds"}
	if a != nil {
		t.Back, t.BackTitle = a.redirect, "Go back"
	}
	return &answer{template: "error", title: problem.Title, content: t, status: problem.Status}
}

func (p *pages) render(q *request, a *answer) {
	f := frame{Base: base(q.URL.Path), Title: a.title, Nav: a.nav, Server: serverURL(q.Request), Content: a.content,
		AdministersAll: q.who.May(access.Administer, access.EveryFeed), Administers: administersSome(q.who)}
	f.Shown = !p.needsLogin || q.who.Name != ""
	if p.needsLogin {
		f.Who, f.CanLogOut = q.who.Name, q.who.Name != ""
	}
	if q.Method == http.MethodGet {
		f.Message = popMessage(q.w, q.Request)
	}
	var body bytes.Buffer
	if err := templates()[a.template].ExecuteTemplate(&body, "layout", f); err != nil {
		p.log.ErrorContext(q.Context(), "the console cannot make its page", "error", err)
		http.Error(q.w, "The page cannot be made; the server's log has the cause.", http.StatusInternalServerError)
		return
	}
	header := q.w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Length", strconv.Itoa(body.Len()))
	q.w.WriteHeader(max(a.status, http.StatusOK))
	if q.Method != http.MethodHead {
		_, _ = q.w.Write(body.Bytes())
	}
}
