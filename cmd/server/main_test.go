package server_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/server"
	"github.com/rowfeed/rowfeed/dialect/sqlite"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
	"github.com/rowfeed/rowfeed/internal/test/testleaks"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// fixture is a database with the table kv and its feed.
type fixture struct {
	database *testdb.Database
	sql      *sql.DB
	db       *rowfeed.DB
	feed     *rowfeed.Feed
	hooks    atomic.Pointer[testdb.Hooks] // may be set at any time
}

func newFixture(t *testing.T, params ...string) *fixture {
	t.Helper()
	testleaks.None(t) // checks after everything below is closed
	x := &fixture{database: testdb.SQLite.New(t)}
	x.hooks.Store(&testdb.Hooks{})
	x.sql = x.database.OpenTapped(t, testdb.Hooks{Before: func(ctx context.Context, ev testdb.TapEvent) error {
		if before := x.hooks.Load().Before; before != nil {
			return before(ctx, ev)
		}
		return nil
	}}, params...)
	var err error
	if x.db, err = rowfeed.Open(t.Context(), x.sql, sqlite.New(),
		&rowfeed.Config{PublisherLease: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if _, err = x.db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	x.exec(t, `CREATE TABLE kv (id INTEGER PRIMARY KEY, v TEXT)`)
	x.addFeed(t)
	return x
}

func (x *fixture) addFeed(t *testing.T) {
	t.Helper()
	var err error
	if x.feed, err = x.db.AddFeed(t.Context(), rowfeed.FeedSpec{Name: "kv", Table: "kv"}, nil); err != nil {
		t.Fatal(err)
	}
}

func (x *fixture) exec(t *testing.T, query string) {
	t.Helper()
	if _, err := x.sql.ExecContext(t.Context(), query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// running is a server that runs in the background.
type running struct {
	url    string
	client *http.Client
	stop   context.CancelFunc
	ended  <-chan error
}

// run starts a server and waits until it answers. The end of the test stops it. Timeouts are a minute unless cfg sets
// them, because a busy machine may need seconds for anything.
func run(t *testing.T, cfg server.Config) *running {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	if cfg.Listen == "" {
		cfg.Listen = "127.0.0.1:0"
	}
	if cfg.DiscoverEvery == 0 {
		cfg.DiscoverEvery = time.Millisecond
	}
	if cfg.VerifyEvery == 0 {
		cfg.VerifyEvery = 1 // 1 ns: verify every time
	}
	if cfg.ShutdownTimeout == 0 {
		cfg.ShutdownTimeout = time.Minute
	}
	cfg = cfg.WithReadyTimeout(time.Minute)
	address, ended := make(chan string, 1), make(chan error, 1)
	cfg.Ready = func(a string) { address <- a }
	go func() { ended <- server.Run(ctx, cfg) }()
	r := &running{client: &http.Client{Transport: &http.Transport{}}, stop: stop, ended: ended}
	t.Cleanup(func() { r.end(t) })
	select {
	case a := <-address:
		r.url = "http://" + a
	case err := <-ended:
		t.Fatalf("the server ended: %v", err)
	}
	return r
}

// refusal returns the error of a server that must not start.
func refusal(t *testing.T, cfg server.Config) error {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	cfg.Ready = func(address string) {
		t.Errorf("it serves at %s", address)
		stop()
	}
	return server.Run(ctx, cfg)
}

// end stops the server. A second call does nothing.
func (r *running) end(t *testing.T) {
	r.stop()
	if r.ended != nil {
		if err := <-r.ended; err != nil {
			t.Errorf("Run: %v", err)
		}
		r.ended = nil
	}
	r.client.CloseIdleConnections()
}

func (r *running) feed() *feedhttp.Client {
	return &feedhttp.Client{URL: r.url, Feed: "kv", HTTP: r.client}
}

func (r *running) get(t *testing.T, path string) (status int, body string) {
	t.Helper()
	return r.getAs(t, path, "")
}

// getAs sends a request with a token, unless it is empty.
func (r *running) getAs(t *testing.T, path, token string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", r.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// readiness requests /readyz, and checks that its status and its body agree.
func (r *running) readiness(t *testing.T) (reasons []string) {
	t.Helper()
	status, body := r.get(t, "/readyz")
	var answer struct {
		Ready   bool
		Reasons []string
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatal(err)
	}
	if answer.Ready != (len(answer.Reasons) == 0) || (status == 200) != answer.Ready || answer.Reasons == nil {
		t.Fatalf("status %d, %s", status, body)
	}
	return answer.Reasons
}

func (r *running) waitReasons(t *testing.T, want ...string) (got []string) {
	t.Helper()
	await(t, func() bool {
		got = r.readiness(t)
		text := strings.Join(got, "\n")
		for _, w := range want {
			if !strings.Contains(text, w) {
				return false
			}
		}
		return len(want) > 0 || len(got) == 0
	}, func() string { return "reasons " + strings.Join(got, "\n") })
	return got
}

// waitEntries reads the feed until it has n entries.
func (r *running) waitEntries(t *testing.T, n int) {
	t.Helper()
	var page rowfeed.Page
	var err error
	await(t, func() bool {
		page, err = r.feed().Fetch(t.Context(), rowfeed.Request{})
		return err == nil && len(page.Entries) == n
	}, func() string { return rowfeedString(page, err) })
}

func rowfeedString(page rowfeed.Page, err error) string {
	if err != nil {
		return err.Error()
	}
	data, _ := json.Marshal(page.Entries)
	return string(data)
}

// await polls until done returns true. Only a test that hangs reaches the timeout.
func await(t *testing.T, done func() bool, state func() string) {
	t.Helper()
	for give := time.Now().Add(time.Minute); !done(); runtime.Gosched() {
		if time.Now().After(give) {
			t.Fatalf("this did not happen in time: %s", state())
		}
	}
}

// logged collects log lines.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

var errDown = errors.New("password=secret: connection refused")
