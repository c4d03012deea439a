package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/metrics"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// A scrape does not hang with the database, and reports that the database is unavailable.
func TestScrapeOfAHangingDatabase(t *testing.T) {
	x := newFixture(t, metrics.Config{Every: 1, Patience: time.Minute, Timeout: time.Minute}, rowfeed.FeedSpec{})
	x.wants(1, "up")
	hanging := metrics.New(&metrics.Config{Every: 1, Patience: time.Millisecond, Timeout: time.Hour,
		WithoutProcess: true})
	var asked, hangs atomic.Int64
	x.hooks.Store(&testdb.Hooks{Before: func(ctx context.Context, _ testdb.TapEvent) error {
		asked.Add(1)
		hangs.Add(1)
		defer hangs.Add(-1)
		<-ctx.Done()
		return ctx.Err()
	}})
	ctx, stop := context.WithCancel(t.Context())
	hanging.Watch(ctx, x.db)
	families, err := hanging.Registry().Gather()
	x.must(err)
	if up := value(families, "up"); up != 0 {
		t.Errorf("up is %v", up)
	}
	await(t, "a question that hangs", func() bool { return hangs.Load() == 1 })
	for range 3 { // further scrapes do not query again
		_, err := hanging.Registry().Gather()
		x.must(err)
	}
	if asked.Load() != 1 || hangs.Load() != 1 {
		t.Errorf("%d questions, of which %d hang", asked.Load(), hangs.Load())
	}
	stop()
	await(t, "its end", func() bool { return hangs.Load() == 0 })
	x.hooks.Store(&testdb.Hooks{})
	hanging.Watch(t.Context(), x.db)
	await(t, "the database is back", func() bool {
		families, _ := hanging.Registry().Gather()
		return value(families, "up") == 1 && value(families, "head_position") == 0
	})

	x.hooks.Store(&testdb.Hooks{Before: func(context.Context, testdb.TapEvent) error { return errors.New("away") }})
	x.wants(0, "up")
}

// Any number of scrapes share a reading of the database.
func TestScrapesShareOneRead(t *testing.T) {
	x := newFixture(t, metrics.Config{Every: time.Hour, Patience: time.Minute, Timeout: time.Minute},
		rowfeed.FeedSpec{})
	var asked atomic.Int64
	x.hooks.Store(&testdb.Hooks{Before: func(context.Context, testdb.TapEvent) error { asked.Add(1); return nil }})
	x.wants(1, "up")
	once := asked.Load()
	if once == 0 {
		t.Fatal("nothing was read")
	}
	var scrapes sync.WaitGroup
	for range 20 {
		scrapes.Go(func() {
			if _, err := x.m.Registry().Gather(); err != nil {
				t.Error(err)
			}
		})
	}
	scrapes.Wait()
	if asked.Load() != once {
		t.Errorf("%d statements, then %d more", once, asked.Load()-once)
	}
	x.moves(-1, "state_age_seconds")
}

// The number of series is limited: shards, consumers and feeds beyond the limit share a series, and the shard that is
// furthest behind is always shown.
func TestSeriesAreBounded(t *testing.T) {
	cfg := always
	cfg.MaxNames, cfg.MaxShards = 2, 3
	x := newFixture(t, cfg, rowfeed.FeedSpec{DataShards: 8})
	x.exec(`INSERT INTO kv VALUES (1, 'a'), (2, 'b')`)
	x.publish()
	cursor := x.fetch("").Cursor
	for n := range 4 {
		for shard := range 8 {
			at := cursor
			if n == 0 && shard == 7 {
				at = ""
			}
			x.exec(
				fmt.Sprintf(
					`INSERT INTO rowfeed_cursors (consumer, feed, shard, shard_count, value, generation, epoch, version,
				paused, updated_at)
				VALUES ('c%d', 'kv', %d, 8, '%s', 1, 0, 0, 0, 0)`, n, shard, at,
				),
			)
		}
	}
	x.wants(2, "consumer_lag_entries", "consumer=c0", "feed=kv", "shard=7")
	x.wants(29, "folded_series")
	o := x.m.Observer()
	for n := range 50 {
		name := fmt.Sprint("feed", n)
		o.Published(rowfeed.PublishEvent{Feed: name})
		o.Fetched(rowfeed.FetchEvent{Feed: name})
		o.Consumed(rowfeed.ConsumeEvent{Consumer: name, Feed: name})
		o.Trouble(rowfeed.TroubleEvent{Err: &rowfeed.Error{Code: rowfeed.Code(strings.Repeat("x", n+1))}})
	}
	for _, f := range x.gather() {
		most := 2 * 3 // two names and the others, of two kinds each
		if n := len(f.GetMetric()); n > max(most, 4*2) && f.GetName() != "rowfeed_troubles_total" {
			t.Errorf("%s has %d series", f.GetName(), n)
		}
	}
}

// The default registry of the process is not used, and a process may have two Metrics.
func TestDefaultRegistryIsNotUsed(t *testing.T) {
	before, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	one, other := metrics.New(nil), metrics.New(nil)
	one.Observer().Retried(rowfeed.RetryEvent{})
	after, err := prometheus.DefaultGatherer.Gather()
	if err != nil || len(before) != len(after) {
		t.Errorf("%d families, then %d: %v", len(before), len(after), err)
	}
	for m, want := range map[*metrics.Metrics]float64{one: 1, other: 0} {
		families, err := m.Registry().Gather()
		if err != nil || value(families, "retries_total") != want {
			t.Errorf("retries: %v, %v", families, err)
		}
	}
}
