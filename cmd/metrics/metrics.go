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

// Config holds the settings. The zero value is good.
type Config struct {
	// Every is for how long what was read of the database is good; however many scrape, it is
	// not read more often. Default 10 s.
	Every time.Duration
	// Timeout bounds a reading of the database. Default 5 s.
	Timeout time.Duration
	// Patience is how long a scrape waits for a reading; after that it is answered with what
	// is known. Default 2 s.
	Patience time.Duration
	// MaxNames is how many feeds, and how many consumers of feeds, have series of their own; the
	// rest stand together under the name "others". Default 200.
	MaxNames int
	// MaxShards is how many shards of consumers have series of their own: those that are most
	// behind. The rest of each consumer stands together as shard "others". Default 200.
	MaxShards int
	// MaxBacklog is up to how many changes are counted that wait. Default 100,000.
	MaxBacklog int
	// WithoutProcess leaves out what the Go runtime and the operating system tell of the
	// process (go_…, process_…), for programs that have that elsewhere.
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

// Others is the label of what has no series of its own.
const Others = "others"

// Metrics counts for one process. It is safe for concurrent use.
type Metrics struct {
	cfg      Config
	registry *prometheus.Registry
	events   *events
	state    *state
	requests *requests
}

// New makes a registry and puts rowfeed's metrics into it; cfg may be nil.
func New(cfg *Config) *Metrics {
	if cfg == nil {
		cfg = &Config{}
	}
	full := cfg.withDefaults()
	m := &Metrics{cfg: full, registry: prometheus.NewRegistry(), events: newEvents(full.MaxNames),
		requests: newRequests()}
	m.state = newState(full)
	m.registry.MustRegister(m.state)
	m.registry.MustRegister(m.events.all()...)
	m.registry.MustRegister(m.requests.all()...)
	if !full.WithoutProcess {
		m.registry.MustRegister(collectors.NewGoCollector(),
			collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
	return m
}

// Registry is where the metrics are: a program may add its own, or gather them elsewhere.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

// Observer counts what it is told. For a Config that has one already see [rowfeed.Observers].
func (m *Metrics) Observer() *rowfeed.Observer { return m.events.observer() }

// Watch has the state of a database told with every scrape from now on: what waits, how far
// consumers are behind, who has leases, who waits for entries. A second call puts another
// database in the place of the first. ctx is for the readings; they end with it.
func (m *Metrics) Watch(ctx context.Context, db *rowfeed.DB) { m.state.watch(ctx, db) }

// Handler answers scrapes. It has no rights of its own: whoever reaches it sees the names of all
// feeds and consumers.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

// names bounds the values of a label: the first ones have themselves, those that come when there
// are enough are Others.
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
