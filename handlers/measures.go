package handlers

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"potato/api"
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

// exposition serves the figures in Prometheus' text form; those that cannot be had are missing, and the log says why.
func (h *Handlers) exposition() http.Handler {
	if h.Supervisor != nil {
		h.registry.MustRegister(runsCollector{h})
	}
	return promhttp.HandlerFor(h.registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, ErrorLog: slog.NewLogLogger(h.Log.Handler(), slog.LevelError),
	})
}

// runsCollector counts runs when somebody asks.
type runsCollector struct{ h *Handlers }

var (
	runsMetric  = prometheus.NewDesc("potato_runs", "Runs by state.", []string{"status"}, nil)
	queueMetric = prometheus.NewDesc("potato_queue_length", "Runs that wait.", nil, nil)
)

// Describe names the figures.
func (c runsCollector) Describe(ch chan<- *prometheus.Desc) { ch <- runsMetric; ch <- queueMetric }

// Collect sends them.
func (c runsCollector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	counts, err := c.h.Supervisor.CountRuns(ctx)
	if err != nil {
		ch <- prometheus.NewInvalidMetric(runsMetric, err)
		return
	}
	for _, status := range api.RunStatuses() {
		ch <- prometheus.MustNewConstMetric(runsMetric, prometheus.GaugeValue, float64(counts[status]), string(status))
	}
	ch <- prometheus.MustNewConstMetric(queueMetric, prometheus.GaugeValue, float64(counts[api.RunQueued]))
}
