package access

import (
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/admin"
)

// TestRightsApplyToEveryFormat: a feed needs the right, and shows the view of the token, on every path and in every
// format. One token's answer is never given to another, by entity tag either.
func TestRightsApplyToEveryFormat(t *testing.T) {
	g := guard(t)
	g.exec("INSERT INTO kv VALUES ('acme', 'n', 'seen', 'hush'), ('evil', 'n', 'theirs', 'hush')")
	g.publish()
	view, other := acme(g, "acme", "kv"), g.token(admin.TokenSpec{Name: "other"}, "other")
	all := g.token(admin.TokenSpec{Name: "all"}, "kv")
	for _, path := range []string{"/_feeds/fetch/kv", "/_feeds/http-feeds/kv"} {
		batch := "Accept: application/cloudevents-batch+json"
		if status, _, _ := g.ask(path, batch); status != 401 {
			t.Errorf("%s without a token: %d", path, status)
		}
		if status, body, _ := g.ask(path, batch, bearing(other)); status != 403 || strings.Contains(body, "hush") {
			t.Errorf("%s with another feed's token: %d %s", path, status, body)
		}
		_, body, header := g.ask(path, batch, bearing(all))
		if !strings.Contains(body, "theirs") || !strings.Contains(body, "hush") ||
			!strings.Contains(header.Get("Vary"), "Authorization, Cookie") {
			t.Errorf("%s: %s %v", path, body, header)
		}
		status, body, _ := g.ask(path, batch, bearing(view), "If-None-Match: "+header.Get("ETag"))
		if status != 200 || !strings.Contains(body, "seen") || strings.Contains(body, "theirs") ||
			strings.Contains(body, "hush") || strings.Contains(body, "evil") {
			t.Errorf("%s in a view: %d %s", path, status, body)
		}
	}
}
