package console_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rowfeed/rowfeed/cmd/console"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

func TestAssetsAreCached(t *testing.T) {
	_, db := open(t)
	h := pages(db, nil)
	for path, mediaType := range map[string]string{
		"/_console/style.css": "text/css; charset=utf-8",
		"/_console/theme.js":  "text/javascript; charset=utf-8",
		"/_console/icon.svg":  "image/svg+xml",
	} {
		r, body := get(t, h, path)
		if r.StatusCode != 200 || r.Header.Get("Content-Type") != mediaType || body == "" {
			t.Errorf("%s: %s %v", path, r.Status, r.Header)
		}
		if strings.Contains(strings.ReplaceAll(body, "http://www.w3.org/2000/svg", ""), "//www") {
			t.Errorf("%s loads from elsewhere", path)
		}
		if r, _ = get(t, h, path, "If-None-Match", r.Header.Get("ETag")); r.StatusCode != 304 {
			t.Errorf("%s again: %s", path, r.Status)
		}
	}
	for _, path := range []string{"/nope", "/_console/", "/_console/page.html", "/_console/../console.go"} {
		if r, _ := get(t, h, path); r.StatusCode != 404 {
			t.Errorf("%s: %s", path, r.Status)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("POST", "/", nil))
	if w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d", w.Code)
	}
	w = httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("HEAD", "/", nil))
	if w.Code != 200 || w.Body.Len() != 0 {
		t.Errorf("HEAD: %d, %d bytes", w.Code, w.Body.Len())
	}
}

// TestPagesReportUnavailableDatabase: while the database is unavailable every page says so and what to do. No page
// shows the error of the driver.
func TestPagesReportUnavailableDatabase(t *testing.T) {
	var away atomic.Bool
	pool := testdb.SQLite.New(t).OpenTapped(t, testdb.Hooks{Before: func(context.Context, testdb.TapEvent) error {
		if away.Load() {
			return errors.Join(driver.ErrBadConn, errors.New("secret"))
		}
		return nil
	}})
	db := migrated(t, pool)
	exec(t, pool, `CREATE TABLE kv (id INTEGER PRIMARY KEY)`)
	addFeed(t, db, "kv")
	h := pages(db, nil)
	away.Store(true)
	for _, path := range []string{
		"/", "/feeds/kv", "/consumers", "/consumers/billing", "/leases", "/dead-letters", "/blocked", "/audit",
		"/_console/sample",
	} {
		r, body := get(t, h, path)
		if r.StatusCode != 503 || !strings.Contains(body, "check that the database runs") ||
			strings.Contains(body, "secret") || strings.Contains(body, "no feed yet") {
			t.Errorf("%s: %s %s", path, r.Status, body)
		}
	}
	if r, body := post(t, h, "/act/pause", form("consumer", "billing", "feed", "kv")); r.StatusCode != 503 ||
		strings.Contains(body, "secret") || !strings.Contains(body, "Go back") {
		t.Errorf("pause: %s %s", r.Status, body)
	}
}

// TestPathsAllowOnlyTheirMethods: a page answers GET and HEAD. It refuses other methods and lists the allowed ones.
func TestPathsAllowOnlyTheirMethods(t *testing.T) {
	_, db := consumed(t)
	h := pages(db, &console.Config{Login: noToken})
	for path, allow := range map[string]string{
		"/": "GET, HEAD", "/feeds/kv": "GET, HEAD", "/consumers": "GET, HEAD", "/consumers/billing": "GET, HEAD",
		"/leases": "GET, HEAD", "/dead-letters": "GET, HEAD", "/blocked": "GET, HEAD", "/audit": "GET, HEAD",
		"/login": "GET, HEAD, POST", "/confirm": "GET, HEAD", "/act/pause": "POST", "/logout": "POST",
		"/_console/sample": "GET, HEAD",
	} {
		for _, method := range []string{"GET", "HEAD", "PUT", "DELETE", "POST"} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
			if allowed := strings.Contains(allow, method); allowed == (w.Code == http.StatusMethodNotAllowed) ||
				!allowed && w.Header().Get("Allow") != allow {
				t.Errorf("%s %s: %d, allows %q", method, path, w.Code, w.Header().Get("Allow"))
			}
			if method == "HEAD" && w.Body.Len() > 0 && w.Code == 200 {
				t.Errorf("HEAD %s has a body", path)
			}
		}
	}
	for _, path := range []string{"/nope", "/consumers/nobody", "/consumers/a/b", "/act/", "/feeds/nope"} {
		if r, body := get(t, h, path); r.StatusCode != 404 || !strings.Contains(body, "</html>") {
			t.Errorf("%s: %s", path, r.Status)
		}
	}
}

// TestLinksAreRelative: links work at every depth of path, also behind a proxy that adds a prefix.
func TestLinksAreRelative(t *testing.T) {
	_, db := consumed(t)
	h := pages(db, nil)
	for path, base := range map[string]string{
		"/": "./", "/consumers": "./", "/consumers/billing": "../", "/feeds/kv": "../",
	} {
		_, body := get(t, h, path)
		for _, want := range []string{
			`href="` + base + `_console/style.css"`, `href="` + base + `leases"`, `data-base="` + base + `"`,
		} {
			if !strings.Contains(body, want) {
				t.Errorf("%s lacks %s", path, want)
			}
		}
		if strings.Contains(body, `href="/`) || strings.Contains(body, `src="/`) ||
			strings.Contains(body, `action="/`) {
			t.Errorf("%s names something from the root of the server", path)
		}
	}
}
