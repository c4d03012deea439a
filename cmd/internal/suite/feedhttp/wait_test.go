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
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// looking is a fixture whose handler and server the test configures, and which counts
// the looks of the watcher: when there are any, somebody waits.
type looking struct {
	fixture
	feed    *rowfeed.Feed
	handler *feedhttp.Handler
	looks   *atomic.Int64
}

// newLooking has the feed kv with one entry, at position 1.
func newLooking(t *testing.T, cfg *feedhttp.Config, shape func(*httptest.Server)) looking {
	t.Helper()
	looks := new(atomic.Int64)
	pool := testdb.SQLite.New(t).OpenTapped(t, testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
		if ev.Kind == testdb.Query && len(ev.SQL) > 8 && ev.SQL[:8] == "SELECT s" {
			looks.Add(1)
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
		cfg = &unbeaten
	}
	h := feedhttp.NewHandler(feedhttp.Of(db), cfg)
	s := httptest.NewUnstartedServer(h)
	if shape != nil {
		shape(s)
	}
	s.Config.RegisterOnShutdown(h.Close)
	s.Start()
	t.Cleanup(s.Close)
	x := looking{fixture: fixture{sql: pool, db: db, server: s}, handler: h, looks: looks}
	x.exec(t, `CREATE TABLE kv (id INTEGER PRIMARY KEY, v TEXT)`)
	x.exec(t, `INSERT INTO kv VALUES (1, 'a')`)
	x.feed = x.addFeed(t, "kv")
	return x
}

// await blocks until the watcher has looked n times more.
func (x looking) await(t *testing.T, n int64) {
	t.Helper()
	for until, give := x.looks.Load()+n, time.Now().Add(time.Minute); x.looks.Load() < until; {
		if runtime.Gosched(); time.Now().After(give) {
			t.Fatal("nobody waits")
		}
	}
}

// later runs a request in the background.
func later(t *testing.T, s *httptest.Server, path string) <-chan answer {
	t.Helper()
	got := make(chan answer, 1)
	go func() { got <- ask(t, s, "GET", path) }()
	return got
}

// TestWaitReturnsTheNextEntry (M69): a request that waits is answered with the entry when it comes, also when that
// takes longer than the server allows a client to send its request.
func TestWaitReturnsTheNextEntry(t *testing.T) {
	x := newLooking(t, nil, func(s *httptest.Server) {
		s.Config.ReadHeaderTimeout = time.Hour // a header has all the time that it needs here
		s.Config.ReadTimeout = time.Millisecond
	})
	got := later(t, x.server, "/_feeds/fetch/kv?after=1&wait=1m")
	x.await(t, 20) // half a millisecond apart or more: the server's bound is long past
	x.exec(t, `INSERT INTO kv VALUES (2, 'b')`)
	x.publish(t, x.feed)
	want := `{"feed":"kv","entries":[{"position":"2","shard":0,"op":"upsert","key":{"id":2},"row":{"id":2,` +
		`"v":"b"}}],"cursor":"2","more":false,"base64":[]}` + "\n"
	if a := <-got; a.status != 200 || a.body != want {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// The client passes its wait on, in parts that the server takes.
func TestClientWaitsAsRequested(t *testing.T) {
	x := newLooking(t, nil, nil)
	c := x.client("kv")
	c.Timeout = time.Nanosecond // beyond the wait: it bounds a request that does not wait
	result := make(chan error, 1)
	go func() {
		page, err := c.Fetch(t.Context(), rowfeed.Request{After: "1", Wait: time.Hour})
		if err == nil && (len(page.Entries) != 1 || page.Cursor != "2") {
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

// What is longer than a server takes is waited for in parts, which go on where the last
// one ended; a server that answers an empty page at once is not asked again and again.
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
						<-time.NewTimer(d).C // of the bubble
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
			t.Errorf("asked for %q, %v", asked, err) // for the server to refuse
		}
	})
}

// Close ends every wait with the page that there is; later ones do not wait.
func TestWaitEndsOnClose(t *testing.T) {
	x := newLooking(t, nil, nil)
	got := later(t, x.server, "/_feeds/fetch/kv?after=1&wait=1m")
	x.await(t, 1)
	x.handler.Close()
	want := `{"feed":"kv","entries":[],"cursor":"1","more":false,"base64":[]}` + "\n"
	select {
	case a := <-got:
		if a.status != 200 || a.body != want {
			t.Errorf("%d %s", a.status, a.body)
		}
	case <-time.After(30 * time.Second): // before the wait ends by itself
		t.Fatal("it waits on")
	}
	if a := ask(t, x.server, "GET", "/_feeds/fetch/kv?after=1&wait=1m"); a.status != 200 || a.body != want {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// TestConsistentPublishesFirst (H14): consistent=true publishes what was written; a server that must not publish
// refuses it.
func TestConsistentPublishesFirst(t *testing.T) {
	x := newLooking(t, nil, nil)
	x.exec(t, `INSERT INTO kv VALUES (2, 'b')`)
	if a := ask(t, x.server, "GET",
		"/_feeds/fetch/kv?after=1&consistent=false"); a.body != `{"feed":"kv","entries":[],"cursor":"1",`+
		`"more":false,"base64":[]}`+"\n" {
		t.Errorf("%d %s", a.status, a.body)
	}
	want := `{"feed":"kv","entries":[{"position":"2","shard":0,"op":"upsert","key":{"id":2},"row":{"id":2,` +
		`"v":"b"}}],"cursor":"2","more":false,"base64":[]}` + "\n"
	if a := ask(t, x.server, "GET", "/_feeds/fetch/kv?after=1&consistent=true&wait=1m"); a.status != 200 ||
		a.body != want {
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

// locked writes a row, keeps all other writers out, and gives the way to let them in.
func (x looking) locked(t *testing.T) (unlock func()) {
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
