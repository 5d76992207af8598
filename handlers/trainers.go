package handlers

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"potato/api"
)

func (h *Handlers) registerTrainers(a huma.API) {
	huma.Register(a, operation(http.MethodGet, "/trainers", "listTrainers", "List the trainers and whether they are available", "trainers"), h.listTrainers)
}

func (h *Handlers) listTrainers(ctx context.Context, _ *struct{}) (*body[api.TrainerList], error) {
	list, err := h.Supervisor.Trainers(ctx)
	return ok(list), h.problem(ctx, err)
}
