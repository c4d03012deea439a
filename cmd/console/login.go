package console

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/rowfeed/rowfeed/cmd/access"
)

// TokenCookie is the cookie that has the token of who is logged in.
const TokenCookie = "rowfeed_token"

type loginView struct {
	Next   string
	Failed string // why the token was not taken
}

type loginPages struct {
	login func(ctx context.Context, token string) (access.Identity, error)
	log   *slog.Logger
}

func (p loginPages) show(q *request) (*answer, error) {
	if p.login == nil {
		return &answer{redirect: ""}, nil
	}
	return &answer{template: "login", title: "Log in",
		content: loginView{Next: localPath(q.URL.Query().Get("next"))}}, nil
}

// submit checks a token, and has the browser keep it: where no script reads it, no other
// site sends it, and without TLS only where there was none.
func (p loginPages) submit(q *request) (*answer, error) {
	next := localPath(q.PostForm.Get("next"))
	if p.login == nil {
		return &answer{redirect: ""}, nil
	}
	token := strings.TrimSpace(q.PostForm.Get("token"))
	who, err := p.login(q.Context(), token)
	if err != nil || who.Name == "" {
		if err != nil {
			p.log.WarnContext(q.Context(), "a token was not taken", "error", err)
		}
		return &answer{template: "login", title: "Log in", status: http.StatusUnauthorized,
			content: loginView{next,
				"This token is unknown, expired or revoked. `rowfeed token list` shows those there are."}}, nil
	}
	http.SetCookie(q.w, &http.Cookie{Name: TokenCookie, Value: token, Path: "/", HttpOnly: true,
		SameSite: http.SameSiteStrictMode, Secure: secure(q.Request)})
	return &answer{redirect: next}, nil
}

func (p loginPages) logout(q *request) (*answer, error) {
	http.SetCookie(q.w, &http.Cookie{Name: TokenCookie, Path: "/", MaxAge: -1, HttpOnly: true,
		SameSite: http.SameSiteStrictMode, Secure: secure(q.Request)})
	if p.login == nil {
		return &answer{redirect: ""}, nil
	}
	return &answer{redirect: "login"}, nil
}

// localPath is where a login may lead: a page of the console, below its root, and nothing else.
func localPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || strings.ContainsAny(next, "\\\r\n") ||
		strings.HasPrefix(next, "/") || strings.Contains(u.Path, "..") ||
		strings.Contains(u.Path, ":") && !strings.Contains(u.Path, "/") {
		return ""
	}
	return next
}
