package metrics

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/rowfeed/rowfeed"
)

// Config holds the settings. The zero value has a default for every setting.
type Config struct {
	// Every is the minimum time between two readings of the database. Scrapes in between get the last reading.
	// Default 10 s.
	Every time.Duration
	// Timeout is the maximum time of a reading. Default 5 s.
	Timeout time.Duration
	// Patience is how long a scrape waits for a reading. After that it gets the last one. Default 2 s.
	Patience time.Duration
	// MaxNames is the maximum number of feeds, and of consumers of feeds, that have series of their own. The others
	// share the name "others". Default 200.
	MaxNames int
	// MaxShards is the maximum number of shards of consumers that have series of their own: those that are furthest
	// behind. The other shards of each consumer share the label "others". Default 200.
	MaxShards int
	// MaxBacklog is the number up to which pending changes are counted. Default 100,000.
	MaxBacklog int
	// WithoutProcess leaves out the metrics of the Go runtime and the process (go_…, process_…), for programs that
	// have them elsewhere.
	WithoutProcess bool
}

func (c Config) withDefaults() Config {
	if c.Every <= 0 {
		c.Every = 10 * time.Second
	}
	if c.Timeout <= 0 {
		c.Timeout = 5 * time.Second
	}
	if c.Patience <= 0 {
		c.Patience = 2 * time.Second
	}
	if c.MaxNames <= 0 {
		c.MaxNames = 200
	}
	if c.MaxShards <= 0 {
		c.MaxShards = 200
	}
	if c.MaxBacklog <= 0 {
		c.MaxBacklog = 100_000
	}
	return c
}

// Others is the label of everything that has no series of its own.
const Others = "others"

// Metrics has the metrics of one process. It is safe for concurrent use.
type Metrics struct {
	cfg      Config
	registry *prometheus.Registry
	events   *events
	state    *state
	requests *requests
	pages    *pages
}

// New creates a registry with rowfeed's metrics. cfg may be nil.
func New(cfg *Config) *Metrics {
	if cfg == nil {
		cfg = &Config{}
	}
	full := cfg.withDefaults()
	m := &Metrics{cfg: full, registry: prometheus.NewRegistry(), events: newEvents(full.MaxNames),
		requests: newRequests(), pages: &pages{}}
	m.state = newState(full)
	m.registry.MustRegister(m.state, m.pages)
	m.registry.MustRegister(m.events.all()...)
	m.registry.MustRegister(m.requests.all()...)
	if !full.WithoutProcess {
		m.registry.MustRegister(collectors.NewGoCollector(),
			collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
	return m
}

// Registry returns the registry: a program may add metrics of its own, or gather them itself.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

// Observer returns the Observer that counts events. If a Config already has an Observer, see [rowfeed.Observers].
func (m *Metrics) Observer() *rowfeed.Observer { return m.events.observer() }

// Watch adds the state of a database to every scrape: pending changes, lag of consumers, holders of leases, waiting
// requests. A second call replaces the first database. The readings end with ctx.
func (m *Metrics) Watch(ctx context.Context, db *rowfeed.DB) { m.state.watch(ctx, db) }

// Handler returns the handler for scrapes. It does not check rights: every client that reaches it sees the names of
// all feeds and consumers.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

// names limits the values of a label. The first names keep their own value. Once there are enough, further names
// become Others.
type names struct {
	most int

	mu    sync.Mutex
	known map[string]bool
}

func (n *names) of(name string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.known[name] {
		if len(n.known) >= n.most {
			return Others
		}
		if n.known == nil {
			n.known = make(map[string]bool)
		}
		n.known[name] = true
	}
	return name
}
