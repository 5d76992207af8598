package handlers

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"potato/api"
)

func (h *Handlers) registerStatus(a huma.API) {
	huma.Register(a, huma.Operation{
		Method: http.MethodGet, Path: "/healthz", OperationID: "getHealth", Summary: "Say that the server answers",
		Tags: []string{"status"},
	}, h.getHealth)
	huma.Register(a, operation(http.MethodGet, "/status", "getStatus", "What the training server is doing", "status"), h.getStatus)
}

type health struct {
	Status string `json:"status" enum:"ok"`
}

func (h *Handlers) getHealth(context.Context, *struct{}) (*body[health], error) {
	return &body[health]{Body: health{Status: "ok"}}, nil
}

func (h *Handlers) getStatus(ctx context.Context, _ *struct{}) (*body[api.Status], error) {
	status, err := h.Supervisor.Status(ctx)
	return ok(status), h.problem(ctx, err)
}
