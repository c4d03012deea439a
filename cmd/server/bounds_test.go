package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed/cmd/server"
)

// follow opens a stream and returns its status. leave ends the stream.
func (r *running) follow(t *testing.T, who string) (status int, leave func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "GET", r.url+"/_feeds/stream/kv", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Who", who)
	resp, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 200 {
		resp.Body.Close()
		cancel()
	}
	return resp.StatusCode, func() { cancel(); resp.Body.Close() }
}

// TestNumberOfWaitingRequestsIsLimited: requests above the limits may not wait, but may read. When a waiting request
// ends, another may wait.
func TestNumberOfWaitingRequestsIsLimited(t *testing.T) {
	x := newFixture(t)
	r := run(t, server.Config{DB: x.db, Access: letsThrough, Limits: server.Limits{Waiting: 2, WaitingPerClient: 1}})
	waits := func(who string) int {
		status, leave := r.follow(t, who)
		if status == 200 {
			t.Cleanup(leave)
		}
		return status
	}
	first, leave := r.follow(t, "a")
	if second := waits("a"); first != 200 || second != 429 {
		t.Errorf("one client: %d and %d", first, second)
	}
	if status := waits("b"); status != 200 {
		t.Errorf("another client: %d", status)
	}
	if status := waits("c"); status != 503 {
		t.Errorf("a third client: %d", status)
	}
	for _, path := range []string{
		"/_feeds/fetch/kv?wait=1ms", "/_feeds/http-feeds/kv?timeout=1", "/_feeds/shards/kv?wait=1ms",
	} {
		if status, body := r.get(t, path); status != 503 || !strings.Contains(body, "urn:rowfeed:problem:overloaded") {
			t.Errorf("%s, which waits: %d %s", path, status, body)
		}
	}
	if status, body := r.get(t, "/_feeds/fetch/kv"); status != 200 {
		t.Errorf("a page that does not wait: %d %s", status, body)
	}
	leave()
	await(t, func() bool { return waits("c") == 200 }, func() string { return "no waiting request may follow" })
}

// TestConnectionsAreBounded: connections above the limit are closed at once. When a connection ends, another may be
// opened.
func TestConnectionsAreBounded(t *testing.T) {
	x := newFixture(t)
	var log logged
	r := run(t, server.Config{DB: x.db, Limits: server.Limits{Connections: 2}, Log: log.logger()})
	address := strings.TrimPrefix(r.url, "http://")
	answers := func(c net.Conn) bool {
		fmt.Fprintf(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
		}
		return err == nil
	}
	dial := func() net.Conn {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	a, b := dial(), dial()
	if !answers(a) || !answers(b) {
		t.Fatal("two connections are too many")
	}
	for range 3 {
		if answers(dial()) {
			t.Error("a third connection is served")
		}
	}
	if !answers(a) {
		t.Error("those that are there were closed")
	}
	if n := strings.Count(log.String(), "was closed at once"); n != 1 {
		t.Errorf("the refusal is logged %d times: %s", n, log.String())
	}
	b.Close()
	await(t, func() bool {
		c := dial()
		defer c.Close()
		return answers(c)
	}, func() string { return "no waiting request may follow" })
}

// silent sends the beginning of a request and nothing more. It returns what the server sent before it closed the
// connection. The test is that the server closes it: nothing else ends the read.
func silent(t *testing.T, r *running, beginning string) string {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, beginning); err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(c) // a reset ends the connection, too
	return string(answer)
}

// TestSlowRequestsAreCutOff: the server does not wait for a header or a body that never ends. A complete header has
// unlimited time here, so that its answer does not depend on the machine.
func TestSlowRequestsAreCutOff(t *testing.T) {
	x := newFixture(t)
	header := run(t, server.Config{DB: x.db, Limits: server.Limits{HeaderTimeout: time.Millisecond}})
	for _, beginning := range []string{
		"",
		"G",
		"GET /_feeds HTTP/1.1\r\nHost: l",
		"GET /_feeds HTTP/1.1\r\nHost: localhost\r\nX-A: b\r\n",
	} {
		if got := silent(t, header, beginning); strings.HasPrefix(got, "HTTP/1.1 2") {
			t.Errorf("%q: %q", beginning, got)
		}
	}
	body := run(t,
		server.Config{DB: x.db, Limits: server.Limits{HeaderTimeout: time.Hour, BodyTimeout: time.Millisecond}})
	for beginning, want := range map[string]string{
		"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nx":                   "HTTP/1.1 405",
		"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx":      "HTTP/1.1 405",
		"GET /_feeds HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nx":              "HTTP/1.1 413",
		"GET /_feeds HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nx": "HTTP/1.1 413",
		// ambiguous length
		"GET /_feeds HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n": "HTTP/1.1 400",
	} {
		if got := silent(t, body, beginning); !strings.HasPrefix(got, want) {
			t.Errorf("%q: %q", beginning, got)
		}
	}
}

// TestSlowTLSHandshakesAreCutOff: the server does not wait for a TLS handshake that never ends.
func TestSlowTLSHandshakesAreCutOff(t *testing.T) {
	x := newFixture(t)
	s := runSecured(t, x, server.Config{Limits: server.Limits{HeaderTimeout: time.Millisecond}})
	s.url = "http" + strings.TrimPrefix(s.url, "https")
	for _, beginning := range []string{"", "\x16\x03\x01\x02\x00\x01"} {
		if got := silent(t, s.running, beginning); strings.Contains(got, "HTTP") {
			t.Errorf("%q: %q", beginning, got)
		}
	}
}
