package metrics

import (
	"errors"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowfeed/rowfeed"
)

// events has the counters of what happens in this process.
type events struct {
	feeds, consumers, codes *names

	batches, changes, keys, skipped     *prometheus.CounterVec
	publishing, fetching                *prometheus.HistogramVec
	publisher                           *prometheus.GaugeVec
	stalls                              *prometheus.CounterVec
	fetches, fetched, vanished          *prometheus.CounterVec
	consumed, collapsed, aside, trouble *prometheus.CounterVec
	consuming                           *prometheus.HistogramVec
	claims, jobs                        *prometheus.CounterVec
	retries                             prometheus.Counter
}

// seconds are the buckets of durations of database operations: from 1 ms to 30 s.
var seconds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "rowfeed_" + name, Help: help}, labels)
}

func histogram(name, help string, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "rowfeed_" + name, Help: help, Buckets: seconds},
		labels)
}

func newEvents(most int) *events {
	return &events{
		feeds: &names{most: most}, consumers: &names{most: most}, codes: &names{most: mostCodes},
		batches: counter("publish_batches_total", "Batches that this process has published.", "feed"),
		changes: counter("publish_changes_total",
			"Changes that this process has published. Several changes of one key collapse.", "feed"),
		keys: counter("publish_keys_total", "Positions that this process has given to keys.", "feed"),
		publishing: histogram("publish_batch_seconds",
			"How long a batch took, from the query for changes to its commit.", "feed"),
		skipped: counter("publish_rows_skipped_total", "Rows that a pass has skipped because another "+
			"transaction had locked them (capture column). A row that stays locked counts in every pass.", "feed"),
		publisher: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "rowfeed_publisher",
			Help: "1 if this process publishes the feed, 0 if it stands by while another does."}, []string{"feed"}),
		stalls: counter("publisher_stalls_total", "Publishers of other processes that had left changes waiting, "+
			"which this process has published while it stood by.", "feed"),
		fetches: counter("fetches_total",
			"Pages read: alone, or shared by readers near the feed's head that asked at the same time.", "feed",
			"kind"),
		fetched: counter("fetched_entries_total", "Entries on those pages, by operation: upsert or delete.",
			"feed", "op"),
		fetching: histogram("fetch_seconds", "How long it took to read a page, without the wait for an entry.",
			"feed"),
		vanished: counter("vanished_rows_total", "Keys left out of pages because their row is gone and its delete "+
			"is not yet published. It follows soon, unless the delete was not captured.", "feed"),
		consumed: counter("consumed_entries_total",
			"Entries that a consumer or relay of this process has handled and stored its cursor behind.", "consumer",
			"feed"),
		collapsed: counter("collapsed_entries_total", "Entries that were added to the dead letter of their key.",
			"consumer", "feed"),
		aside: counter("entries_set_aside_total", "Entries that were set aside as dead letters.", "consumer", "feed"),
		consuming: histogram("consume_seconds", "How long a consumer's step took, from the page to its commit.",
			"consumer", "feed"),
		trouble: counter("troubles_total",
			"Failures that a publisher, consumer or group of this process has survived, by the error's code.", "part",
			"code", "feed", "consumer"),
		claims: counter("lease_terms_total", "Claims on leases in this process, by purpose and event: "+
			"begun, taken_over (the previous holder had not released the lease) or lost.", "kind", "event"),
		jobs: counter("jobs_total", "Events of shards that instances share, in this process: "+
			"begun, handed_over, lost, ended or stands_by.", "event"),
		retries: prometheus.NewCounter(prometheus.CounterOpts{Name: "rowfeed_retries_total",
			Help: "Transactions that were repeated, for example after a deadlock or a serialization failure."}),
	}
}

func (e *events) all() []prometheus.Collector {
	return []prometheus.Collector{e.batches, e.changes, e.keys, e.publishing, e.skipped, e.publisher, e.stalls,
		e.fetches, e.fetched, e.fetching, e.vanished,
		e.consumed, e.collapsed, e.aside, e.consuming, e.trouble, e.claims, e.jobs, e.retries}
}

