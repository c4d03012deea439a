package metrics_test

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/metrics"
	"github.com/rowfeed/rowfeed/dialect/sqlite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// fixture is a database with the table kv, its feed, and its metrics.
type fixture struct {
	t     *testing.T
	m     *metrics.Metrics
	sql   *sql.DB
	db    *rowfeed.DB
	feed  *rowfeed.Feed
	hooks atomic.Pointer[testdb.Hooks]
}

func newFixture(t *testing.T, cfg metrics.Config, spec rowfeed.FeedSpec) *fixture {
	t.Helper()
	cfg.WithoutProcess = true
	x := &fixture{t: t, m: metrics.New(&cfg)}
	x.hooks.Store(&testdb.Hooks{})
	x.sql = testdb.SQLite.New(t).OpenTapped(t,
		testdb.Hooks{Before: func(ctx context.Context, ev testdb.TapEvent) error {
			if before := x.hooks.Load().Before; before != nil {
				return before(ctx, ev)
			}
			return nil
		}})
	var err error
	x.db, err = rowfeed.Open(t.Context(), x.sql, sqlite.New(),
		&rowfeed.Config{Observer: x.m.Observer(), PublisherLease: time.Hour})
	x.must(err)
	_, err = x.db.Migrate(t.Context())
	x.must(err)
	x.exec(`CREATE TABLE kv (id INTEGER PRIMARY KEY, v TEXT)`)
	spec.Name, spec.Table = "kv", "kv"
	x.feed, err = x.db.AddFeed(t.Context(), spec, nil)
	x.must(err)
	x.m.Watch(t.Context(), x.db)
	return x
}

func (x *fixture) must(err error) {
	x.t.Helper()
	if err != nil {
		x.t.Fatal(err)
	}
}

func (x *fixture) exec(query string) {
	x.t.Helper()
	_, err := x.sql.ExecContext(x.t.Context(), query)
	x.must(err)
}

func (x *fixture) publish() {
	x.t.Helper()
	_, err := x.feed.Publish(x.t.Context())
	x.must(err)
}

func (x *fixture) fetch(after rowfeed.Cursor) rowfeed.Page {
	x.t.Helper()
	page, err := x.feed.Fetch(x.t.Context(), rowfeed.Request{After: after})
	x.must(err)
	return page
}

// value returns the value of the series of a metric with these labels, given as name=value. For a histogram it is the
// count. For a missing series it is -1.
func value(families []*dto.MetricFamily, name string, labels ...string) float64 {
	for _, f := range families {
		if f.GetName() != "rowfeed_"+name {
			continue
		}
		for _, series := range f.GetMetric() {
			if all := series.GetLabel(); has(all, labels) {
				switch {
				case series.Histogram != nil:
					return float64(series.Histogram.GetSampleCount())
				case series.Counter != nil:
					return series.Counter.GetValue()
				}
				return series.Gauge.GetValue()
			}
		}
	}
	return -1
}

func has(all []*dto.LabelPair, labels []string) bool {
	for _, want := range labels {
		name, text, _ := strings.Cut(want, "=")
		found := false
		for _, l := range all {
			found = found || l.GetName() == name && l.GetValue() == text
		}
		if !found {
			return false
		}
	}
	return true
}

func (x *fixture) gather() []*dto.MetricFamily {
	x.t.Helper()
	families, err := x.m.Registry().Gather()
	x.must(err)
	return families
}

// wants checks the value of a series.
func (x *fixture) wants(want float64, name string, labels ...string) {
	x.t.Helper()
	if got := value(x.gather(), name, labels...); got != want {
		x.t.Errorf("%s%v is %v, not %v", name, labels, got, want)
	}
}

// moves checks that the value of a series is above a number.
func (x *fixture) moves(above float64, name string, labels ...string) {
	x.t.Helper()
	if got := value(x.gather(), name, labels...); got <= above {
		x.t.Errorf("%s%v is %v, not above %v", name, labels, got, above)
	}
}

// await polls until done returns true. Only a test that hangs reaches the timeout.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for give := time.Now().Add(time.Minute); !done(); runtime.Gosched() {
		if time.Now().After(give) {
			t.Fatal("this did not happen in time: " + what)
		}
	}
}

