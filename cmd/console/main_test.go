package console_test

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/access"
	"github.com/rowfeed/rowfeed/cmd/console"
	"github.com/rowfeed/rowfeed/dialect/sqlite"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

func TestMain(m *testing.M) {
	testdb.Main(m)
}

func open(t *testing.T) (*sql.DB, *rowfeed.DB) {
	t.Helper()
	pool := testdb.SQLite.New(t).OpenTapped(t, testdb.Hooks{})
	return pool, migrated(t, pool)
}

func migrated(t *testing.T, pool *sql.DB) *rowfeed.DB {
	t.Helper()
	db, err := rowfeed.Open(t.Context(), pool, sqlite.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db
}

func exec(t *testing.T, db *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func addFeed(t *testing.T, db *rowfeed.DB, name string) *rowfeed.Feed {
	t.Helper()
	f, err := db.AddFeed(t.Context(), rowfeed.FeedSpec{Name: name, Table: name}, nil)
	if err != nil {
		t.Fatal(err)
	}
	publish(t, f)
	return f
}

func publish(t *testing.T, f *rowfeed.Feed) {
	t.Helper()
	if _, err := f.Publish(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// as returns a handler whose requests come from the user who.
func as(who access.Identity, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(access.With(r.Context(), who)))
	})
}

// may returns a user with these rights, such as "read kv" or "administer *".
func may(rights ...string) access.Identity {
	who := access.Identity{Name: "someone"}
	for _, r := range rights {
		right, feed, _ := strings.Cut(r, " ")
		who.Grants = append(who.Grants, access.Grant{Right: access.Right(right), Feed: feed})
	}
	return who
}

// pages returns a console in which every user may do everything.
func pages(db *rowfeed.DB, cfg *console.Config) http.Handler {
	return as(access.Everyone(), console.NewHandler(feedhttp.Of(db), console.Of(db), cfg))
}

func get(t *testing.T, h http.Handler, path string, header ...string) (*http.Response, string) {
	t.Helper()
	return send(t, h, httptest.NewRequestWithContext(t.Context(), "GET", path, nil), header...)
}

// post sends a form, with the headers of a browser on a page of the console, unless header has others.
func post(t *testing.T, h http.Handler, path string, form url.Values, header ...string) (*http.Response, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), "POST", path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return send(t, h, r, header...)
}

func send(t *testing.T, h http.Handler, r *http.Request, header ...string) (*http.Response, string) {
	t.Helper()
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	body, _ := io.ReadAll(w.Result().Body)
	return w.Result(), string(body)
}

// consumed returns a database with a feed kv of three rows, whose consumer "billing" has set key 2 aside.
func consumed(t *testing.T) (*sql.DB, *rowfeed.DB) {
	t.Helper()
	pool, db := open(t)
	exec(t, pool, `CREATE TABLE kv (id INTEGER PRIMARY KEY, v TEXT)`)
	exec(t, pool, `INSERT INTO kv VALUES (1, 'a'), (2, 'b'), (3, 'c')`)
	consume(t, db, addFeed(t, db, "kv"), "billing", 2)
	return pool, db
}

// consume runs a consumer to the end of a feed. It sets the given keys aside.
func consume(t *testing.T, db *rowfeed.DB, f *rowfeed.Feed, name string, aside ...int64) {
	t.Helper()
	c := &rowfeed.Consumer{Name: name, Source: f, DB: db, OnFailure: rowfeed.SetAside,
		Options: rowfeed.ConsumerOptions{Retry: rowfeed.Retry{MaxAttempts: 1, Backoff: 1}},
		Deliver: func(_ context.Context, entries []rowfeed.Entry) (refused []rowfeed.Refusal, _ error) {
			for i, e := range entries {
				if id, _ := e.Key.Get("id"); slices.Contains(aside, id.(int64)) {
					refused = append(refused, rowfeed.Refusal{Entry: i, Err: errors.New("<b>no such customer</b>")})
				}
			}
			return refused, nil
		}}
	if err := c.RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
}
