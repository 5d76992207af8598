package handlers

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"potato/api"
	"potato/store"
)

type listRunsInput struct {
	Status  string `query:"status" enum:"queued,building,running,evaluating,success,error,cancelled" doc:"Only runs in this state"`
	Trainer string `query:"trainer" maxLength:"200"`
	Backend string `query:"backend" maxLength:"200"`
	Q       string `query:"q" maxLength:"200" doc:"Text in the id, trainer, scheme, backend, host or error"`
	Sort    string `query:"sort" enum:"-created_at,created_at,-score,score,-duration,duration" default:"-created_at" doc:"score: accuracy on the test split"`
	Cursor  string `query:"cursor" maxLength:"1000" doc:"From the last page's next"`
	Limit   int    `query:"limit" minimum:"1" maximum:"500" default:"50"`
}

type createRunInput struct {
	Body api.RunRequest
	// The page says so, to be told apart from programs that hold the key.
	Client string `header:"X-Potato-Client" enum:"page,api" default:"api" doc:"Who asks; recorded as the run's trigger"`
}

type createRunOutput struct {
	Location string `header:"Location" doc:"Path of the run"`
	Body     api.RunStarted
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
	huma.Register(a, operation(http.MethodGet, "/runs", "listRuns", "List runs", "runs"), h.listRuns)

	create := withBody(operation(http.MethodPost, "/runs", "createRun", "Start a run, or queue it", "runs", http.StatusConflict))
	create.DefaultStatus = http.StatusAccepted
	create.Description = "So that programs written for the annotation tool's own training can start runs here, schemas may also be the name of one."
	create.Middlewares = huma.Middlewares{takeOneScheme}
	huma.Register(a, create, h.createRun)

	huma.Register(a, operation(http.MethodGet, "/runs/{run_id}", "getRun", "One run", "runs", http.StatusNotFound), h.getRun)
	huma.Register(a, operation(http.MethodPost, "/runs/{run_id}/cancel", "cancelRun", "Cancel a run", "runs",
		http.StatusNotFound, http.StatusConflict), h.cancelRun)
	del := operation(http.MethodDelete, "/runs/{run_id}", "deleteRun", "Delete a finished run with its files and predictions", "runs",
		http.StatusNotFound, http.StatusConflict)
	del.DefaultStatus = http.StatusNoContent
	huma.Register(a, del, h.deleteRun)
	huma.Register(a, withBody(operation(http.MethodPost, "/runs/{run_id}/writeback", "writebackRun", "Publish a run's predictions again", "runs",
		http.StatusNotFound, http.StatusConflict)), h.writebackRun)
}

func (h *Handlers) listRuns(ctx context.Context, in *listRunsInput) (*body[api.RunList], error) {
	f := store.RunFilter{
		Trainer: in.Trainer, Backend: in.Backend, Q: in.Q, Cursor: in.Cursor, Limit: in.Limit,
		Sort: strings.Replace(in.Sort, "score", "test_accuracy", 1),
	}
	if in.Status != "" {
		f.Status = []api.RunStatus{api.RunStatus(in.Status)}
	}
	list, err := h.Supervisor.Runs(ctx, f)
	return ok(list), h.problem(ctx, err)
}

func (h *Handlers) createRun(ctx context.Context, in *createRunInput) (*createRunOutput, error) {
	started, err := h.Supervisor.CreateRun(ctx, in.Body, api.Trigger(in.Client), "admin")
	if err != nil {
		return nil, h.problem(ctx, err)
	}
	return &createRunOutput{Location: Prefix + "/runs/" + string(started.RunID), Body: started}, nil
}

func (h *Handlers) getRun(ctx context.Context, in *RunPath) (*body[api.Run], error) {
	run, err := h.Supervisor.RunByID(ctx, in.RunID)
	return ok(run), h.problem(ctx, err)
}

// What changes a run is carried through though the client may have left: half of it helps nobody.

func (h *Handlers) cancelRun(ctx context.Context, in *RunPath) (*body[cancelled], error) {
	_, err := h.Supervisor.Cancel(context.WithoutCancel(ctx), in.RunID)
	return ok(cancelled{RunID: in.RunID, Cancelled: true}), h.problem(ctx, err)
}

func (h *Handlers) deleteRun(ctx context.Context, in *RunPath) (*struct{}, error) {
	return nil, h.problem(ctx, h.Supervisor.DeleteRun(context.WithoutCancel(ctx), in.RunID))
}

func (h *Handlers) writebackRun(ctx context.Context, in *writebackInput) (*body[api.Writeback], error) {
	done, err := h.Supervisor.Writeback(context.WithoutCancel(ctx), in.RunID, in.Body.DryRun)
	return ok(done), h.problem(ctx, err)
}
