package protocoltest_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/cmd/internal/protocoltest"
)

// TestConcurrentWritesFailNoCheck writes before every fifth request, during each request that waits, and once between
// two requests that a check compares. Options.Tries lets that check repeat.
func TestConcurrentWritesFailNoCheck(t *testing.T) {
	pool, feed, h := newServer(t)
	requests, writes, compared := 0, 0, map[string]bool{}
	write := func() {
		writes++
		for _, change := range []string{
			`INSERT OR REPLACE INTO kv VALUES (? * 7 % 90, 'new', NULL)`, `DELETE FROM kv WHERE id = ? * 11 % 90`,
			`INSERT OR REPLACE INTO kv SELECT id, 'the first no more ' || ?, NULL FROM rowfeed_positions_kv ` +
				`WHERE feed_sync_id = (SELECT min(feed_sync_id) FROM rowfeed_positions_kv)`,
		} {
			if _, err := pool.Exec(change, writes); err != nil {
				t.Error(err)
			}
		}
		if _, err := feed.Publish(context.Background()); err != nil {
			t.Error(err)
		}
	}
	withWrites := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		between := ""
		if query := r.URL.Query(); r.Header.Get("If-None-Match") != "" {
			between = "tag"
		} else if strings.HasPrefix(query.Get("after"), "at:19") {
			between = "time"
		}
		if requests%5 == 0 || between != "" && !compared[between] {
			write()
		}
		compared[between] = true
		if !r.URL.Query().Has("wait") {
			h.ServeHTTP(w, r)
			return
		}
		done := make(chan struct{})
		go func() { defer close(done); write() }()
		h.ServeHTTP(w, r)
		<-done
	})
	for _, r := range run(t, withWrites, "kv") {
		if r.Result != protocoltest.Passed && r.Result != protocoltest.Untried {
			t.Errorf("%+v", r)
		}
	}
	if writes < 30 || !compared["tag"] || !compared["time"] {
		t.Errorf("%d writes happened, and these checks compared: %v", writes, compared)
	}
}
