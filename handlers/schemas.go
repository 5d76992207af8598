package handlers

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"potato/api"
)

func (h *Handlers) registerSchemas(a huma.API) {
	huma.Register(a, operation(http.MethodGet, "/schemas", "listSchemas", "List the annotation schemes and the labels collected", "schemas"), h.listSchemas)
}

func (h *Handlers) listSchemas(ctx context.Context, _ *struct{}) (*body[api.SchemeList], error) {
	list, err := h.Supervisor.Schemes(ctx)
	return ok(list), h.problem(ctx, err)
}
