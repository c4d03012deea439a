package access

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/dialect/sqlite"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
	"github.com/rowfeed/rowfeed/internal/test/testleaks"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// guarded is a database with the feeds kv, with the key (k, ns), and other, with the key id, behind tokens.
type guarded struct {
	*testing.T
	db     *rowfeed.DB
	tokens *Tokens
	server *httptest.Server
	exec   func(statements ...string)

	mu    sync.Mutex
	asked []testdb.TapEvent // queries for tokens
	away  bool              // the database fails these queries
	log   strings.Builder
}

func (g *guarded) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.log.Write(p)
}

// questions returns the number of queries for tokens.
func (g *guarded) questions() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.asked)
}

func guard(t *testing.T) *guarded {
	t.Helper()
	testleaks.None(t)
	g := &guarded{T: t}
	pool := testdb.SQLite.New(t).OpenTapped(t, testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
		if strings.Contains(ev.SQL, "rowfeed_tokens") {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.asked = append(g.asked, ev)
			if g.away {
				return &rowfeed.Error{Code: rowfeed.Unavailable, Cause: "the database is away"}
			}
		}
		return nil
	}})
	var err error
	if g.db, err = rowfeed.Open(t.Context(), pool, sqlite.New(),
		&rowfeed.Config{WatchPoll: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	if _, err = g.db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.exec = func(statements ...string) {
		t.Helper()
		for _, s := range statements {
			if _, err := pool.ExecContext(t.Context(), s); err != nil {
				t.Fatalf("%s: %v", s, err)
			}
		}
	}
	g.exec("CREATE TABLE kv (ns TEXT NOT NULL, k TEXT NOT NULL, v TEXT, secret TEXT, PRIMARY KEY (k, ns))",
		"CREATE TABLE other (id INTEGER PRIMARY KEY, v TEXT)",
		"INSERT INTO kv VALUES ('acme', 'a', '1', 'hush'), ('evil', 'b', '2', 'hush'), ('acme', 'c', '3', 'hush')",
		"INSERT INTO other VALUES (1, 'o')")
	for _, name := range []string{"kv", "other"} {
		if _, err := g.db.AddFeed(t.Context(), rowfeed.FeedSpec{Name: name, Table: name}, nil); err != nil {
			t.Fatal(err)
		}
	}
	g.publish()
	g.tokens = NewTokens(g.db)
	g.tokens.Trust = time.Hour
	h := feedhttp.NewHandler(Over(feedhttp.Of(g.db)), &feedhttp.Config{Heartbeat: time.Hour,
		Log: slog.New(slog.NewTextHandler(g, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	g.server = httptest.NewServer(Identify(g.tokens)(Required(h)))
	t.Cleanup(func() {
		h.Close()
		g.server.Close()
	})
	return g
}

func (g *guarded) publish() {
	g.Helper()
	for _, name := range []string{"kv", "other"} {
		f, err := g.db.Feed(g.Context(), name)
		if err == nil {
			_, err = f.Publish(g.Context())
		}
		if err != nil {
			g.Fatal(err)
		}
	}
}

// token creates a token that reads the feeds, with the other settings of spec.
func (g *guarded) token(spec admin.TokenSpec, feeds ...string) string {
	g.Helper()
	for _, feed := range feeds {
		spec.Grants = append(spec.Grants, Grant{Right: Read, Feed: feed})
	}
	text, _, err := g.db.Admin().AddToken(g.Context(), spec)
	if err != nil {
		g.Fatal(err)
	}
	return text
}

// ask sends a request and returns the answer.
func (g *guarded) ask(path string, headers ...string) (status int, body string, header http.Header) {
	g.Helper()
	resp := g.begin(path, headers...)
	if resp == nil {
		return 0, "", nil
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		g.Error(err)
	}
	return resp.StatusCode, string(data), resp.Header
}

// begin sends a request. Without an answer it reports an error of the test and returns nil, so that it may run in a
// goroutine.
func (g *guarded) begin(path string, headers ...string) *http.Response {
	g.Helper()
	ctx, cancel := context.WithTimeout(g.Context(), time.Minute) // only a test that hangs reaches this
	g.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "GET", g.server.URL+path, nil)
	if err != nil {
		g.Error(err)
		return nil
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Add(name, value)
	}
	resp, err := g.server.Client().Do(req)
	if err != nil {
		g.Error(err)
		return nil
	}
	return resp
}

func bearing(text string) string { return "Authorization: Bearer " + text }

// rows returns the body of a page.
func (g *guarded) rows(path, token string) string {
	g.Helper()
	status, body, _ := g.ask(path, bearing(token))
	if status != 200 {
		return fmt.Sprint(status)
	}
	return body
}

// await polls until done returns true. Only a test that hangs reaches the timeout.
func (g *guarded) await(what string, done func() bool) {
	g.Helper()
	for give := time.Now().Add(time.Minute); !done(); runtime.Gosched() {
		if time.Now().After(give) {
			g.Fatalf("this did not happen in time: %s", what)
		}
	}
}

// waiters returns the number of requests that wait with a token.
func (g *guarded) waiters() (n int) {
	g.tokens.mu.Lock()
	defer g.tokens.mu.Unlock()
	for _, some := range g.tokens.waiting {
		n += some
	}
	return n
}

// readUntil reads lines until one contains the text, and returns all of them.
func (g *guarded) readUntil(lines *bufio.Reader, text string) (all string) {
	g.Helper()
	for {
		line, err := lines.ReadString('\n')
		if all += line; strings.Contains(line, text) {
			return all
		}
		if err != nil {
			g.Fatalf("no %q in %s: %v", text, all, err)
		}
	}
}
