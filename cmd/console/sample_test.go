package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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

// past returns the heads of a feed in the past that a visitor gets, and the age of the oldest one.
func past(t *testing.T, h http.Handler, feed string) (heads []string, since time.Duration) {
	t.Helper()
	_, body := get(t, h, "/_console/sample?past")
	var answer struct {
		Past []struct {
			At    int64
			Feeds []struct{ Name, Head string }
		}
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatal(err, body)
	}
	for _, p := range answer.Past {
		for _, f := range p.Feeds {
			if f.Name == feed {
				heads = append(heads, f.Head)
			}
		}
	}
	if len(answer.Past) > 0 {
		since = time.Since(time.UnixMilli(answer.Past[0].At)).Round(time.Second)
	}
	return heads, since
}

// TestPlotsHaveAPast: a visitor gets samples of the last 15 minutes, one for each 10 seconds, of the feeds that it may
// see, whether or not anybody has visited before.
func TestPlotsHaveAPast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, db := open(t)
		exec(t, pool, `CREATE TABLE kv (id INTEGER PRIMARY KEY, v TEXT)`)
		f := addFeed(t, db, "kv")
		exec(t, pool, `CREATE TABLE secret (id INTEGER PRIMARY KEY)`)
		addFeed(t, db, "secret")
		h := console.NewHandler(feedhttp.Of(db), console.Of(db), nil)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go h.Run(ctx)
		for i := range 3 {
			<-time.After(5 * time.Second)
			exec(t, pool, `INSERT INTO kv VALUES (?, 'a')`, i)
			publish(t, f)
			<-time.After(5 * time.Second)
		}
		<-time.After(time.Second)
		reader := as(may("read kv"), h)
		if heads, since := past(t, reader, "kv"); fmt.Sprint(heads) != "[0 1 2 3]" || since != 31*time.Second {
			t.Errorf("after half a minute: %v, since %s", heads, since)
		}
		if heads, _ := past(t, reader, "secret"); len(heads) > 0 {
			t.Errorf("a token for another feed gets %v", heads)
		}
		<-time.After(time.Hour)
		if heads, since := past(t, reader, "kv"); len(heads) != 91 || since > 15*time.Minute+time.Second {
			t.Errorf("after an hour: %d samples, since %s", len(heads), since)
		}
		if _, body := get(t, reader, "/_console/sample"); strings.Contains(body, "past") {
			t.Errorf("without the parameter: %s", body)
		}
	})
}