// always reads the database for every scrape.
var always = metrics.Config{Every: 1, Patience: time.Minute, Timeout: time.Minute}

// TestPublishedAndPendingChangesAreCounted: publishing changes the metrics of the publisher and of the pending changes.
func TestPublishedAndPendingChangesAreCounted(t *testing.T) {
	x := newFixture(t, metrics.Config{Every: 1, Patience: time.Minute, Timeout: time.Minute, MaxBacklog: 3},
		rowfeed.FeedSpec{})
	x.wants(0, "pending_changes", "feed=kv")
	x.wants(0, "pending_oldest_seconds", "feed=kv")
	x.wants(0, "head_position", "feed=kv")
	x.wants(-1, "head_timestamp_seconds")
	x.exec(`INSERT INTO kv VALUES (1, 'a'), (2, 'b')`)
	x.exec(`UPDATE kv SET v = 'c' WHERE id = 1`)
	x.wants(3, "pending_changes", "feed=kv")
	x.moves(0, "pending_oldest_seconds", "feed=kv")
	x.exec(`DELETE FROM kv WHERE id = 2`)
	x.wants(3, "pending_changes", "feed=kv") // limited by MaxBacklog
	before := float64(time.Now().Add(-time.Minute).Unix())
	x.publish()
	x.wants(0, "pending_changes", "feed=kv")
	x.wants(2, "head_position", "feed=kv")
	x.moves(before, "head_timestamp_seconds", "feed=kv")
	x.wants(1, "publish_batches_total", "feed=kv")
	x.wants(4, "publish_changes_total", "feed=kv")
	x.wants(2, "publish_keys_total", "feed=kv")
	x.wants(1, "publish_batch_seconds", "feed=kv")
	x.wants(-1, "publisher")

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- x.feed.RunPublisher(ctx) }()
	await(t, "the publisher's turn", func() bool { return value(x.gather(), "publisher", "feed=kv") == 1 })
	x.wants(1, "leases", "kind=publish", "state=held")
	x.wants(1, "lease_epochs_total", "kind=publish")
	x.wants(1, "lease_terms_total", "kind=publish", "event=begun")
	other := metrics.New(&metrics.Config{WithoutProcess: true})
	db, err := rowfeed.Open(t.Context(), x.sql, sqlite.New(), &rowfeed.Config{Observer: other.Observer()})
	x.must(err)
	f, err := db.Feed(t.Context(), "kv")
	x.must(err)
	go func() { ended <- f.RunPublisher(ctx) }()
	await(t, "a second publisher that stands by", func() bool {
		families, _ := other.Registry().Gather()
		return value(families, "publisher", "feed=kv") == 0
	})
	stop()
	x.must(errors.Join(<-ended, <-ended))
}

// TestPagesAndWaitsAreCounted: pages read alone and shared, their entries, and waiting requests.
func TestPagesAndWaitsAreCounted(t *testing.T) {
	x := newFixture(t, always, rowfeed.FeedSpec{})
	x.exec(`INSERT INTO kv VALUES (1, 'a'), (2, 'b'), (3, 'c')`)
	x.publish()
	cursor := x.fetch("").Cursor
	x.exec(`DELETE FROM kv WHERE id = 2`)
	x.publish()
	x.exec(`DROP TRIGGER "` + x.trigger("delete") + `"`)
	x.exec(`DELETE FROM kv WHERE id = 3`)
	x.fetch(cursor)
	x.fetch("")
	x.wants(3, "fetches_total", "feed=kv", "kind=alone")
	x.wants(4, "fetched_entries_total", "feed=kv", "op=upsert")
	x.wants(1, "fetched_entries_total", "feed=kv", "op=delete")
	x.wants(1, "vanished_rows_total", "feed=kv")
	x.wants(3, "fetch_seconds", "feed=kv")
	x.wants(0, "waiting_readers", "feed=kv")

	// Readers at the head that ask for different pages share a read.
	for round := 0; value(x.gather(), "fetches_total", "feed=kv", "kind=shared") < 1; round++ {
		if round == 100 {
			t.Fatal("nobody shares")
		}
		cursor := x.fetch(rowfeed.Now).Cursor
		var readers sync.WaitGroup
		for limit := 1; limit <= 3; limit++ {
			readers.Go(func() {
				if _, err := x.feed.Fetch(t.Context(),
					rowfeed.Request{After: cursor, Limit: limit, Wait: time.Minute}); err != nil {
					t.Error(err)
				}
			})
		}
		await(t, "three who wait", func() bool { return value(x.gather(), "waiting_readers", "feed=kv") == 3 })
		x.exec(`UPDATE kv SET v = v || 'x'`)
		x.publish()
		readers.Wait()
		x.wants(0, "waiting_readers", "feed=kv")
	}
}

