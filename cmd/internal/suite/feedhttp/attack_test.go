package feedhttp_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// hostile are texts with a meaning for a database, its shell, a formatter or a template.
var hostile = []string{"' OR '1'='1", `" OR ""="`, "kv'; DROP TABLE kv; --", `kv"; DROP TABLE kv; --`,
	"kv`; DROP TABLE kv; -- ", "1; DELETE FROM kv", "1 UNION SELECT 1", "$1", "?", "%s%n", "\\'", "\x00", "kv\x00",
	"${jndi:x}", "{{.}}"}

// TestSQLInRequestsIsRefused: SQL in a path, a parameter or a header is refused, and does not change the database.
func TestSQLInRequestsIsRefused(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		t.Parallel()
		database := e.New(t)
		pool := database.OpenTapped(t, testdb.Hooks{})
		db, err := rowfeed.Open(t.Context(), pool, typed[e.Family].dialect, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		x := fixture{sql: pool, db: db, server: serve(t, feedhttp.NewHandler(feedhttp.Of(db), nil))}
		x.exec(t, `CREATE TABLE kv (id bigint NOT NULL PRIMARY KEY, v varchar(100))`)
		x.exec(t, `INSERT INTO kv VALUES (1, 'x')`)
		f := x.addFeed(t, "kv")
		x.publish(t, f)
		before := ask(t, x.server, "GET", "/_feeds/fetch/kv").body
		for _, text := range hostile {
			in := url.QueryEscape(text)
			var targets []string
			for _, path := range []string{"/_feeds/%s", "/_feeds/fetch/%s", "/_feeds/stream/%s", "/_feeds/shards/%s",
				"/_feeds/http-feeds/%s"} {
				targets = append(targets, strings.Replace(path, "%s", url.PathEscape(text), 1))
			}
			for _, parameter := range []string{"after", "limit", "shard", "shard_count", "wait", "consistent",
				"since"} {
				targets = append(targets, "/_feeds/fetch/kv?"+parameter+"="+in)
			}
			targets = append(targets, "/_feeds/fetch/kv?"+in+"=1", "/_feeds/fetch/kv?shard=0&shard_count="+in,
				"/_feeds/stream/kv?after="+in, "/_feeds/stream/kv?shard="+in, "/_feeds?"+in, "/_feeds/kv?x="+in)
			for _, target := range targets {
				if got := ask(t, x.server, "GET", target); got.status != 400 && got.status != 404 {
					t.Errorf("%s: %d %s", target, got.status, got.body)
				}
			}
			if strings.ContainsRune(text, 0) {
				continue // not a header that clients send
			}
			if got := ask(t, x.server, "GET", "/_feeds/stream/kv", "Last-Event-ID", text); got.status != 400 {
				t.Errorf("Last-Event-ID %q: %d %s", text, got.status, got.body)
			}
			if got := ask(t, x.server, "GET", "/_feeds/fetch/kv", "Accept", text); got.status != 406 {
				t.Errorf("Accept %q: %d %s", text, got.status, got.body)
			}
		}
		if after := ask(t, x.server, "GET", "/_feeds/fetch/kv").body; after != before {
			t.Errorf("before: %s\nafter: %s", before, after)
		}
	})
}
