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
	// pageTimeout bounds what a page or an action asks the database.
	pageTimeout = 15 * time.Second
	// maxForm bounds a form's bytes: keys may be long.
	maxForm = 1 << 20
)

// route says who answers at a path, by method; a path's last part may be any ("*").
type route struct {
	get, post func(*request) (*answer, error)
	open      bool // also to who is nobody
}

// request is one on its way through a page.
type request struct {
	*http.Request
	w     http.ResponseWriter
	who   access.Identity
	param string // what stands for "*"
}

// answer is a page, or where to go instead.
type answer struct {
	template string
	title    string
	nav      string // the part of the console that it belongs to
	content  any
	redirect string // from the console's root
	status   int    // 0: 200
}

// frame is what every page has around its content.
type frame struct {
	Base               string // from the page to the console's root: "./", "../"
	Title, Nav, Server string
	Who                string // "" where nobody says who they are
	CanLogOut          bool
	Shown              bool // pages are: somebody has logged in, or nobody needs to
	Administers        bool // some feed
	AdministersAll     bool
	Message            *message
	Content            any
}

// errorView is the content of a page that could not be made.
type errorView struct {
	Title, Detail, Next string
	Back, BackTitle     string // from the console's root
}

// pages answers with the page of a path, or with one of the error.
type pages struct {
	routes     map[string]route
	forms      *http.CrossOriginProtection
	needsLogin bool // there is no page for who is not logged in
	log        *slog.Logger
}

// find answers the route of a path.
func (p *pages) find(urlPath string) (at route, rest string, ok bool) {
	first, rest, several := strings.Cut(strings.TrimPrefix(urlPath, "/"), "/")
	if !several {
		at, ok = p.routes[first]
		return at, "", ok
	}
	at, ok = p.routes[first+"/*"]
	return at, rest, ok && rest != "" && !strings.Contains(rest, "/")
}

// serve answers with a page, whatever comes: errors have one, too.
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
			content: errorView{"There is nothing here", "No page has this address.",
				"The feeds are at the start; their entries are below /_feeds.", "", "Show the feeds"}}
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
			Next: "open the console itself, and do it there"}
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
		err = gone // what was found may not be all
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

// errorAnswer makes a page of an error; a may be a page that stands in part.
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
