package runners

import (
	"context"
	"io/fs"

	"potato/agent"
	"potato/api"
	"potato/store"
)

// errNotYet is what the surface answers until its part is written.
var errNotYet = api.Unavailablef("not_built", "this part of the server is not built yet")

// Supervisor owns the runs of a study: their queue, their states, their events and what becomes of their predictions.
// It is safe for concurrent use.
type Supervisor struct{}

// Run takes runs out of the queue, follows them to their end and takes up again what an earlier server left. It blocks
// until ctx ends, and leaves what is training then to the server that comes next.
func (s *Supervisor) Run(ctx context.Context) error { return errNotYet }

// Desk is the agent's view of this server; handlers serve it and the local runner calls it.
func (s *Supervisor) Desk() agent.Desk { return nil }

// CreateRun puts a run into the queue, or says what is wrong with the request: Invalid with the field's path, Conflict
// with code unknown_backend, backend_unavailable or local_only.
func (s *Supervisor) CreateRun(ctx context.Context, req api.RunRequest, trigger api.Trigger, by string) (api.RunStarted, error) {
	return api.RunStarted{}, errNotYet
}

// RunByID reads a run, with its place in the queue and its duration up to now. NotFound has code run_not_found.
func (s *Supervisor) RunByID(ctx context.Context, id api.RunID) (api.Run, error) {
	return api.Run{}, errNotYet
}

// Runs reads a page of runs.
func (s *Supervisor) Runs(ctx context.Context, f store.RunFilter) (api.RunList, error) {
	return api.RunList{}, errNotYet
}

// Cancel stops a run that is queued, building or running. Later it is a Conflict with code too_late, and of a run that
// has ended one with code run_over.
func (s *Supervisor) Cancel(ctx context.Context, id api.RunID) (api.Run, error) {
	return api.Run{}, errNotYet
}

// DeleteRun removes a run that has ended with everything of it: rows, predictions, folder.
func (s *Supervisor) DeleteRun(ctx context.Context, id api.RunID) error { return errNotYet }

// Events reads at most limit events of a run after the sequence number.
func (s *Supervisor) Events(ctx context.Context, id api.RunID, after int64, limit int) (api.EventList, error) {
	return api.EventList{}, errNotYet
}

// Subscribe calls emit with every event of a run after the sequence number, the past ones first, and returns nil once the
// run has ended and all of them were handed over. An empty list is a sign of life, every 15 seconds without events.
func (s *Supervisor) Subscribe(ctx context.Context, id api.RunID, after int64, emit func([]api.Event) error) error {
	return errNotYet
}

// WatchRuns calls emit with every run that changed, whole, until ctx ends. Changes that come faster than emit returns are
// merged. The first call has the runs under way; an empty list is a sign of life.
func (s *Supervisor) WatchRuns(ctx context.Context, emit func([]api.Run) error) error { return errNotYet }

// LogSource names one of a run's logs.
type LogSource string

// The logs of a run: the log events, and the files of those names.
const (
	LogEvents LogSource = "log"
	LogStdout LogSource = "stdout"
	LogStderr LogSource = "stderr"
	LogAgent  LogSource = "agent"
)

// LogQuery asks for a stretch of a log: Limit lines from line From (from 1; 0 means the last Limit lines), of those that
// contain Q when it is set.
type LogQuery struct {
	Source LogSource
	From   int64
	Limit  int
	Q      string
}

// Log reads a stretch of a run's log.
func (s *Supervisor) Log(ctx context.Context, id api.RunID, q LogQuery) (api.LogLines, error) {
	return api.LogLines{}, errNotYet
}

// Artifacts lists a run's files.
func (s *Supervisor) Artifacts(ctx context.Context, id api.RunID) (api.ArtifactList, error) {
	return api.ArtifactList{}, errNotYet
}

// OpenArtifact opens one of a run's files for reading. It never leaves the artifacts folder and follows no links.
func (s *Supervisor) OpenArtifact(ctx context.Context, id api.RunID, path string) (fs.File, error) {
	return nil, errNotYet
}

// Metrics is a run's scores as tables and curves.
func (s *Supervisor) Metrics(ctx context.Context, id api.RunID) (api.MetricsReport, error) {
	return api.MetricsReport{}, errNotYet
}

// Predictions reads a page of a run's predictions.
func (s *Supervisor) Predictions(ctx context.Context, id api.RunID, f store.PredictionFilter) (api.PredictionList, error) {
	return api.PredictionList{}, errNotYet
}

// ExportPredictions hands over every prediction that matches, in the order of the page, without holding them in memory.
func (s *Supervisor) ExportPredictions(ctx context.Context, id api.RunID, f store.PredictionFilter, emit func(api.PredictionRow) error) error {
	return errNotYet
}

// Retract takes a run's predictions off the items that show them and returns how many items that were.
func (s *Supervisor) Retract(ctx context.Context, id api.RunID) (int, error) { return 0, errNotYet }

// Writeback publishes a successful run's predictions again, or with dryRun only counts what that would do.
func (s *Supervisor) Writeback(ctx context.Context, id api.RunID, dryRun bool) (api.Writeback, error) {
	return api.Writeback{}, errNotYet
}

// Check says whether a run could start on a backend. NotFound has code unknown_backend.
func (s *Supervisor) Check(ctx context.Context, backend string, req api.CheckRequest) (api.CheckReport, error) {
	return api.CheckReport{}, errNotYet
}

// Status is what the server is doing right now.
func (s *Supervisor) Status(ctx context.Context) (api.Status, error) { return api.Status{}, errNotYet }

// Trainers lists the trainers and whether the local interpreter can run them.
func (s *Supervisor) Trainers(ctx context.Context) (api.TrainerList, error) {
	return api.TrainerList{}, errNotYet
}

// Schemes lists the study's annotation schemes and whether they can be trained.
func (s *Supervisor) Schemes(ctx context.Context) (api.SchemeList, error) {
	return api.SchemeList{}, errNotYet
}

// Backends lists the places where runs train, local first.
func (s *Supervisor) Backends(ctx context.Context) (api.BackendList, error) {
	return api.BackendList{}, errNotYet
}

// AutoRetrain is the state of automatic retraining.
func (s *Supervisor) AutoRetrain(ctx context.Context) (api.AutoRetrain, error) {
	return api.AutoRetrain{}, errNotYet
}
