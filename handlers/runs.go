package handlers

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"potato/api"
)

// RunPath is the path parameter of every operation on one run. It is exported because Huma passes over embedded
// fields that are not.
type RunPath struct {
	RunID api.RunID `path:"run_id" pattern:"^[0-9]{8}T[0-9]{6}-[0-9a-f]{6}$" example:"20261129T192252-d3d870" doc:"The run's id"`
}

type listRunsInput struct {
	Status  string `query:"status" enum:"queued,building,running,evaluating,success,error,cancelled" doc:"Only runs in this state"`
	Trainer string `query:"trainer" maxLength:"200"`
	Backend string `query:"backend" maxLength:"200"`
	Q       string `query:"q" maxLength:"200" doc:"Text in the id, trainer, scheme, backend, host or error"`
	Sort    string `query:"sort" enum:"-created_at,created_at,-score,score,-duration,duration" default:"-created_at"`
	Cursor  string `query:"cursor" maxLength:"200" doc:"From the last page's next"`
	Limit   int    `query:"limit" minimum:"1" maximum:"500" default:"50"`
}

type createRunInput struct {
	Body api.RunRequest
	// The page says so, to be told apart from programs that hold the key.
	Client string `header:"X-Potato-Client" maxLength:"20" enum:"page,api" default:"api" doc:"Who asks; recorded as the run's trigger"`
}

type cancelled struct {
	RunID     api.RunID `json:"run_id"`
	Cancelled bool      `json:"cancelled" doc:"True: the cancel was taken; the run's status tells when it has ended"`
}

type writebackInput struct {
	RunPath
	Body struct {
		DryRun bool `json:"dry_run,omitempty" doc:"Count only, publish nothing"`
	}
}

func (h *Handlers) registerRuns(a huma.API) {
	huma.Register(a, operation(http.MethodGet, "/runs", "listRuns", "List runs", "runs", http.StatusUnprocessableEntity), h.listRuns)

	create := operation(http.MethodPost, "/runs", "createRun", "Start a run, or queue it", "runs",
		http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity)
	create.DefaultStatus = http.StatusAccepted
	huma.Register(a, create, h.createRun)

	huma.Register(a, operation(http.MethodGet, "/runs/{run_id}", "getRun", "One run", "runs",
		http.StatusNotFound, http.StatusUnprocessableEntity), h.getRun)
	cancel := operation(http.MethodPost, "/runs/{run_id}/cancel", "cancelRun", "Cancel a run", "runs",
		http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity)
	huma.Register(a, cancel, h.cancelRun)
	del := operation(http.MethodDelete, "/runs/{run_id}", "deleteRun", "Delete a finished run with its files and predictions", "runs",
		http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity)
	del.DefaultStatus = http.StatusNoContent
	huma.Register(a, del, h.deleteRun)
	huma.Register(a, operation(http.MethodPost, "/runs/{run_id}/writeback", "writebackRun", "Publish a run's predictions again", "runs",
		http.StatusBadRequest, http.StatusNotFound, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity), h.writebackRun)
}

func (h *Handlers) listRuns(ctx context.Context, in *listRunsInput) (*body[api.RunList], error) {
	return nil, errNotImplemented
}

func (h *Handlers) createRun(ctx context.Context, in *createRunInput) (*body[api.RunStarted], error) {
	return nil, errNotImplemented
}

func (h *Handlers) getRun(ctx context.Context, in *RunPath) (*body[api.Run], error) {
	return nil, errNotImplemented
}

func (h *Handlers) cancelRun(ctx context.Context, in *RunPath) (*body[cancelled], error) {
	return nil, errNotImplemented
}

func (h *Handlers) deleteRun(ctx context.Context, in *RunPath) (*struct{}, error) {
	return nil, errNotImplemented
}

func (h *Handlers) writebackRun(ctx context.Context, in *writebackInput) (*body[api.Writeback], error) {
	return nil, errNotImplemented
}
