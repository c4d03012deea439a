package server_test

import (
	"cmp"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/access"
	"github.com/rowfeed/rowfeed/cmd/server"
)

// letsThrough is an authentication that accepts every client.
func letsThrough(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := access.Everyone()
		who.Name = cmp.Or(r.Header.Get("Who"), who.Name)
		next.ServeHTTP(w, r.WithContext(access.With(r.Context(), who)))
	})
}

// TestExposedServerNeedsAuthentication: a server that other machines can reach does not start without authentication,
// unless Everyone is set.
func TestExposedServerNeedsAuthentication(t *testing.T) {
	x := newFixture(t)
	for _, listen := range []string{"0.0.0.0:0", ":0", "[::]:0"} {
		err := refusal(t, server.Config{DB: x.db, Listen: listen})
		var e *rowfeed.Error
		if !errors.As(err, &e) || e.Code != rowfeed.InvalidRequest || e.Param != "listen" ||
			!strings.Contains(e.Next, "--auth none") {
			t.Errorf("%s: %v", listen, err)
		}
	}
	for _, cfg := range []server.Config{
		{DB: x.db, Listen: "0.0.0.0:0", Everyone: true},
		{DB: x.db, Listen: "0.0.0.0:0", Access: letsThrough},
		{DB: x.db, Listen: "127.0.0.1:0"},
		{DB: x.db, Listen: "[::1]:0"},
		{DB: x.db, Listen: "localhost:0"},
	} {
		run(t, cfg).end(t)
	}
}

// TestOtherHostsAreRefused: a page whose host name was made to resolve to this machine gets no data.
func TestOtherHostsAreRefused(t *testing.T) {
	x := newFixture(t)
	ask := func(r *running, host string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), "GET", r.url+"/_feeds", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		resp, err := r.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	named := server.Config{DB: x.db, Hosts: []string{"feeds.example"}}
	everywhere := server.Config{DB: x.db, Hosts: []string{"feeds.example"}, Listen: "0.0.0.0:0", Everyone: true}
	for _, c := range []struct {
		cfg  server.Config
		host string
		want int
	}{
		{server.Config{DB: x.db}, "127.0.0.1", 200},
		{server.Config{DB: x.db}, "localhost:8080", 200},
		{server.Config{DB: x.db}, "LOCALHOST", 200},
		{server.Config{DB: x.db}, "[::1]:99", 200},
		{server.Config{DB: x.db}, "127.9.9.9", 200},
		{server.Config{DB: x.db}, "evil.example", 421},
		{server.Config{DB: x.db}, "evil.example:8080", 421},
		{server.Config{DB: x.db}, "127.0.0.1.evil.example", 421},
		{server.Config{DB: x.db}, "localhost.evil.example", 421},
		{server.Config{DB: x.db}, "192.168.1.1", 421},
		{server.Config{DB: x.db}, "0.0.0.0", 421},
		{named, "Feeds.Example:80", 200},
		{named, "evil.example", 421},
		{server.Config{DB: x.db, Listen: "0.0.0.0:0", Everyone: true}, "anything.example", 200},
		{everywhere, "feeds.example", 200},
		{everywhere, "evil.example", 421},
	} {
		r := run(t, c.cfg)
		if got := ask(r, c.host); got != c.want {
			t.Errorf("Host: %s at %q with %v: %d, want %d", c.host, c.cfg.Listen, c.cfg.Hosts, got, c.want)
		}
		r.end(t)
	}
}
