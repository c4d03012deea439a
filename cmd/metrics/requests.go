package metrics

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// requests has the counters of HTTP requests.
type requests struct {
	answered *prometheus.CounterVec
	took     *prometheus.HistogramVec
	open     prometheus.Gauge
}

func newRequests() *requests {
	return &requests{
		answered: counter("http_requests_total", "HTTP requests answered, by route and status.", "route", "status"),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "rowfeed_http_request_seconds",
			Help: "How long HTTP requests took, by route; " +
				"including the time that requests wait for an entry, and that streams last.",
			Buckets: []float64{.001, .005, .025, .1, .25, 1, 2.5, 10, 30, 60}}, []string{"route"}),
		open: prometheus.NewGauge(prometheus.GaugeOpts{Name: "rowfeed_http_requests_open",
			Help: "Running HTTP requests, including those that wait, and streams."}),
	}
}

func (q *requests) all() []prometheus.Collector {
	return []prometheus.Collector{q.answered, q.took, q.open}
}

// Requests counts the requests that next answers. route returns the route of a request, one of a few fixed texts, so
// that clients cannot create labels.
func (m *Metrics) Requests(route func(*http.Request) string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		started, name, told := time.Now(), route(r), &statusWriter{ResponseWriter: w}
		m.requests.open.Inc()
		defer func() { // even if a panic aborts the answer
			m.requests.open.Dec()
			m.requests.answered.WithLabelValues(name, told.status()).Inc()
			m.requests.took.WithLabelValues(name).Observe(time.Since(started).Seconds())
		}()
		next.ServeHTTP(told, r)
	})
}

// statusWriter stores the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	code int
}

// Unwrap is for http.ResponseController: streams flush, and pages extend their deadline.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *statusWriter) WriteHeader(code int) {
	if w.code == 0 && code >= 200 { // 1xx precede the answer
		w.code = code
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *statusWriter) Write(p []byte) (int, error) {
	if w.code == 0 {
		w.code = http.StatusOK
	}
	return w.ResponseWriter.Write(p)
}

// status returns the status of the answer. A handler that writes nothing has answered 200.
func (w *statusWriter) status() string {
	switch {
	case w.code == 0:
		return strconv.Itoa(http.StatusOK)
	case w.code < 100 || w.code > 599:
		return Others
	}
	return strconv.Itoa(w.code)
}
