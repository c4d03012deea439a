package feedhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect/sqlite"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/internal/test/terms"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// pollFixture is a fixture whose handler and server the test configures. It counts the polls of the watcher, which
// polls only while requests wait.
type pollFixture struct {
	fixture
	feed    *rowfeed.Feed
	handler *feedhttp.Handler
	polls   *atomic.Int64
}

// newPollFixture has the feed kv with one entry, at position 1.
func newPollFixture(t *testing.T, cfg *feedhttp.Config, shape func(*httptest.Server)) pollFixture {
	t.Helper()
	polls := new(atomic.Int64)
	pool := testdb.SQLite.New(t).OpenTapped(t, testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
		if ev.Kind == testdb.Query && len(ev.SQL) > 8 && ev.SQL[:8] == "SELECT s" {
			polls.Add(1)
		}
		return nil
	}})
	db, err := rowfeed.Open(t.Context(), pool, sqlite.New(), &rowfeed.Config{WatchPoll: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if cfg == nil {
		cfg = &noHeartbeat
	}
	h := feedhttp.NewHandler(feedhttp.Of(db), cfg)
	s := httptest.NewUnstartedServer(h)
	if shape != nil {
		shape(s)
	}
	s.Config.RegisterOnShutdown(h.Close)
	s.Start()
	t.Cleanup(s.Close)
	x := pollFixture{fixture: fixture{sql: pool, db: db, server: s}, handler: h, polls: polls}
	x.exec(t, `CREATE TABLE kv (id INTEGER PRIMARY KEY, v TEXT)`)
	x.exec(t, `INSERT INTO kv VALUES (1, 'a')`)
	x.feed = x.addFeed(t, "kv")
	return x
}

// await blocks until the watcher has polled n more times.
func (x pollFixture) await(t *testing.T, n int64) {
	t.Helper()
	for until, give := x.polls.Load()+n, time.Now().Add(time.Minute); x.polls.Load() < until; {
		if runtime.Gosched(); time.Now().After(give) {
			t.Fatal("the watcher does not poll within a minute")
		}
	}
}

// later sends a request in the background.
func later(t *testing.T, s *httptest.Server, path string) <-chan answer {
	t.Helper()
	got := make(chan answer, 1)
	go func() { got <- ask(t, s, "GET", path) }()
	return got
}

// TestWaitReturnsTheNextEntry (M69): a waiting request is answered when the next entry comes, even if that takes
// longer than the server's timeout for reading a request.
func TestWaitReturnsTheNextEntry(t *testing.T) {
	x := newPollFixture(t, nil, func(s *httptest.Server) {
		s.Config.ReadHeaderTimeout = time.Hour // so that only ReadTimeout matters
		s.Config.ReadTimeout = time.Millisecond
	})
	got := later(t, x.server, "/_feeds/fetch/kv?after=1&wait=1m")
	x.await(t, 20) // polls are half a millisecond apart or more, so the server's timeout is over
	x.exec(t, `INSERT INTO kv VALUES (2, 'b')`)
	x.publish(t, x.feed)
	want := `{"feed":"kv","entries":[{"position":"2","shard":0,"op":"upsert","key":{"id":2},"row":{"id":2,` +
		`"v":"b"}}],"cursor":"2.9k3f2c7adq","more":false,"base64":[]}` + "\n"
	if a := <-got; a.status != 200 || terms.Fix(a.body) != want {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// TestClientWaitsAsRequested: a Client sends its wait to the server.
func TestClientWaitsAsRequested(t *testing.T) {
	x := newPollFixture(t, nil, nil)
	c := x.client("kv")
	c.Timeout = time.Nanosecond // in addition to the wait: it bounds requests that do not wait
	result := make(chan error, 1)
	go func() {
		page, err := c.Fetch(t.Context(), rowfeed.Request{After: "1", Wait: time.Hour})
		if err == nil && (len(page.Entries) != 1 || terms.Fix(string(page.Cursor)) != "2.9k3f2c7adq") {
			err = errors.New("got " + string(page.Cursor))
		}
		result <- err
	}()
	x.await(t, 2)
	x.exec(t, `INSERT INTO kv VALUES (2, 'b')`)
	c.Timeout = 0
	x.publish(t, x.feed)
	if err := <-result; err != nil {
		t.Error(err)
	}

}

// roundTrip is a server as a function.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestClientWaitsInParts: a wait longer than the server accepts is sent as several waits, each from the cursor of the
// previous one. A server that answers an empty page at once is not asked repeatedly.
func TestClientWaitsInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		waits := true
		c := &feedhttp.Client{URL: "http://server", Feed: "kv",
			HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				body := `{"name":"kv","columns":[],"key":[]}`
				if strings.HasPrefix(r.URL.Path, "/_feeds/fetch/") {
					asked = append(asked, r.URL.RawQuery)
					body = fmt.Sprintf(`{"entries":[],"cursor":"%d","more":false}`, len(asked))
					if waits {
						d, err := time.ParseDuration(r.URL.Query().Get("wait"))
						if err != nil {
							return nil, err
						}
						<-time.NewTimer(d).C // on the bubble's clock
					}
				}
				return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}},
					Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
			})}}
		page, err := c.Fetch(t.Context(), rowfeed.Request{After: "0", Wait: 2*feedhttp.MaxWait + time.Second})
		want := []string{"after=0&wait=1m0s", "after=1&wait=1m0s", "after=2&wait=1s"}
		if err != nil || page.Cursor != "3" || !slices.Equal(asked, want) {
			t.Errorf("asked for %q, answered %q, %v", asked, page.Cursor, err)
		}
		waits, asked = false, nil
		if page, err = c.Fetch(t.Context(), rowfeed.Request{Wait: time.Hour}); err != nil || page.Cursor != "1" {
			t.Errorf("asked for %q, answered %q, %v", asked, page.Cursor, err)
		}
		if _, err = c.Fetch(t.Context(), rowfeed.Request{Consistent: true, Wait: time.Hour}); err != nil ||
			asked[1] != "consistent=true&wait=1h0m0s" {
			t.Errorf("asked for %q, %v", asked, err) // the server refuses it
		}
	})
}

