package handlers

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"potato/api"
)

func (h *Handlers) registerMetrics(a huma.API) {
	huma.Register(a, operation(http.MethodGet, "/runs/{run_id}/metrics", "getRunMetrics", "A run's held-out scores as tables, and its curves", "metrics",
		http.StatusNotFound), h.getRunMetrics)
}

func (h *Handlers) getRunMetrics(ctx context.Context, in *RunPath) (*body[api.MetricsReport], error) {
	report, err := h.Supervisor.Metrics(ctx, in.RunID)
	return ok(report), h.problem(ctx, err)
}
