package server

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/rowfeed/rowfeed/cmd/access"
)

// Metrics name every feed, so a client needs the right to read every feed.
func TestMetricsAreNotForStrangers(t *testing.T) {
	h := scrape(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("secret")) }))
	for who, want := range map[*access.Identity]int{
		{}: 401,
		{Name: "a", Grants: []access.Grant{{Right: access.Read, Feed: "kv"}}}:                   403,
		{Name: "a", Grants: []access.Grant{{Right: access.Administer, Feed: access.EveryFeed}}}: 403,
		{Name: "a", Grants: []access.Grant{{Right: access.Read, Feed: access.EveryFeed}}}:       200,
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/metrics", nil)
		h(w, r.WithContext(access.With(r.Context(), *who)))
		if want != 200 && w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%+v: %v", who, w.Header())
		}
		if w.Code != want || (want != 200) == (w.Body.String() == "secret") {
			t.Errorf("%+v: %d %s", who, w.Code, w.Body)
		}
	}
}
