package metrics

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// pages collects the use of the memory for pages.
type pages struct {
	memory atomic.Pointer[func() (inUse, limit int, refused int64)] // nil before WatchPages
}

var (
	descPageMemory = desc("page_memory_bytes", "Memory of the pages that are read, encoded and sent now, in bytes.")
	descPageLimit  = desc("page_memory_limit_bytes",
		"Maximum memory of all pages together, in bytes. The pages of one feed, and of one client, may use at most "+
			"half.")
	descPageRefused = desc("page_memory_refusals_total",
		"Requests that were refused because no memory for their page became free in time.")
)

// WatchPages adds the memory of an HTTP handler's pages to every scrape: (*feedhttp.Handler).PageMemory. A second call
// replaces the first handler.
func (m *Metrics) WatchPages(memory func() (inUse, limit int, refused int64)) {
	m.pages.memory.Store(&memory)
}

// Describe implements prometheus.Collector.
func (p *pages) Describe(ch chan<- *prometheus.Desc) {
	ch <- descPageMemory
	ch <- descPageLimit
	ch <- descPageRefused
}

// Collect implements prometheus.Collector.
func (p *pages) Collect(ch chan<- prometheus.Metric) {
	memory := p.memory.Load()
	if memory == nil {
		return
	}
	inUse, limit, refused := (*memory)()
	ch <- prometheus.MustNewConstMetric(descPageMemory, prometheus.GaugeValue, float64(inUse))
	ch <- prometheus.MustNewConstMetric(descPageLimit, prometheus.GaugeValue, float64(limit))
	ch <- prometheus.MustNewConstMetric(descPageRefused, prometheus.CounterValue, float64(refused))
}
