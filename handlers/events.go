package handlers

import (
	"context"
	"net/http"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"potato/api"
)

type listRunEventsInput struct {
	RunPath
	After       int64  `query:"after" minimum:"0" default:"0" doc:"Events after this sequence number"`
	Limit       int    `query:"limit" minimum:"1" maximum:"5000" default:"1000"`
	LastEventID string `header:"Last-Event-ID" maxLength:"20" doc:"Server-sent events: goes on after this one, over after"`
	Accept      string `header:"Accept" hidden:"true"` // OpenAPI describes it by the answers' content types
}

const eventsDoc = "With `Accept: text/event-stream` events are streamed as they come: one JSON Event a message, its id " +
	"being the event's seq. After a break, Last-Event-ID goes on without loss. A comment every 15 s keeps the line open. " +
	"The stream ends with the run; asked again after the last event of a run that has ended, the answer is 204, which " +
	"tells an EventSource to stay away."

func (h *Handlers) registerEvents(a huma.API) {
	r := a.OpenAPI().Components.Schemas
	list := r.Schema(reflect.TypeFor[api.EventList](), true, "EventList")
	r.Schema(reflect.TypeFor[api.Event](), true, "Event")
	op := operation(http.MethodGet, "/runs/{run_id}/events", "listRunEvents", "A run's events, listed or streamed", "events",
		http.StatusNotFound)
	op.Description = eventsDoc
	op.Responses = map[string]*huma.Response{
		"200": {
			Description: "Events",
			Content: map[string]*huma.MediaType{
				"application/json":  {Schema: list},
				"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}},
			},
		},
		"204": {Description: "Streams only: the run has ended and all its events were seen"},
	}
	huma.Register(a, op, h.listRunEvents)

	changes := operation(http.MethodGet, "/changes", "watchRuns", "Stream every run that changes, as a Run a message", "events")
	changes.Responses = map[string]*huma.Response{"200": {
		Description: "Runs as they change; first all that are under way or queued. A comment every 15 s keeps the line open",
		Content:     map[string]*huma.MediaType{"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}}},
	}}
	huma.Register(a, changes, h.watchRuns)
}

func (h *Handlers) listRunEvents(ctx context.Context, in *listRunEventsInput) (*huma.StreamResponse, error) {
	if wantsStream(in.Accept) {
		return h.streamRunEvents(ctx, in)
	}
	list, err := h.Supervisor.Events(ctx, in.RunID, in.After, in.Limit)
	if err != nil {
		return nil, h.problem(ctx, err)
	}
	return reply(list), nil
}

func (h *Handlers) streamRunEvents(ctx context.Context, in *listRunEventsInput) (*huma.StreamResponse, error) {
	after := in.After
	if id, err := strconv.ParseInt(in.LastEventID, 10, 64); err == nil && id >= 0 {
		after = id
	}
	// The status is read first: a run that ends in between has more events, and gets a stream that hands them over.
	run, err := h.Supervisor.RunByID(ctx, in.RunID)
	if err != nil {
		return nil, h.problem(ctx, err)
	}
	if run.Status.Final() {
		rest, err := h.Supervisor.Events(ctx, in.RunID, after, 1)
		if err != nil {
			return nil, h.problem(ctx, err)
		}
		if len(rest.Events) == 0 {
			return noContent(), nil
		}
	}
	return h.streaming(func(ctx context.Context, s *stream) error {
		return h.Supervisor.Subscribe(ctx, in.RunID, after, func(events []api.Event) error {
			if len(events) == 0 {
				return s.ping()
			}
			for _, e := range events {
				if err := s.message(e.Seq, e); err != nil {
					return err
				}
			}
			return s.send()
		})
	}), nil
}

func (h *Handlers) watchRuns(context.Context, *struct{}) (*huma.StreamResponse, error) {
	return h.streaming(func(ctx context.Context, s *stream) error {
		return h.Supervisor.WatchRuns(ctx, func(runs []api.Run) error {
			if len(runs) == 0 {
				return s.ping()
			}
			for _, run := range runs {
				if err := s.message(0, run); err != nil {
					return err
				}
			}
			return s.send()
		})
	}), nil
}

// streaming answers with what feed writes. The status is long sent when feed fails: the line breaks off and the log tells.
func (h *Handlers) streaming(feed func(context.Context, *stream) error) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		r, w := humachi.Unwrap(hc)
		ctx, cancel := h.streamContext(r.Context())
		defer cancel()
		h.streams.Inc()
		defer h.streams.Dec()
		s, err := openStream(w, r)
		if err == nil && r.Method != http.MethodHead {
			err = feed(ctx, s)
		}
		if err != nil && !s.gone && ctx.Err() == nil {
			h.Log.WarnContext(ctx, "stream broke off", "request", requestOf(ctx).id, "operation", requestOf(ctx).operation, "err", err)
			panic(http.ErrAbortHandler)
		}
	}}
}
