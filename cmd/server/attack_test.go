package server_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/cmd/server"
)

// raw sends a request line without changes, which HTTP clients do not allow.
func raw(t *testing.T, r *running, target string) (*http.Response, string) {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c,
		"GET "+target+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("%q: %v", target, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%q: %v", target, err)
	}
	return resp, string(body)
}

// TestPathTricksReachNothingElse: no notation of a path leads to anything that its plain form does not, nor to another
// host.
func TestPathTricksReachNothingElse(t *testing.T) {
	x := newFixture(t)
	r := run(t, server.Config{DB: x.db, Publish: true})
	x.exec(t, `INSERT INTO kv VALUES (1, 'the-row')`)
	r.waitEntries(t, 1)
	for _, target := range []string{
		"/_feeds/fetch/..%2f..%2fetc%2fpasswd", "/_feeds/fetch/kv%00", "/_feeds/fetch/%6bv%2f",
		"/_feeds/fetch/kv/..;/other", "/_feeds/..;/_feeds/fetch/kv", "/_feeds/%2e%2e/%2e%2e/etc/passwd",
		"/_feeds//fetch//kv", "//_feeds/fetch/kv", "//evil.example/..", "/\\evil.example", "/%5cevil.example",
		"/_feeds/fetch%2fkv", "/_feeds%2ffetch%2fkv", "/_feeds/fetch/kv%0d%0aX-Injected:%20yes",
		"/_feeds/fetch/%f0%28%8c%28", "/_feeds/fetch/KV", "/_feeds/fetch/kv.json", "/_feeds/fetch/kv;v=1",
		"/_feeds/./fetch/./kv", "/_feeds/fetch/kv/", "/_feeds/_FETCH/kv", "/_feeds/stream/..%2fkv",
		"/_feeds/shards/..%2fkv", "/_console/..%2f..%2fgo.mod", "/_console/../server.go", "/_console/%2e%2e/console.go",
		"/_console//style.css", "/_console/", "/healthz/../_feeds", "/metrics%00", "/readyz/..%2f",
		"/" + strings.Repeat("../", 100) + "etc/passwd", "/" + strings.Repeat("%2e%2e%2f", 100) + "etc/passwd",
		"http://evil.example/_feeds/fetch/kv", "*", "/_feeds/fetch/kv#x", "/_feeds/fetch/" + strings.Repeat("k", 300),
	} {
		resp, body := raw(t, r, target)
		switch to := resp.Header.Get("Location"); {
		case resp.Header.Get("X-Injected") != "" || strings.Contains(body, "root:") ||
			strings.Contains(body, "package "):
			t.Errorf("%q: %s %s", target, resp.Status, body)
		case strings.Contains(body, "the-row"):
			t.Errorf("%q leads to the feed", target)
		case to != "" && (!strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.HasPrefix(to, "/\\")):
			t.Errorf("%q leads to %q", target, to)
		case to == "" && resp.StatusCode/100 != 4:
			t.Errorf("%q: %s", target, resp.Status)
		}
	}
}