// TestWaitEndsOnClose: Close answers all waiting requests with the current page. Later requests do not wait.
func TestWaitEndsOnClose(t *testing.T) {
	x := newPollFixture(t, nil, nil)
	got := later(t, x.server, "/_feeds/fetch/kv?after=1&wait=1m")
	x.await(t, 1)
	x.handler.Close()
	want := `{"feed":"kv","entries":[],"cursor":"1.9k3f2c7adq","more":false,"base64":[]}` + "\n"
	select {
	case a := <-got:
		if a.status != 200 || terms.Fix(a.body) != want {
			t.Errorf("%d %s", a.status, a.body)
		}
	case <-time.After(30 * time.Second): // earlier than the wait ends by itself
		t.Fatal("it waits on")
	}
	if a := ask(t, x.server, "GET", "/_feeds/fetch/kv?after=1&wait=1m"); a.status != 200 || terms.Fix(a.body) != want {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// TestConsistentPublishesFirst (H14): consistent=true publishes what was written before. A server that must not
// publish refuses it.
func TestConsistentPublishesFirst(t *testing.T) {
	x := newPollFixture(t, nil, nil)
	x.exec(t, `INSERT INTO kv VALUES (2, 'b')`)
	if a := ask(t, x.server, "GET", "/_feeds/fetch/kv?after=1&consistent=false"); terms.Fix(a.body) !=
		`{"feed":"kv","entries":[],"cursor":"1.9k3f2c7adq","more":false,"base64":[]}`+"\n" {
		t.Errorf("%d %s", a.status, a.body)
	}
	want := `{"feed":"kv","entries":[{"position":"2","shard":0,"op":"upsert","key":{"id":2},"row":{"id":2,` +
		`"v":"b"}}],"cursor":"2.9k3f2c7adq","more":false,"base64":[]}` + "\n"
	if a := ask(t, x.server, "GET", "/_feeds/fetch/kv?after=1&consistent=true&wait=1m"); a.status != 200 ||
		terms.Fix(a.body) != want {
		t.Errorf("%d %s", a.status, a.body)
	}
	s := serve(t, feedhttp.NewHandler(feedhttp.Of(x.db), &feedhttp.Config{NoPublish: true}))
	checkProblem(t, ask(t, s, "GET", "/_feeds/fetch/kv?consistent=true"),
		invalidParameter("consistent", "does not publish"))

	lock := x.locked(t)
	a := ask(t, x.server, "GET", "/_feeds/fetch/kv?after=2&consistent=true&wait=50ms")
	checkProblem(t, a, feedhttp.Problem{Type: "not-consistent", Status: 503, Feed: "kv", Detail: "within 50ms",
		Next: "rowfeed status kv"})
	if a.header.Get("Retry-After") != "1" {
		t.Errorf("header %v", a.header)
	}
	lock()
}

// locked writes a row in a transaction that blocks all other writers, and returns a function that ends it.
func (x pollFixture) locked(t *testing.T) (unlock func()) {
	t.Helper()
	x.exec(t, `INSERT INTO kv VALUES (3, 'c')`)
	tx, err := x.sql.BeginTx(t.Context(), nil) // with the write lock
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
	}
}