func (x *fixture) trigger(part string) (name string) {
	x.t.Helper()
	x.must(x.sql.QueryRowContext(x.t.Context(),
		`SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE '%' || ? || '%'`, part).Scan(&name))
	return name
}

// TestConsumedEntriesAndLagAreMeasured: what a consumer handles, its lag, and what it sets aside.
func TestConsumedEntriesAndLagAreMeasured(t *testing.T) {
	x := newFixture(t, always, rowfeed.FeedSpec{DataShards: 2})
	x.exec(`INSERT INTO kv VALUES (1, 'a'), (2, 'bad'), (3, 'c')`)
	x.publish()
	c := &rowfeed.Consumer{Name: "copy", Source: x.feed, DB: x.db, OnFailure: rowfeed.SetAside,
		Options: rowfeed.ConsumerOptions{Retry: rowfeed.Retry{MaxAttempts: 1, Backoff: 1, MaxBackoff: 1}},
		Handle: func(_ context.Context, _ *sql.Tx, entries []rowfeed.Entry) error {
			for _, e := range entries {
				if v, _ := e.Row.Get("v"); v == "bad" {
					return errors.New("a bad one")
				}
			}
			return nil
		}}
	x.must(c.RunOnce(t.Context()))
	ours := []string{"consumer=copy", "feed=kv"}
	x.wants(2, "consumed_entries_total", ours...)
	x.wants(1, "entries_set_aside_total", ours...)
	x.wants(0, "collapsed_entries_total", ours...)
	x.wants(1, "dead_letters", ours...)
	x.moves(0, "consume_seconds", ours...)
	x.moves(0, "troubles_total", "part=consumer", "code=failed")
	x.wants(0, "consumer_lag_entries", "consumer=copy", "feed=kv", "shard=0")
	x.wants(0, "consumer_lag_seconds", "consumer=copy", "feed=kv", "shard=0")
	x.exec(`UPDATE kv SET v = v || '2'`)
	x.publish()
	x.wants(3, "consumer_lag_entries", ours...)
	x.moves(0, "consumer_lag_seconds", ours...)
	x.must(c.RunOnce(t.Context()))
	x.wants(1, "collapsed_entries_total", ours...)
	x.wants(0, "consumer_paused_shards", ours...)
	_, err := x.db.Admin().PauseConsumer(t.Context(), rowfeed.ConsumerID{Consumer: "copy"})
	x.must(err)
	x.wants(1, "consumer_paused_shards", ours...)
	x.wants(0, "failing", ours...)
	x.wants(0, "failing", "feed=kv", "consumer=")

	// One of several shards rests, because its entry fails and must not be skipped.
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	several := &rowfeed.Consumer{Name: "several", Source: x.feed, DB: x.db, ShardCount: 2,
		Options: rowfeed.ConsumerOptions{Retry: c.Options.Retry, Lease: time.Hour},
		Handle: func(_ context.Context, _ *sql.Tx, entries []rowfeed.Entry) error {
			for _, e := range entries {
				if v, _ := e.Key.Get("id"); v == int64(2) {
					return errors.New("never")
				}
			}
			return nil
		}}
	go func() { ended <- several.Run(ctx) }()
	await(t, "a shard that rests", func() bool {
		all := x.gather()
		return value(all, "failing", "consumer=several", "feed=kv") == 1 &&
			value(all, "failing_attempts", "consumer=several", "feed=kv") >= 1
	})
	if age := value(x.gather(), "failing_seconds", "consumer=several", "feed=kv"); age < 0 {
		t.Errorf("fails for %v s", age)
	}
	await(t, "both shards' turns", func() bool { return value(x.gather(), "jobs_total", "event=begun") == 2 })
	x.moves(1, "leases", "kind=consumer", "state=held")
	stop()
	x.must(<-ended)
	x.moves(0, "jobs_total", "event=ended")
	x.wants(-1, "consumer_lag_entries", "shard=others")
	x.wants(0, "folded_series")
}

