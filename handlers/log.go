package handlers

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"potato/api"
	"potato/supervisor"
)

type getRunLogInput struct {
	RunPath
	Source string `query:"source" enum:"log,stdout,stderr,agent" default:"log" doc:"log: the run's own log lines; the others are files of that name"`
	From   int64  `query:"from" minimum:"0" default:"0" doc:"First line, from 1; 0: the last limit lines"`
	Limit  int    `query:"limit" minimum:"1" maximum:"5000" default:"1000"`
	Q      string `query:"q" maxLength:"200" doc:"Only lines with this text, whatever the case"`
}

func (h *Handlers) registerLog(a huma.API) {
	huma.Register(a, operation(http.MethodGet, "/runs/{run_id}/log", "getRunLog", "Lines of a run's log", "log",
		http.StatusNotFound), h.getRunLog)
}

func (h *Handlers) getRunLog(ctx context.Context, in *getRunLogInput) (*body[api.LogLines], error) {
	lines, err := h.Supervisor.Log(ctx, in.RunID, supervisor.LogQuery{
		Source: supervisor.LogSource(in.Source), From: in.From, Limit: in.Limit, Q: in.Q,
	})
	return ok(lines), h.problem(ctx, err)
}
