package console_test

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/access"
	"github.com/rowfeed/rowfeed/cmd/console"
	"github.com/rowfeed/rowfeed/feedhttp"
)

func noToken(context.Context, string) (access.Identity, error) {
	return access.Identity{}, &rowfeed.Error{Code: rowfeed.Unauthorized, Cause: "it is unknown"}
}

// oneToken accepts the token "good".
func oneToken(ctx context.Context, token string) (access.Identity, error) {
	if token == "good" {
		return may("read kv"), nil
	}
	return noToken(ctx, "")
}

// TestPagesNeedALogin: a valid token is kept in a cookie that scripts cannot read and other sites cannot send.
// Without it the console shows only the login page.
func TestPagesNeedALogin(t *testing.T) {
	_, db := consumed(t)
	h := console.NewHandler(feedhttp.Of(db), console.Of(db), &console.Config{Login: oneToken})
	for path, next := range map[string]string{
		"/": "", "/feeds/kv?key=7": "feeds%2Fkv%3Fkey%3D7", "/consumers/billing": "consumers%2Fbilling",
		"/leases": "leases", "/confirm?act=reset": "confirm%3Fact%3Dreset",
	} {
		r, body := get(t, h, path)
		if r.StatusCode != 303 || strings.TrimLeft(r.Header.Get("Location"), "./") != "login?next="+next ||
			strings.Contains(body, "kv") {
			t.Errorf("%s: %s %v", path, r.Status, r.Header)
		}
	}
	if r, body := get(t, h, "/_console/sample"); r.StatusCode != 401 || strings.Contains(body, "kv") {
		t.Errorf("sample: %s %s", r.Status, body)
	}
	if r, _ := post(t, h, "/act/pause", form("consumer", "billing", "feed", "kv")); r.StatusCode != 303 ||
		r.Header.Get("Location") != "../login" {
		t.Errorf("an action: %s %v", r.Status, r.Header)
	}
	if r, body := get(t, h, "/login?next=feeds/kv"); r.StatusCode != 200 ||
		!strings.Contains(body, `value="feeds/kv"`) || !strings.Contains(body, `type="password"`) {
		t.Errorf("%s %s", r.Status, body)
	}
	r, body := post(t, h, "/login", form("token", "bad", "next", "feeds/kv"))
	if r.StatusCode != 401 || len(r.Cookies()) > 0 || !strings.Contains(body, "unknown, expired or revoked") ||
		strings.Contains(body, `value="bad"`) {
		t.Errorf("a bad token: %s %v %s", r.Status, r.Cookies(), body)
	}
	for _, secure := range []bool{false, true} {
		req := httptest.NewRequestWithContext(t.Context(), "POST", "/login",
			strings.NewReader(form("token", " good ", "next", "feeds/kv").Encode()))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if secure {
			req.TLS = &tls.ConnectionState{}
		}
		r, _ := send(t, h, req)
		if r.StatusCode != 303 || r.Header.Get("Location") != "./feeds/kv" || len(r.Cookies()) != 1 {
			t.Fatalf("%s %v", r.Status, r.Header)
		}
		c := r.Cookies()[0]
		if c.Name != "rowfeed_token" || c.Value != "good" || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode ||
			c.Secure != secure || c.Path != "/" || c.MaxAge != 0 {
			t.Errorf("cookie %v", c)
		}
	}
	r, _ = post(t, as(may("read kv"), h), "/logout", nil)
	if c := r.Cookies(); r.StatusCode != 303 || r.Header.Get("Location") != "./login" || len(c) != 1 ||
		c[0].Name != "rowfeed_token" || c[0].Value != "" || c[0].MaxAge >= 0 || !c[0].HttpOnly ||
		c[0].SameSite != http.SameSiteStrictMode {
		t.Errorf("logout: %s %v", r.Status, c)
	}
	if _, body = get(t, as(may("read kv"), h), "/"); !strings.Contains(body, "Log out") ||
		!strings.Contains(body, "someone") {
		t.Error("the page does not name the user")
	}
	if _, body = get(t, pages(db, nil), "/"); strings.Contains(body, "Log out") {
		t.Error("without a login the page has a logout")
	}
	if r, _ = get(t, pages(db, nil), "/login"); r.StatusCode != 303 {
		t.Errorf("without a login, /login answers %s", r.Status)
	}
}

// TestLoginRedirectsOnlyToThisSite: a login redirects to a page of the console, also if the link names another site.
func TestLoginRedirectsOnlyToThisSite(t *testing.T) {
	_, db := open(t)
	h := console.NewHandler(feedhttp.Of(db), console.Of(db), &console.Config{Login: oneToken})
	for _, next := range []string{
		"https://evil.example", "//evil.example", "/\\evil.example", "\\\\evil.example", "javascript:alert(1)",
		"../../x", "/consumers", "data:text/html,x", "a\r\nSet-Cookie: x=y", "http:evil",
	} {
		r, _ := post(t, h, "/login", form("token", "good", "next", next))
		if r.Header.Get("Location") != "./" {
			t.Errorf("%q leads to %q", next, r.Header.Get("Location"))
		}
		if _, body := get(t, h,
			"/login?next="+form("x", next).Encode()[2:]); !strings.Contains(body, `name="next" value=""`) {
			t.Errorf("the form takes %q", next)
		}
	}
}
