package server_test

import (
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/cmd/access"
	"github.com/rowfeed/rowfeed/cmd/server"
	"github.com/rowfeed/rowfeed/feedhttp"
)

// TestStrangersSeeOnlyHealth: clients without a token learn whether the server lives and is ready, and what the
// protocol is. They learn nothing about feeds, their problems or metrics.
func TestStrangersSeeOnlyHealth(t *testing.T) {
	x := newFixture(t)
	x.exec(t, "INSERT INTO kv VALUES (1, 'secret')")
	tokens := access.NewTokens(x.db)
	r := run(t, server.Config{DB: x.db, Publish: true,
		Access: access.Identify(tokens, "/readyz", "/_feeds/openapi.json")})
	token := func(name, feed string) string {
		text, _, err := x.db.Admin().AddToken(t.Context(),
			admin.TokenSpec{Name: name, Grants: []access.Grant{{Right: access.Read, Feed: feed}}})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	reader := &feedhttp.Client{URL: r.url, Feed: "kv", HTTP: r.client, Token: token("reader", "kv")}
	await(t, func() bool {
		page, err := reader.Fetch(t.Context(), rowfeed.Request{})
		return err == nil && len(page.Entries) == 1
	}, func() string { return "the row" })
	for path, want := range map[string]int{
		"/healthz": 200, "/readyz": 200, "/_feeds": 401, "/_feeds/kv": 401, "/_feeds/fetch/kv": 401,
		"/_feeds/stream/kv": 401,
	} {
		if status, body := r.get(t, path); status != want || strings.Contains(body, "kv") ||
			strings.Contains(body, "reasons") {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if status, body := r.get(t, "/_feeds/openapi.json"); status != 200 || !strings.Contains(body, `"openapi"`) {
		t.Errorf("the OpenAPI description: %d %s", status, body)
	}
	for path, want := range map[string]int{
		"/healthz": 200, "/readyz": 200, "/_feeds/openapi.json": 200, "/_feeds": 401,
	} {
		if status, body := r.getAs(t, path, "of-another-server"); status != want || strings.Contains(body, "reasons") {
			t.Errorf("%s with the credentials of another server: %d %s", path, status, body)
		}
	}
	if _, body := r.get(t, "/"); strings.Contains(body, "kv") || strings.Contains(body, "secret") {
		t.Errorf("the console shows %s", body)
	}
	x.exec(t, "DROP TRIGGER "+x.trigger(t))
	for _, c := range []struct {
		token string
		tells bool
	}{{"", false}, {reader.Token, false}, {token("all", access.EveryFeed), true}} {
		status, body := r.getAs(t, "/readyz", c.token)
		if status != 503 || !strings.Contains(body, `"ready":false`) || strings.Contains(body, "trigger") != c.tells {
			t.Errorf("%v: %d %s", c.tells, status, body)
		}
	}
}

// trigger returns the name of one of the feed's triggers.
func (x *fixture) trigger(t *testing.T) (name string) {
	t.Helper()
	if err := x.sql.QueryRowContext(t.Context(),
		"SELECT name FROM sqlite_schema WHERE type = 'trigger' LIMIT 1").Scan(&name); err != nil {
		t.Fatal(err)
	}
	return name
}
