package main

import (
	"encoding/json"
	"net/http/httptest"
	"net/http/httputil"
	neturl "net/url"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/cmd/internal/protocoltest"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
)

// TestConformFindsBrokenServer: rowfeed's server passes, and for a server that ignores queries the command exits with
// an error.
func TestConformFindsBrokenServer(t *testing.T) {
	s := withFeed(t)
	url, end := s.serves()
	defer end()
	if out := s.ok("conform " + url); !strings.Contains(out, "2.5") || strings.Contains(out, "failed") {
		t.Error(out)
	}
	var results []protocoltest.Result
	if err := json.Unmarshal([]byte(s.ok("conform "+url+" --feed kv --json")), &results); err != nil ||
		len(results) < 40 {
		t.Errorf("%d results, %v", len(results), err)
	}
	behind, err := neturl.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	broken := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(behind)
		r.Out.URL.RawQuery = "" // this server ignores the query
	}})
	defer broken.Close()
	got := s.run("conform", broken.URL)
	if got.code != cli.ExitFailed || !strings.Contains(got.err, "checks failed") || !strings.Contains(got.out, "-> ") {
		t.Errorf("%+v", got)
	}
	if got := s.fails(cli.ExitFailed, "conform http://127.0.0.1:1"); !strings.Contains(got, "without /_feeds") {
		t.Error(got)
	}
	s.fails(cli.ExitUsage, "conform")
	s.fails(cli.ExitUsage, "conform "+url+" --token secret")
}
