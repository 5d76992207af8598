package agent

import (
	"context"

	"potato/api"
)

// Desk is the agent's view of the server. Two implementations ship: the HTTP client in package api, and the
// supervisor's own, which the local runner calls directly.
//
// Every method may be called again after an error or a restart: progress is ordered by sequence number, the rest is
// idempotent. Errors with code run_over or lease_moved mean that this agent has nothing more to do with the run.
type Desk interface {
	// Bundle makes the run's bundle available, under dir when it has to be copied, and returns its folder.
	Bundle(ctx context.Context, job api.Job, dir string) (string, error)
	// Progress hands over events with contiguous Seq. The answer's NextSeq is the first one the server still lacks.
	Progress(ctx context.Context, job api.Job, events []api.Event) (api.Answer, error)
	// Heartbeat says that the agent lives. It may wait some seconds, and answers at once when there is a cancel.
	Heartbeat(ctx context.Context, job api.Job) (api.Answer, error)
	// Predictions hands over the whole predictions file, or nothing of it.
	Predictions(ctx context.Context, job api.Job, path string) error
	// Finish is the last word on the job; after it returned nil the job directory is no longer needed.
	Finish(ctx context.Context, job api.Job, f api.Finish) error
}
