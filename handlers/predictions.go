package handlers

import (
	"context"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"potato/api"
	"potato/store"
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
	Retracted int64 `json:"retracted" doc:"Items that no longer show annotators this run's predictions"`
}

const predictionsDoc = "`ndjson` has a PredictionRow a line. `csv` has a header line and the columns instance_id, schema_name, " +
	"split, label, confidence, target, correct, text, scores; several labels are a JSON list, scores a JSON object. So that " +
	"a spreadsheet runs nothing, a csv cell that begins with = + - @, a tab or a carriage return gets an apostrophe before " +
	"it, and half a surrogate pair, which UTF-8 cannot hold, is written as its escape `\\ud83d`, with backslashes before one " +
	"and before what looks like one doubled; everything else stands as it was. Texts are cut to 500 characters, with … behind: " +
	"the run's bundle has them whole. An export that breaks off ends without its last chunk: clients see an error."

func (h *Handlers) registerPredictions(a huma.API) {
	list := a.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[api.PredictionList](), true, "PredictionList")
	text := &huma.Schema{Type: huma.TypeString}
	op := operation(http.MethodGet, "/runs/{run_id}/predictions", "listRunPredictions", "A run's predictions, in pages or whole", "predictions",
		http.StatusNotFound)
	op.Description = predictionsDoc
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
		http.StatusNotFound), h.retractRunPredictions)
}

func (h *Handlers) listRunPredictions(ctx context.Context, in *listPredictionsInput) (*huma.StreamResponse, error) {
	f := store.PredictionFilter{
		Schema: in.Schema, Split: in.Split, Label: in.Label, Target: in.Target, Wrong: in.Wrong, Q: in.Q,
		Cursor: in.Cursor, Limit: in.Limit,
	}
	if in.Format == "json" {
		list, err := h.Supervisor.Predictions(ctx, in.RunID, f)
		if err != nil {
			return nil, h.problem(ctx, err)
		}
		return reply(list), nil
	}
	// The run is looked up while there is still a status to say that it is missing.
	if _, err := h.Supervisor.RunByID(ctx, in.RunID); err != nil {
		return nil, h.problem(ctx, err)
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		r, w := humachi.Unwrap(hc)
		requestOf(ctx).stream = true
		e := newExport(w, in.Format, "predictions-"+string(in.RunID))
		if r.Method == http.MethodHead {
			return
		}
		err := h.Supervisor.ExportPredictions(ctx, in.RunID, f, e.row)
		if err == nil {
			err = e.close()
		}
		if err != nil {
			if !e.gone && ctx.Err() == nil {
				h.Log.ErrorContext(ctx, "export broke off", "request", requestOf(ctx).id, "run", in.RunID, "err", err)
			}
			panic(http.ErrAbortHandler)
		}
	}}, nil
}

func (h *Handlers) retractRunPredictions(ctx context.Context, in *RunPath) (*body[retracted], error) {
	n, err := h.Supervisor.Retract(context.WithoutCancel(ctx), in.RunID)
	return ok(retracted{Retracted: int64(n)}), h.problem(ctx, err)
}
