// Package feedhttp_test has the tests of package feedhttp that need a database.
package feedhttp_test

import (
	"context"
	"database/sql"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect/sqlite"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// fixture is a real feed on a SQLite file, served over HTTP.
type fixture struct {
	sql    *sql.DB
	db     *rowfeed.DB
	server *httptest.Server
}

func (x fixture) exec(t *testing.T, query string, args ...any) {
	t.Helper()
	if _, err := x.sql.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// addFeed adds a feed of the table with its name, and publishes the rows.
func (x fixture) addFeed(t *testing.T, name string) *rowfeed.Feed {
	t.Helper()
	f, err := x.db.AddFeed(t.Context(), rowfeed.FeedSpec{Name: name, Table: name}, nil)
	if err != nil {
		t.Fatal(err)
	}
	x.publish(t, f)
	return f
}

func (x fixture) publish(t *testing.T, f *rowfeed.Feed) {
	t.Helper()
	if _, err := f.Publish(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (x fixture) client(feed string) *feedhttp.Client {
	return &feedhttp.Client{URL: x.server.URL, Feed: feed, HTTP: x.server.Client()}
}

// noHeartbeat has no heartbeats, which would disturb tests of other events on a slow machine.
var noHeartbeat = feedhttp.Config{Heartbeat: time.Hour}

// newFixture runs the statements and serves the database, which has no feeds yet.
func newFixture(t *testing.T, statements ...string) fixture {
	t.Helper()
	pool := testdb.SQLite.New(t).OpenTapped(t, testdb.Hooks{})
	db, err := rowfeed.Open(t.Context(), pool, sqlite.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	x := fixture{sql: pool, db: db, server: serve(t, feedhttp.NewHandler(feedhttp.Of(db), &noHeartbeat))}
	for _, s := range statements {
		x.exec(t, s)
	}
	return x
}

func serve(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// stubCatalog serves one source for every name.
type stubCatalog struct{ source rowfeed.Source }

func (c stubCatalog) Names(context.Context) ([]string, error) { return []string{"kv"}, nil }
func (c stubCatalog) Source(context.Context, string) (rowfeed.Source, error) {
	return c.source, nil
}

// stubSource returns what the test sets.
type stubSource struct {
	fetch func(ctx context.Context, req rowfeed.Request) (rowfeed.Page, error)
	info  func(ctx context.Context) (*rowfeed.Info, error)
}

func (s stubSource) Fetch(ctx context.Context, req rowfeed.Request) (rowfeed.Page, error) {
	return s.fetch(ctx, req)
}
func (s stubSource) Info(ctx context.Context) (*rowfeed.Info, error) { return s.info(ctx) }

// failing is a source whose fetches fail.
func failing(err error) stubSource {
	return stubSource{
		fetch: func(context.Context, rowfeed.Request) (rowfeed.Page, error) { return rowfeed.Page{}, err },
		info:  func(context.Context) (*rowfeed.Info, error) { return nil, err },
	}
}

func handlerOf(source rowfeed.Source) http.Handler {
	return feedhttp.NewHandler(stubCatalog{source}, nil)
}

// pagesOf returns the page after each cursor.
func pagesOf(pages map[rowfeed.Cursor]rowfeed.Page) func(context.Context, rowfeed.Request) (rowfeed.Page, error) {
	return func(_ context.Context, req rowfeed.Request) (rowfeed.Page, error) { return pages[req.After], nil }
}

func problemOf(code string, status int) feedhttp.Problem {
	return feedhttp.Problem{Type: code, Status: status}
}
