package handlers

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"potato/api"
)

type getArtifactInput struct {
	RunPath
	Path string `query:"path" required:"true" minLength:"1" maxLength:"1000" example:"model_card.json" doc:"As listRunArtifacts gives it"`
}

func (h *Handlers) registerArtifacts(a huma.API) {
	huma.Register(a, operation(http.MethodGet, "/runs/{run_id}/artifacts", "listRunArtifacts", "A run's model files", "artifacts",
		http.StatusNotFound, http.StatusUnprocessableEntity), h.listRunArtifacts)

	get := operation(http.MethodGet, "/runs/{run_id}/artifact", "getRunArtifact", "One model file, as a download", "artifacts",
		http.StatusNotFound, http.StatusUnprocessableEntity)
	binary := map[string]*huma.MediaType{"application/octet-stream": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}
	get.Responses = map[string]*huma.Response{
		"200": {Description: "The file", Content: binary},
		"206": {Description: "The range asked for", Content: binary},
		"304": {Description: "Unchanged"},
		"416": {Description: "The range lies outside the file"},
	}
	huma.Register(a, get, h.getRunArtifact)
}

func (h *Handlers) listRunArtifacts(ctx context.Context, in *RunPath) (*body[api.ArtifactList], error) {
	return nil, errNotImplemented
}

func (h *Handlers) getRunArtifact(ctx context.Context, in *getArtifactInput) (*huma.StreamResponse, error) {
	return nil, errNotImplemented
}
