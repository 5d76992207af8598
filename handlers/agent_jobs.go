package handlers

import (
	"context"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"potato/api"
)

// maxReport bounds the body of a report. Its events may have 1 MiB as their sender counts; escaped as JSON can be, text
// grows six times as long.
const maxReport = 8 << 20

type claimInput struct {
	Patient
	Body api.ClaimRequest
}

type progressInput struct {
	JobPath
	Body api.ProgressReport
}

type heartbeatInput struct {
	JobPath
	Patient
}

type finishInput struct {
	JobPath
	Body api.Finish
}

func (h *Handlers) registerAgentJobs(a huma.API) {
	claim := withBody(agentOperation(http.MethodPost, "/jobs/claim", "claimJob", "Ask for work"))
	claim.Description = "The answer is kept back up to wait_s seconds while there is no work. The same claim_id gets the same job."
	claim.Responses = map[string]*huma.Response{
		"200": {Description: "The job", Content: map[string]*huma.MediaType{
			"application/json": {Schema: a.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[api.Job](), true, "Job")},
		}},
		"204": {Description: "There was no work"},
	}
	huma.Register(a, claim, h.claimJob)

	progress := aboutJob(withBody(agentOperation(http.MethodPost, "/jobs/{run_id}/progress", "reportJobProgress", "Tell what happens in a job")))
	progress.MaxBodyBytes = maxReport
	progress.Description = "Events are numbered from the job's next_seq without gaps. Those that the server has are ignored; the answer tells which comes next. " +
		"Of log events those with a source are appended to the file of that name. An event may have 64 KiB, a report 1 MiB."
	huma.Register(a, progress, h.reportJobProgress)

	beat := aboutJob(agentOperation(http.MethodPost, "/jobs/{run_id}/heartbeat", "heartbeatJob", "Say that the agent lives"))
	beat.Description = "The answer is kept back some seconds, and comes at once when there is a cancel."
	huma.Register(a, beat, h.heartbeatJob)

	finish := aboutJob(withBody(agentOperation(http.MethodPost, "/jobs/{run_id}/finish", "finishJob", "Tell the end of a job")))
	finish.DefaultStatus = http.StatusNoContent
	huma.Register(a, finish, h.finishJob)
}

func (h *Handlers) claimJob(ctx context.Context, in *claimInput) (*huma.StreamResponse, error) {
	requestOf(ctx).stream = true
	waiting, cancel := h.streamContext(ctx)
	defer cancel()
	job, err := h.Supervisor.Claim(waiting, agentOf(ctx), in.Body)
	switch {
	case err != nil && ctx.Err() == nil && waiting.Err() != nil:
		return nil, h.problem(ctx, api.Unavailablef("server_stopping", "The server is going down").WithHint("ask again in a moment"))
	case err != nil:
		return nil, h.problem(ctx, err)
	case job == nil:
		return noContent(), nil
	}
	return reply(job), nil
}

func (h *Handlers) reportJobProgress(ctx context.Context, in *progressInput) (*body[api.Answer], error) {
	answer, err := h.Supervisor.AgentDesk(agentOf(ctx)).Progress(ctx, in.RunID, in.Lease, in.Body.Events)
	return ok(answer), h.problem(ctx, err)
}

func (h *Handlers) heartbeatJob(ctx context.Context, in *heartbeatInput) (*body[api.Answer], error) {
	requestOf(ctx).stream = true
	answer, err := h.Supervisor.AgentDesk(agentOf(ctx)).Heartbeat(ctx, in.RunID, in.Lease)
	return ok(answer), h.problem(ctx, err)
}

func (h *Handlers) finishJob(ctx context.Context, in *finishInput) (*struct{}, error) {
	err := h.Supervisor.AgentDesk(agentOf(ctx)).Finish(ctx, in.RunID, in.Lease, in.Body)
	return nil, h.problem(ctx, err)
}
