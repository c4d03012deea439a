package metrics_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowfeed/rowfeed"
)

// everything returns a registry in which every metric has a series.
func everything(t *testing.T) *prometheus.Registry {
	t.Helper()
	x := newFixture(t, always, rowfeed.FeedSpec{})
	x.exec(`INSERT INTO kv VALUES (1, 'a')`)
	x.publish()
	cursor := x.fetch("").Cursor
	x.exec(
		`INSERT INTO rowfeed_cursors (consumer, feed, shard, shard_count, value, generation, epoch, version, paused,
			updated_at)
		VALUES ('copy', 'kv', 0, 1, '` + string(cursor) + `', 1, 0, 0, 0, 0)`,
	)
	_, err := x.db.Lease("publish:kv", time.Minute).TryAcquire(t.Context())
	x.must(err)
	o := x.m.Observer()
	o.Skipped(rowfeed.SkipEvent{Feed: "kv", Rows: 1})
	o.Consumed(rowfeed.ConsumeEvent{Consumer: "copy", Feed: "kv", Entries: 1})
	o.SetAside(rowfeed.SetAsideEvent{Consumer: "copy", Feed: "kv"})
	o.Lease(rowfeed.LeaseEvent{Feed: "kv", Stalled: true})
	o.Lease(rowfeed.LeaseEvent{Feed: "kv", Mine: true})
	o.Job(rowfeed.JobEvent{Kind: rowfeed.JobBegun})
	o.Trouble(rowfeed.TroubleEvent{Feed: "kv", Err: errors.New("what")})
	x.m.WatchPages(func() (inUse, limit int, refused int64) { return 1 << 10, 64 << 20, 3 })
	x.m.Requests(func(*http.Request) string { return "fetch" }, http.NotFoundHandler()).
		ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/_feeds/fetch/kv", nil))
	return x.m.Registry()
}
