package handlers

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"potato/api"
)

type checkBackendInput struct {
	Name string `path:"name" maxLength:"200" doc:"Name of the backend"`
	Body api.CheckRequest
}

func (h *Handlers) registerBackends(a huma.API) {
	huma.Register(a, operation(http.MethodGet, "/backends", "listBackends", "List the backends", "backends"), h.listBackends)
	huma.Register(a, withBody(operation(http.MethodPost, "/backends/{name}/check", "checkBackend", "Check whether a run could start on a backend",
		"backends", http.StatusNotFound)), h.checkBackend)
}

func (h *Handlers) listBackends(ctx context.Context, _ *struct{}) (*body[api.BackendList], error) {
	list, err := h.Supervisor.Backends(ctx)
	return ok(list), h.problem(ctx, err)
}

func (h *Handlers) checkBackend(ctx context.Context, in *checkBackendInput) (*body[api.CheckReport], error) {
	report, err := h.Supervisor.Check(ctx, in.Name, in.Body)
	return ok(report), h.problem(ctx, err)
}
