package handlers

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"potato/api"
)

func (h *Handlers) registerAutoRetrain(a huma.API) {
	huma.Register(a, operation(http.MethodGet, "/auto-retrain", "getAutoRetrain", "The rule of automatic retraining and why it does not train now", "auto-retrain"), h.getAutoRetrain)
}

func (h *Handlers) getAutoRetrain(ctx context.Context, _ *struct{}) (*body[api.AutoRetrain], error) {
	state, err := h.Supervisor.AutoRetrain(ctx)
	return ok(state), h.problem(ctx, err)
}