// TestLeaseClaimsAreCounted: claims that begin, are taken over and are lost.
func TestLeaseClaimsAreCounted(t *testing.T) {
	x := newFixture(t, always, rowfeed.FeedSpec{})
	claim, err := x.db.Lease("relay:kv:hook", time.Hour).TryAcquire(t.Context())
	x.must(err)
	x.wants(1, "lease_terms_total", "kind=relay", "event=begun")
	x.wants(1, "leases", "kind=relay", "state=held")
	x.exec(`UPDATE rowfeed_leases SET expires_at = 1`) // expire a lease of an hour
	x.wants(1, "leases", "kind=relay", "state=expired")
	if err := claim.Renew(t.Context()); !errors.Is(err, rowfeed.LeaseLost) {
		t.Error(err)
	}
	x.wants(1, "lease_terms_total", "kind=relay", "event=lost")
	claim, err = x.db.Lease("relay:kv:hook", time.Minute).TryAcquire(t.Context())
	x.must(err)
	x.wants(1, "lease_terms_total", "kind=relay", "event=taken_over")
	x.wants(1, "leases", "kind=relay", "state=held")
	x.wants(2, "lease_epochs_total", "kind=relay")
	x.must(claim.Release(t.Context()))
	x.wants(0, "leases", "kind=relay", "state=held")
	x.wants(1, "lease_terms_total", "kind=relay", "event=lost") // a release is not a loss
}

// busy is an error like those of SQLite's drivers.
type busy struct{}

func (busy) Error() string { return "busy" }
func (busy) Code() int     { return 5 }

func TestRetriedTransactionsAreCounted(t *testing.T) {
	x := newFixture(t, always, rowfeed.FeedSpec{})
	x.exec(`INSERT INTO kv VALUES (1, 'a')`)
	x.wants(0, "retries_total")
	var once sync.Once
	x.hooks.Store(&testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) (err error) {
		if ev.Kind == testdb.Commit {
			once.Do(func() { err = busy{} })
		}
		return err
	}})
	x.publish()
	x.wants(1, "retries_total")
}

// TestRequestsAreCountedByRouteAndStatus: requests by route and status, including those of a handler that aborts.
func TestRequestsAreCountedByRouteAndStatus(t *testing.T) {
	m := metrics.New(&metrics.Config{WithoutProcess: true})
	inside := make(chan float64, 1)
	h := m.Requests(func(r *http.Request) string {
		return strings.Trim(r.URL.Path, "/")
	}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		families, _ := m.Registry().Gather()
		inside <- value(families, "http_requests_open")
		switch r.URL.Path {
		case "/gone":
			w.WriteHeader(http.StatusGone)
		case "/broken":
			_, _ = w.Write([]byte("half"))
			panic(http.ErrAbortHandler)
		case "/stream":
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
		}
	}))
	for path, status := range map[string]string{"gone": "410", "broken": "200", "quiet": "200", "stream": "200"} {
		func() {
			defer func() { _ = recover() }()
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/"+path, nil))
		}()
		if open := <-inside; open != 1 {
			t.Errorf("%s: %v open", path, open)
		}
		families, err := m.Registry().Gather()
		if err != nil {
			t.Fatal(err)
		}
		if value(families, "http_requests_total", "route="+path, "status="+status) != 1 ||
			value(families, "http_request_seconds", "route="+path) != 1 ||
			value(families, "http_requests_open") != 0 {
			t.Errorf("%s: %v", path, families)
		}
	}
}

// TestNamesFollowPrometheusRules (O4): names and help texts follow Prometheus's rules.
func TestNamesFollowPrometheusRules(t *testing.T) {
	problems, err := testutil.GatherAndLint(everything(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}
