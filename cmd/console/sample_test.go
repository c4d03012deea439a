package console_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rowfeed/rowfeed/cmd/access"
	"github.com/rowfeed/rowfeed/cmd/console"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestCancelledSampleIsNotShared: what was found for a browser that went meanwhile is not all, and no
// other browser's; and for strangers the database is asked nothing.
func TestCancelledSampleIsNotShared(t *testing.T) {
	var hangUp atomic.Pointer[context.CancelFunc]
	var asked atomic.Int64
	pool := testdb.SQLite.New(t).OpenTapped(t, testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error {
		asked.Add(1)
		if end := hangUp.Load(); end != nil && strings.Contains(ev.SQL, "rowfeed_sequences") {
			(*end)()
		}
		return nil
	}})
	db := migrated(t, pool)
	exec(t, pool, `CREATE TABLE kv (id INTEGER PRIMARY KEY, v TEXT)`)
	exec(t, pool, `INSERT INTO kv VALUES (1, 'a')`)
	addFeed(t, db, "kv")
	h := console.NewHandler(feedhttp.Of(db), console.Of(db), &console.Config{Login: noToken})
	before := asked.Load()
	if r, _ := get(t, as(access.Identity{}, h), "/_console/sample"); r.StatusCode != 401 || asked.Load() != before {
		t.Errorf("%s, %d statements", r.Status, asked.Load()-before)
	}
	ctx, gone := context.WithCancel(access.With(t.Context(), access.Everyone()))
	hangUp.Store(&gone)
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", "/_console/sample", nil))
	if ctx.Err() == nil {
		t.Fatal("the request was not cancelled")
	}
	hangUp.Store(nil)
	if _, body := get(t, as(access.Everyone(), h),
		"/_console/sample"); !strings.Contains(body, `{"name":"kv","head":"1",`) {
		t.Error(body)
	}
}
