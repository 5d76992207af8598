package runners

import (
	"context"
	"path/filepath"

	"potato/agent"
	"potato/api"
)

// Runner gets runs to one type of machine. It brings the agent there and lets it go on; what the agent has to say goes
// to the desk, so a runner knows no states and stores nothing.
//
// The order is Start, then Follow until it returns nil, then nothing more. After a restart of the server the order is
// Follow alone, with the handle that was saved last; a run whose Start saved none is started again. Stop may come at any
// time after Start, more than once, and while Follow runs. A runner is safe for concurrent use by many runs.
//
// The conformance suite in runnertest is this contract as tests, and every runner passes it.
type Runner interface {
	// Check says whether a run could start here. It never fails: what is wrong is in the report.
	Check(ctx context.Context, o CheckOptions) api.CheckReport
	// Start prepares the machine and returns the handle by which Follow finds the work again. It calls j.Save before it
	// changes anything outside the run's folder. An error means that nothing runs and nothing will.
	Start(ctx context.Context, j Job) (api.Handle, error)
	// Follow lets the agent work until the desk has accepted the end of the job, and returns nil then, whatever the end.
	// ctx ending means that we leave and the work goes on: it returns ctx.Err() and may be called again, by this server or
	// the next. Any other error means that the end will not be heard of.
	Follow(ctx context.Context, j Job, h api.Handle) error
	// Stop ends the work without the agent's help, when it does not answer a cancel: first politely, after the grace at
	// once. It returns when the work has ended. Work that has ended already is no error; a machine that cannot be reached is
	// one that says `the worker may still run on HOST`.
	Stop(ctx context.Context, j Job, h api.Handle) error
}

// Fetcher is a runner whose runs leave files on their machine.
type Fetcher interface {
	// Fetch brings the artifacts of a run with a result into its folder and removes what is left of the job, whatever its
	// end. It may be called again, goes on where it was cut off, and follows a Follow that returned nil or a Stop. here says
	// that nothing stays there.
	Fetch(ctx context.Context, j Job, h api.Handle, success bool) (here bool, err error)
}

// CheckOptions say what a check looks for.
type CheckOptions struct {
	Backend string // its name, for the report
	Trainer string // fail when this one cannot run; empty: when none can
	Probe   bool   // slurm: submit a job that imports the trainer's packages
}

// Job is a run as a runner gets it.
type Job struct {
	api.Job
	Backend string // its name in the config
	Host    string // of the agent that claimed it; empty where none has to
	Dir     string // the run's folder: bundle/ is there, artifacts/ is to be filled, job/ is the agent's when it is local
	Desk    agent.Desk
	// Save keeps the handle; called before anything is started, and again when the handle grows.
	Save func(api.Handle) error
	// Step says what the runner does before the agent speaks: the run's step line.
	Step func(text string)
	// Say appends a line to agent.log.
	Say func(line string)
	// Warn adds to the run's warnings; nil where a run has none.
	Warn func(text string)
	// Cancel is closed when the work is to end. The desk's answers tell the agent the same.
	Cancel <-chan struct{}
	// Ended is closed when the desk has accepted the end of the job.
	Ended <-chan struct{}
}

// artifacts is where the files that the worker leaves are kept.
func (j Job) artifacts() string { return filepath.Join(j.Dir, "artifacts") }

// jobDir is the job directory of a run that trains on this machine.
func (j Job) jobDir() string { return filepath.Join(j.Dir, "job") }
