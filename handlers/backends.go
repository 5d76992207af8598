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
	token := operation(http.MethodPost, "/backends/{name}/token", "createBackendToken", "Issue a token for the agents of a backend", "backends",
		http.StatusNotFound, http.StatusConflict)
	token.Description = "The token is shown this once. The one before it is refused from now on, also for runs under way."
	token.DefaultStatus = http.StatusCreated
	huma.Register(a, token, h.createBackendToken)
}

type backendPath struct {
	Name string `path:"name" maxLength:"200" doc:"Name of the backend"`
}

func (h *Handlers) createBackendToken(ctx context.Context, in *backendPath) (*body[api.IssuedToken], error) {
	issued, err := h.Supervisor.Register(ctx, in.Name)
	return ok(issued), h.problem(ctx, err)
}

func (h *Handlers) listBackends(ctx context.Context, _ *struct{}) (*body[api.BackendList], error) {
	list, err := h.Supervisor.Backends(ctx)
	return ok(list), h.problem(ctx, err)
}

func (h *Handlers) checkBackend(ctx context.Context, in *checkBackendInput) (*body[api.CheckReport], error) {
	report, err := h.Supervisor.Check(ctx, in.Name, in.Body)
	return ok(report), h.problem(ctx, err)
}
