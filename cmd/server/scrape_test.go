package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/metrics"
	"github.com/rowfeed/rowfeed/cmd/server"
	"github.com/rowfeed/rowfeed/dialect/sqlite"
)

// A server serves its counters by route and status. A path of a client is not a route.
func TestMetricsCountRequestsByRouteAndStatus(t *testing.T) {
	x := newFixture(t)
	m := metrics.New(&metrics.Config{Patience: time.Minute, Timeout: time.Minute})
	db, err := rowfeed.Open(t.Context(), x.sql, sqlite.New(),
		&rowfeed.Config{Observer: m.Observer(), PublisherLease: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	r := run(t, server.Config{DB: db, Publish: true, Metrics: m})
	x.exec(t, `INSERT INTO kv VALUES (1, 'a'), (2, 'b')`)
	r.waitEntries(t, 2)
	for path, route := range map[string]string{
		"/healthz": `"healthz",status="200"`, "/readyz": `"readyz",status="200"`, "/_feeds": `"list",status="200"`,
		"/_feeds/kv": `"info",status="200"`, "/_feeds/fetch/none": `"fetch",status="404"`,
		"/_feeds/made/up": `"other",status="404"`, "/made-up": `"other",status="404"`, "/": `"console",status="200"`,
		"/_feeds/fetch/kv?limit=x": `"fetch",status="400"`, "/_feeds/http-feeds/kv": `"http-feeds",status="200"`,
	} {
		r.get(t, path)
		body := ""
		await(t, func() bool { // an answer may arrive before it is counted
			_, body = r.get(t, "/metrics")
			return strings.Contains(body, "rowfeed_http_requests_total{route="+route+"} ")
		}, func() string { return path + ": there is no " + route + " in\n" + body })
	}
	_, body := r.get(t, "/metrics")
	for _, want := range []string{"rowfeed_up 1\n", "rowfeed_page_memory_bytes ",
		"rowfeed_page_memory_limit_bytes 6.7108864e+07\n", `rowfeed_head_position{feed="kv"} 2`,
		`rowfeed_publish_keys_total{feed="kv"} 2`, `rowfeed_publisher{feed="kv"} 1`,
		`rowfeed_fetched_entries_total{feed="kv",op="upsert"} `, `route="metrics",status="200"`, "go_goroutines ",
		"process_open_fds "} {
		if !strings.Contains(body, want) {
			t.Errorf("there is no %s in\n%s", want, body)
		}
	}
	resp, err := r.client.Post(r.url+"/metrics", "text/plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %s", resp.Status)
	}
}
