package handlers

import (
	"context"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"potato/api"
)

type listRunEventsInput struct {
	RunPath
	After       int64  `query:"after" minimum:"0" default:"0" doc:"Events after this sequence number"`
	Limit       int    `query:"limit" minimum:"1" maximum:"5000" default:"1000"`
	LastEventID string `header:"Last-Event-ID" maxLength:"20" doc:"Server-sent events: goes on after this one, over after"`
	Accept      string `header:"Accept" doc:"text/event-stream streams events as they come, one JSON Event a message, the id being its seq; a comment every 15 s keeps the line open; the stream ends with the run"`
}

func (h *Handlers) registerEvents(a huma.API) {
	r := a.OpenAPI().Components.Schemas
	list := r.Schema(reflect.TypeFor[api.EventList](), true, "EventList")
	r.Schema(reflect.TypeFor[api.Event](), true, "Event")
	op := operation(http.MethodGet, "/runs/{run_id}/events", "listRunEvents", "A run's events, listed or streamed", "events",
		http.StatusNotFound, http.StatusUnprocessableEntity)
	op.Responses = map[string]*huma.Response{"200": {
		Description: "Events",
		Content: map[string]*huma.MediaType{
			"application/json":  {Schema: list},
			"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}},
		},
	}}
	huma.Register(a, op, h.listRunEvents)

	changes := operation(http.MethodGet, "/changes", "watchRuns", "Stream every run that changes, as a Run a message", "events")
	changes.Responses = map[string]*huma.Response{"200": {
		Description: "Runs as they change; first all that are under way or queued",
		Content:     map[string]*huma.MediaType{"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}}},
	}}
	huma.Register(a, changes, h.watchRuns)
}

func (h *Handlers) listRunEvents(ctx context.Context, in *listRunEventsInput) (*huma.StreamResponse, error) {
	return nil, errNotImplemented
}

func (h *Handlers) watchRuns(ctx context.Context, _ *struct{}) (*huma.StreamResponse, error) {
	return nil, errNotImplemented
}
