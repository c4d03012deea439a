package console

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/rowfeed/rowfeed/cmd/access"
)

// TokenCookie is the name of the cookie that has the token of a browser that is logged in.
const TokenCookie = "rowfeed_token"

type loginView struct {
	Next   string
	Failed string // why the token was refused
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

// submit checks a token and stores it in a cookie. Scripts cannot read the cookie, and other sites cannot send it. If
// the login used TLS, the browser sends it only with TLS.
func (p loginPages) submit(q *request) (*answer, error) {
	next := localPath(q.PostForm.Get("next"))
	if p.login == nil {
		return &answer{redirect: ""}, nil
	}
	token := strings.TrimSpace(q.PostForm.Get("token"))
	who, err := p.login(q.Context(), token)
	if err != nil || who.Name == "" {
		if err != nil {
			p.log.WarnContext(q.Context(), "login with a token failed", "error", err)
		}
		return &answer{template: "login", title: "Log in", status: http.StatusUnauthorized,
			content: loginView{next,
				"This token is unknown, expired or revoked. `rowfeed token list` lists the tokens."}}, nil
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

// localPath returns next if it is the path of a page of the console, relative to the root. Otherwise it returns "".
func localPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || strings.ContainsAny(next, "\\\r\n") ||
		strings.HasPrefix(next, "/") || strings.Contains(u.Path, "..") ||
		strings.Contains(u.Path, ":") && !strings.Contains(u.Path, "/") {
		return ""
	}
	return next
}