func (e *events) observer() *rowfeed.Observer {
	return &rowfeed.Observer{
		Published: func(p rowfeed.PublishEvent) {
			feed := e.feeds.of(p.Feed)
			e.batches.WithLabelValues(feed).Inc()
			e.changes.WithLabelValues(feed).Add(float64(p.Changes))
			e.keys.WithLabelValues(feed).Add(float64(p.Keys))
			e.publishing.WithLabelValues(feed).Observe(p.Took.Seconds())
		},
		Skipped: func(s rowfeed.SkipEvent) { e.skipped.WithLabelValues(e.feeds.of(s.Feed)).Add(float64(s.Rows)) },
		Fetched: func(f rowfeed.FetchEvent) {
			feed, kind := e.feeds.of(f.Feed), "alone"
			if f.Shared {
				kind = "shared"
			}
			e.fetches.WithLabelValues(feed, kind).Inc()
			e.fetched.WithLabelValues(feed, string(rowfeed.Upsert)).Add(float64(f.Entries - f.Deletes))
			e.fetched.WithLabelValues(feed, string(rowfeed.Delete)).Add(float64(f.Deletes))
			e.vanished.WithLabelValues(feed).Add(float64(f.Vanished))
			e.fetching.WithLabelValues(feed).Observe(f.Took.Seconds())
		},
		Retried: func(rowfeed.RetryEvent) { e.retries.Inc() },
		Consumed: func(c rowfeed.ConsumeEvent) {
			consumer, feed := e.pair(c.Consumer, c.Feed)
			e.consumed.WithLabelValues(consumer, feed).Add(float64(c.Entries))
			e.collapsed.WithLabelValues(consumer, feed).Add(float64(c.Collapsed))
			e.consuming.WithLabelValues(consumer, feed).Observe(c.Took.Seconds())
		},
		SetAside: func(s rowfeed.SetAsideEvent) { e.aside.WithLabelValues(e.pair(s.Consumer, s.Feed)).Inc() },
		Claim: func(t rowfeed.ClaimEvent) {
			e.claims.WithLabelValues(leaseKind(t.Lease), [...]string{"begun", "taken_over", "lost"}[t.Kind]).Inc()
		},
		Lease: func(l rowfeed.LeaseEvent) {
			mine := 0.0
			if l.Mine {
				mine = 1
			}
			if l.Stalled {
				e.stalls.WithLabelValues(e.feeds.of(l.Feed)).Inc()
			}
			e.publisher.WithLabelValues(e.feeds.of(l.Feed)).Set(mine)
		},
		Job: func(j rowfeed.JobEvent) {
			e.jobs.WithLabelValues([...]string{"begun", "handed_over", "lost", "ended", "stands_by"}[j.Kind]).Inc()
		},
		Trouble: func(t rowfeed.TroubleEvent) {
			part, consumer, feed := "publisher", "", ""
			switch {
			case t.Consumer != "":
				part = "consumer"
				consumer, feed = e.pair(t.Consumer, t.Feed)
			case t.Feed == "":
				part = "group"
			default:
				feed = e.feeds.of(t.Feed)
			}
			e.trouble.WithLabelValues(part, e.codes.of(code(t.Err)), feed, consumer).Inc()
		},
	}
}

// pair returns the labels of a consumer of a feed: both names, or Others twice.
func (e *events) pair(consumer, feed string) (string, string) {
	if e.consumers.of(consumer+" of "+feed) == Others {
		return Others, Others
	}
	return consumer, feed
}

// mostCodes is the maximum number of codes. rowfeed has about thirty, but an HTTP server may return any code.
const mostCodes = 50

// code returns the code of an error.
func code(err error) string {
	var known *rowfeed.Error
	if errors.As(err, &known) {
		return string(known.Code)
	}
	return string(rowfeed.Failed)
}

// leaseKinds are the purposes of leases.
var leaseKinds = []string{"publish", "consumer", "relay", "other"}

// leaseKind returns the purpose of a lease with this name.
func leaseKind(name string) string {
	for _, kind := range leaseKinds {
		if strings.HasPrefix(name, kind+":") {
			return kind
		}
	}
	return "other"
}
