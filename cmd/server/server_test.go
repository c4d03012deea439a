package server_test

import (
	"bufio"
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/server"
	"github.com/rowfeed/rowfeed/internal/test/terms"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

func TestServerHasConsoleHealthAndFeeds(t *testing.T) {
	x := newFixture(t)
	r := run(t, server.Config{DB: x.db, Publish: true})
	x.exec(t, `INSERT INTO kv VALUES (1, 'a'), (2, 'b')`)
	r.waitEntries(t, 2)
	r.waitReasons(t)
	for path, want := range map[string]string{
		"/":                   `<a href="./feeds/kv">kv</a>`,
		"/feeds/kv":           `class="op upsert"`,
		"/_console/style.css": "--ground",
		"/_console/theme.js":  "use strict",
		"/healthz":            `{"alive":true}`,
		"/readyz":             `{"ready":true,"reasons":[]}`,
		"/_feeds":             `{"feeds":[{"name":"kv"`,
		"/_feeds/kv":          `"head":"2.9k3f2c7adq"`,
		"/_feeds/fetch/kv":    `"cursor":"2.9k3f2c7adq","more":false`,
	} {
		if status, body := r.get(t, path); status != 200 || !strings.Contains(terms.Fix(body), want) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	visited := time.Now().UnixMilli()
	var sample string // it may be a second old
	await(t, func() bool {
		_, sample = r.get(t, "/_console/sample?past")
		return strings.Contains(sample, `"feeds":[{"name":"kv","head":"2","waiting":0,`)
	}, func() string { return "the new head in " + sample })
	var plots struct{ Past []struct{ At int64 } }
	if err := json.Unmarshal([]byte(sample), &plots); err != nil || plots.Past[0].At >= visited {
		t.Errorf("there is no sample from before the visit: %v %s", err, sample)
	}
	for _, path := range []string{"/nothing", "/_feeds/nope"} {
		if status, _ := r.get(t, path); status != 404 {
			t.Errorf("%s: %d", path, status)
		}
	}
	for _, path := range []string{"/", "/healthz", "/readyz", "/_feeds"} {
		resp, err := r.client.Post(r.url+path, "text/plain", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 405 || resp.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("POST %s: %s", path, resp.Status)
		}
	}
	r.end(t)
	if _, err := r.feed().Fetch(t.Context(), rowfeed.Request{}); !errors.Is(err, rowfeed.Unavailable) {
		t.Errorf("after the end: %v", err)
	}
}

func TestPublishersFollowAddedAndDroppedFeeds(t *testing.T) {
	x := newFixture(t)
	r := run(t, server.Config{DB: x.db, Publish: true})
	x.exec(t, `INSERT INTO kv VALUES (1, 'a')`)
	r.waitEntries(t, 1)
	for range 3 {
		if err := x.db.DropFeed(t.Context(), "kv"); err != nil {
			t.Fatal(err)
		}
		if _, err := r.feed().Fetch(t.Context(), rowfeed.Request{}); !errors.Is(err, rowfeed.UnknownFeed) {
			t.Errorf("after the drop: %v", err)
		}
		x.addFeed(t)
		r.waitEntries(t, 1)
		r.waitReasons(t)
	}
	x.exec(t, `CREATE TABLE other (id INTEGER PRIMARY KEY)`)
	x.exec(t, `INSERT INTO other VALUES (1)`)
	f, err := x.db.AddFeed(t.Context(), rowfeed.FeedSpec{Name: "other", Table: "other"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := r.feed()
	c.Feed = "other"
	await(t, func() bool {
		p, err := c.Fetch(t.Context(), rowfeed.Request{})
		return err == nil && len(p.Entries) == 1
	}, f.State)
}

func TestServerWithoutPublishingRefusesConsistentReads(t *testing.T) {
	x := newFixture(t)
	r := run(t, server.Config{DB: x.db})
	x.exec(t, `INSERT INTO kv VALUES (1, 'a')`)
	r.waitReasons(t)
	if n, err := x.feed.Publish(t.Context()); n != 1 || err != nil { // no other publisher has
		t.Fatal(n, err)
	}
	r.waitEntries(t, 1)
	if status, body := r.get(t, "/_feeds/fetch/kv?consistent=true"); status != 400 ||
		!strings.Contains(body, `"parameter":"consistent"`) {
		t.Errorf("consistent, from a server that does not publish: %d %s", status, body)
	}
	x.exec(t, `DROP TRIGGER `+trigger(t, x))
	r.waitReasons(t, `feed "kv": `)
}

func trigger(t *testing.T, x *fixture) (name string) {
	t.Helper()
	err := x.sql.QueryRowContext(t.Context(),
		`SELECT name FROM sqlite_master WHERE type = 'trigger' ORDER BY name LIMIT 1`).Scan(&name)
	if err != nil {
		t.Fatal(err)
	}
	return `"` + name + `"`
}

func TestReadyzNamesProblemsOfFeeds(t *testing.T) {
	x := newFixture(t)
	r := run(t, server.Config{DB: x.db, Publish: true})
	r.waitReasons(t)

	x.exec(t, `DROP TRIGGER `+trigger(t, x))
	r.waitReasons(t, `feed "kv": `)
	if _, body := r.get(t, "/"); !strings.Contains(body, "problems-title") {
		t.Error("the console does not show the problem")
	}
	if _, err := x.feed.Admin().Upgrade(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.waitReasons(t)

	x.exec(t, `ALTER TABLE kv RENAME TO kv2`)
	r.waitReasons(t, `feed "kv": `, "is gone")
	x.exec(t, `ALTER TABLE kv2 RENAME TO kv`)
	if _, err := x.feed.Admin().Upgrade(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.waitReasons(t)

	x.hooks.Store(&testdb.Hooks{Before: func(context.Context, testdb.TapEvent) error {
		return errors.Join(driver.ErrBadConn, errDown)
	}})
	r.waitReasons(t, "check that the database runs")
	if _, body := r.get(t, "/readyz"); strings.Contains(body, "secret") {
		t.Errorf("it tells: %s", body)
	}
	if status, body := r.get(t, "/"); status != 503 || strings.Contains(body, "secret") {
		t.Errorf("console: %d %s", status, body)
	}
	if status, _ := r.get(t, "/healthz"); status != 200 {
		t.Errorf("the process lives, but /healthz says %d", status)
	}
	x.hooks.Store(&testdb.Hooks{})
	r.waitReasons(t)

	if err := x.db.DropFeed(t.Context(), "kv"); err != nil {
		t.Fatal(err)
	}
	r.waitReasons(t)
	if err := x.db.MigrateDown(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.waitReasons(t, "rowfeed init")
}

// A readiness request that waits for another request's hanging query ends at its own timeout.
func TestReadinessRequestsEndWhileDatabaseHangs(t *testing.T) {
	x := newFixture(t)
	r := run(t, server.Config{DB: x.db})
	hang := make(chan struct{})
	x.hooks.Store(&testdb.Hooks{Before: func(context.Context, testdb.TapEvent) error { <-hang; return nil }})
	asking := func() int { return strings.Count(stacks(), "server.(*health).reasons(") }
	ask := func(ctx context.Context) <-chan struct{} {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			req, _ := http.NewRequestWithContext(ctx, "GET", r.url+"/readyz", nil)
			if resp, err := r.client.Do(req); err == nil {
				resp.Body.Close()
			}
		}()
		return ended
	}
	first := ask(t.Context())
	await(t, func() bool { return asking() == 1 }, stacks)
	ctx, leave := context.WithCancel(t.Context())
	second := ask(ctx)
	await(t, func() bool { return asking() == 2 }, stacks)
	leave()
	<-second
	await(t, func() bool { return asking() == 1 }, stacks)
	x.hooks.Store(&testdb.Hooks{})
	close(hang)
	<-first
	r.waitReasons(t)
}

// Readiness requests that arrive at the same time share a check of the database.
func TestReadinessRequestsShareACheck(t *testing.T) {
	x := newFixture(t)
	r := run(t, server.Config{DB: x.db})
	r.waitReasons(t)
	hang := make(chan struct{})
	var looks atomic.Int64
	x.hooks.Store(&testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
		if strings.Contains(ev.SQL, "rowfeed_feeds") && !strings.Contains(ev.SQL, "rowfeed_sequences") {
			looks.Add(1)
			<-hang
		}
		return nil
	}})
	var all sync.WaitGroup
	ask := func() {
		all.Go(func() {
			if status, body := r.get(t, "/readyz"); status != 200 {
				t.Error(status, body)
			}
		})
	}
	ask()
	await(t, func() bool { return looks.Load() == 1 }, stacks)
	for range 30 {
		ask()
	}
	await(t, func() bool { return strings.Count(stacks(), "server.(*health).reasons(") == 31 }, stacks)
	close(hang)
	all.Wait()
	if n := looks.Load(); n > 15 { // two checks, and one for each request that came late
		t.Errorf("31 concurrent requests made %d checks", n)
	}
}

func stacks() string {
	text := make([]byte, 1<<20)
	return string(text[:runtime.Stack(text, true)])
}

// A publisher that gives up makes the server not ready, and is started again.
func TestPublisherIsStartedAgain(t *testing.T) {
	x := newFixture(t, "_pragma=synchronous(0)") // commits may be lost: publishers refuse
	x.exec(t, `INSERT INTO kv VALUES (1, 'a')`)
	var log logged
	r := run(t, server.Config{DB: x.db, Publish: true, Log: log.logger()})
	r.waitReasons(t, `feed "kv": its publisher stopped: `)
	await(t, func() bool { return strings.Count(log.String(), "publisher stopped") >= 3 }, log.String)
}

func TestRunningRequestFinishes(t *testing.T) {
	x := newFixture(t)
	x.exec(t, `INSERT INTO kv VALUES (1, 'a')`)
	r := run(t, server.Config{DB: x.db, Publish: true})
	r.waitEntries(t, 1)
	held := testdb.Hold(isPage)
	x.hooks.Store(&testdb.Hooks{Before: held.Before})
	got := make(chan string, 1)
	go func() {
		resp, err := r.client.Get(r.url + "/_feeds/fetch/kv")
		if err != nil {
			got <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		got <- fmt.Sprint(resp.StatusCode, " ", string(body), err)
	}()
	<-held.Reached
	r.stop()
	address := strings.TrimPrefix(r.url, "http://")
	await(t, func() bool { // no new connections
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
		}
		return err != nil
	}, func() string { return "it still accepts" })
	select {
	case err := <-r.ended:
		t.Fatalf("Run did not wait for the request: %v", err)
	default:
	}
	held.Release()
	if answer := <-got; !strings.HasPrefix(answer, `200 {"feed":"kv","entries":[{`) ||
		!strings.HasSuffix(answer, "}\n<nil>") {
		t.Error(answer)
	}
	r.end(t)
}

// TestWaitingRequestsDoNotDelayShutdown (M69): requests that wait for an entry do not delay the end of the server:
// streams end, waits are answered.
func TestWaitingRequestsDoNotDelayShutdown(t *testing.T) {
	x := newFixture(t)
	x.exec(t, `INSERT INTO kv VALUES (1, 'a')`)
	var log logged
	r := run(t, server.Config{DB: x.db, Publish: true, Log: log.logger()})
	r.waitEntries(t, 1)
	stream, err := r.client.Get(r.url + "/_feeds/stream/kv?after=1")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	got := make(chan string, 1)
	go func() {
		resp, err := r.client.Get(r.url + "/_feeds/fetch/kv?after=1&wait=1m")
		if err != nil {
			got <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		got <- fmt.Sprint(resp.StatusCode, " ", string(body), err)
	}()
	await(t, func() bool { // both wait
		stacks := make([]byte, 1<<20)
		return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "watch.(*Watcher).Wait(") == 2
	}, func() string { return "they do not wait" })
	r.end(t)
	if answer := terms.Fix(<-got); answer !=
		`200 {"feed":"kv","entries":[],"cursor":"1.9k3f2c7adq","more":false,"base64":[]}`+"\n<nil>" {
		t.Error(answer)
	}
	if _, err := io.ReadAll(stream.Body); err != nil {
		t.Errorf("the stream ended with %v", err)
	}
	if strings.Contains(log.String(), "cut off") {
		t.Error(log.String())
	}
}

// isPage recognizes the statement that reads a page.
func isPage(ev testdb.TapEvent) bool { return strings.Contains(ev.SQL, "tombstones_below, s.value") }

func TestRequestThatHangsIsCutOff(t *testing.T) {
	x := newFixture(t)
	var log logged
	r := run(t, server.Config{DB: x.db, ShutdownTimeout: time.Nanosecond, Log: log.logger()})
	held := testdb.Hold(isPage)
	x.hooks.Store(&testdb.Hooks{Before: held.Before})
	got := make(chan int, 1)
	go func() {
		resp, err := r.client.Get(r.url + "/_feeds/fetch/kv")
		if err != nil {
			got <- 0
			return
		}
		resp.Body.Close()
		got <- resp.StatusCode
	}()
	<-held.Reached
	r.end(t)
	if status := <-got; status != 0 && status != http.StatusServiceUnavailable {
		t.Errorf("the request was answered with %d", status)
	}
	if !strings.Contains(log.String(), "cut off") {
		t.Error(log.String())
	}
}

func TestBadListenAddressesAreRefused(t *testing.T) {
	x := newFixture(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	address := taken.Addr().String()
	err = server.Run(t.Context(), server.Config{DB: x.db, Listen: address})
	if !errors.Is(err, rowfeed.Failed) || !errors.Is(err, syscall.EADDRINUSE) ||
		!strings.Contains(err.Error(), address) ||
		!strings.Contains(err.Error(), "--listen 127.0.0.1:0") && !strings.Contains(err.Error(), "127.0.0.1:0") {
		t.Errorf("port in use: %v", err)
	}
	for _, bad := range []string{"8080", "localhost", "[::1", "a:b:c"} {
		if err := server.Run(t.Context(),
			server.Config{DB: x.db, Listen: bad}); !errors.Is(err, rowfeed.InvalidRequest) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if err := server.Run(t.Context(), server.Config{}); err == nil {
		t.Error("a server without a database runs")
	}
	for listen, warns := range map[string]bool{"127.0.0.1:0": false, "0.0.0.0:0": true, ":0": true} {
		var log logged
		run(t, server.Config{DB: x.db, Listen: listen, Everyone: true, Log: log.logger()}).end(t)
		if strings.Contains(log.String(), "NO AUTHENTICATION") != warns {
			t.Errorf("%s: %s", listen, log.String())
		}
	}
}

// The server does not read a header without a limit.
func TestLargeHeaderIsRefused(t *testing.T) {
	x := newFixture(t)
	r := run(t, server.Config{DB: x.db})
	c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// The server does not read all of it, and may close the connection while the client still sends. The answer
	// arrives.
	_, _ = io.WriteString(c,
		"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Large: "+strings.Repeat("x", 64<<10)+"\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 431 {
		t.Error(resp.Status)
	}
}
