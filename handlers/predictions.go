package handlers

import (
	"context"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"potato/api"
)

type listPredictionsInput struct {
	RunPath
	Format string `query:"format" enum:"json,ndjson,csv" default:"json" doc:"json comes in pages; ndjson and csv come whole"`
	Schema string `query:"schema" maxLength:"200"`
	Split  string `query:"split" enum:"val,test,unlabeled"`
	Label  string `query:"label" maxLength:"1000" doc:"Predicted label"`
	Target string `query:"target" maxLength:"1000" doc:"The held-out item's own label"`
	Wrong  bool   `query:"wrong" doc:"Only held-out items whose prediction differs from their label"`
	Q      string `query:"q" maxLength:"200" doc:"Text in the item or its id"`
	Cursor string `query:"cursor" maxLength:"2000"`
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

type retracted struct {
	Retracted int64 `json:"retracted" doc:"Predictions that annotators no longer see"`
}

func (h *Handlers) registerPredictions(a huma.API) {
	list := a.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[api.PredictionList](), true, "PredictionList")
	text := &huma.Schema{Type: huma.TypeString}
	op := operation(http.MethodGet, "/runs/{run_id}/predictions", "listRunPredictions", "A run's predictions, in pages or whole", "predictions",
		http.StatusNotFound, http.StatusUnprocessableEntity)
	op.Responses = map[string]*huma.Response{"200": {
		Description: "Predictions",
		Content: map[string]*huma.MediaType{
			"application/json":     {Schema: list},
			"application/x-ndjson": {Schema: text},
			"text/csv":             {Schema: text},
		},
	}}
	huma.Register(a, op, h.listRunPredictions)
	huma.Register(a, operation(http.MethodDelete, "/runs/{run_id}/predictions", "retractRunPredictions", "Take a run's predictions back from annotators", "predictions",
		http.StatusNotFound, http.StatusUnprocessableEntity), h.retractRunPredictions)
}

func (h *Handlers) listRunPredictions(ctx context.Context, in *listPredictionsInput) (*huma.StreamResponse, error) {
	return nil, errNotImplemented
}

func (h *Handlers) retractRunPredictions(ctx context.Context, in *RunPath) (*body[retracted], error) {
	return nil, errNotImplemented
}
