package agent

import (
	"context"
	"os"
	"time"

	"potato/api"
)

// Launcher starts a worker, says how it stands and ends it. Process starts it on this machine, Sbatch submits it to SLURM.
//
// The order is Launch, then State until it is no longer StateRunning. All methods work from the handle and the job
// directory alone, so a new agent can go on with what another one started.
type Launcher interface {
	// Launch starts the worker. It calls l.Save before it changes anything outside the job directory, and again when
	// the handle grows. It returns as soon as the worker is on its way; a worker that fails later shows in State.
	Launch(ctx context.Context, l Launch) (api.Handle, error)
	// State never blocks for long. Its error means "no answer", which is never "gone".
	State(ctx context.Context, h api.Handle) (State, error)
	// Signal ends the worker, politely or at once. A worker that has already ended is no error.
	Signal(ctx context.Context, h api.Handle, s Signal) error
}

// Launch is what a launcher needs to start a worker.
type Launch struct {
	RunID        api.RunID
	Attempt      int      // of the run; a scheduler that starts the worker anew counts on from it
	Backend      string   // named in the handle
	Dir          string   // the job directory, absolute
	Spec         string   // path of spec.json
	Trainer      string   // for a warm worker, which has one trainer imported
	Python       string   // interpreter: a path or a name on PATH
	WorkerPath   string   // worker.py
	Env          []string // whole environment of the worker, NAME=value, without secrets; see WorkerEnv
	NumThreads   int      // 0: as the machine likes
	MaxRAMMB     int64    // 0: no limit
	LeaseFile    string   // touched by the agent while it lives
	LeaseTimeout time.Duration
	Grace        time.Duration // between TERM and KILL when the shim ends the worker by itself
	Shim         []string      // argv of the program whose body is Exec, e.g. {"/usr/bin/potato", "exec"}
	Warm         *WarmPool     // a worker that waits there is used when it fits; may be nil
	Hold         []*os.File    // kept open by the shim as long as it lives
	Save         func(api.Handle) error
}

// Phase says whether a worker goes on.
type Phase string

// The phases of a worker. StateUnstarted means that the handle was saved and nothing was started under it, nor will be.
// StateLost means that neither the worker's shim nor an exit_code is there: it was killed, and never a success.
const (
	StateUnstarted Phase = "unstarted"
	StateRunning   Phase = "running"
	StateEnded     Phase = "ended"
	StateLost      Phase = "lost"
)

// State is how a worker stands; Exit is set when it ended.
type State struct {
	Phase Phase
	Exit  Exit
	Cause *api.Error    // why it ended, where its launcher knows more than Exit shows; may be nil
	Late  time.Duration // its files may be late by so much, on network storage
	Says  []api.Event   // news for the run's events, each said once
}

// Exit is the content of exit_code, which the shim writes last of all.
type Exit struct {
	Code       *int    `json:"code"`             // nil when a signal ended the worker
	Signal     string  `json:"signal,omitempty"` // e.g. KILL
	Reason     string  `json:"reason,omitempty"` // why the shim ended the worker, one of the Reason constants
	Message    string  `json:"message,omitempty"`
	FinishedAt float64 `json:"finished_at"`
	MaxRSSMB   int64   `json:"max_rss_mb"`

	SlurmJob string `json:"slurm_job,omitempty"` // whose exit it is, and after how many restarts
	Restart  int    `json:"restart,omitempty"`
	Node     string `json:"node,omitempty"`
}

// Why a shim ended its worker, or could not start it.
const (
	ReasonOutOfMemory = "out_of_memory"
	ReasonServerLost  = "server_lost"
	ReasonTerminated  = "terminated" // TERM was forwarded to it
	ReasonStartFailed = "start_failed"
	ReasonNoPython    = "python_missing" // the interpreter, where only the shim can look for it
	ReasonPrelude     = "prelude_failed" // Message is the line
	ReasonNoSrun      = "slurm_missing"  // a job on several nodes needs it
)

// Signal is how a worker is ended.
type Signal int

// The signals. SignalTerm goes to the worker's process group, SignalKill to every process of the job.
const (
	SignalTerm Signal = iota
	SignalKill
)
