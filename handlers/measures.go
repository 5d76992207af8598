package handlers

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// measures are the figures at /metrics. Their labels are names of operations and states, of which there are few.
type measures struct {
	registry *prometheus.Registry
	requests *prometheus.HistogramVec
	streams  prometheus.Gauge
}

func newMeasures() *measures {
	m := &measures{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "potato_http_request_duration_seconds", Help: "Time to answer, streams and exports aside.",
			Buckets: []float64{.001, .005, .025, .1, .5, 2.5, 10, 60},
		}, []string{"operation", "status"}),
		streams: prometheus.NewGauge(prometheus.GaugeOpts{Name: "potato_http_streams", Help: "Event streams that are open."}),
	}
	m.registry.MustRegister(m.requests, m.streams, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *measures) count(req *request, status int, took time.Duration) {
	if req.stream {
		took = 0
	}
	m.requests.WithLabelValues(req.operation, strconv.Itoa(status)).Observe(took.Seconds())
}

// exposition serves the figures in Prometheus' text form.
func (h *Handlers) exposition() http.Handler {
	return promhttp.HandlerFor(h.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError})
}
