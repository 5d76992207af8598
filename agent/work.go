package agent

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"potato/api"
)

// Options say how a job is worked on. Dir, Desk, Python, WorkerPath and Shim are needed, the rest has defaults.
type Options struct {
	Dir         string   // the job directory; made when it is not there
	Desk        Desk     // the server
	Launcher    Launcher // default: Process
	Backend     string   // name in the handle
	Python      string   // interpreter of the worker
	PythonKey   string   // config key that a hint about the interpreter names; default model_training.python
	WorkerPath  string   // worker.py
	Artifacts   string   // where the worker leaves its files; default Dir/artifacts
	ArtifactURI string   // what Finish says of them; default host:Artifacts
	Env         []string // whole environment of the worker; default WorkerEnv()
	Shim        []string // argv of the program whose body is Exec
	Warm        *WarmPool
	Hold        []*os.File             // files that the worker's shim keeps open as long as it lives: what is locked with them stays locked
	Detach      bool                   // when the server is lost the agent leaves, and the worker goes on
	Save        func(api.Handle) error // keeps the handle; called before anything is started, and again when it grows
	Cancel      <-chan struct{}        // closed when the work is to end; a cancel in the desk's answers does the same
	Log         *slog.Logger
	TellLog     bool // what the agent says of the run goes to the server as well, see runLogger

	LeaseTimeout      time.Duration // the worker is ended on its machine when no agent lives for so long; default: the job's heartbeat time-out, else 120 s
	ServerLossTimeout time.Duration // the agent cancels the run when the server does not answer for so long; default 300 s (G5)
	LastWords         time.Duration // what a server that was lost then has left to take the end of the job; default 10 s
	HeartbeatEvery    time.Duration // least time between two heartbeats; default 500 ms
	SendEvery         time.Duration // least time between two progress calls while the worker runs; default 100 ms
	RetryAfter        time.Duration // pause after a first failed call, doubled each time up to 5 s; default 100 ms
	Poll              time.Duration // how often files and worker are looked at; default 25 ms
	LogLimit          int64         // bytes of log that are sent on in a run; default 100 MB
}

// Work does the job in o.Dir from wherever it stands: nothing there yet, a worker running that another agent started,
// or one that has ended meanwhile. It returns nil when the desk has accepted the end of the job, whatever the end.
//
// ctx ending means that we leave and the work goes on: Work returns ctx.Err() and can be called again, by this process
// or another. An error with code run_over, token_revoked or lease_moved means that the job is no longer ours, one with
// code server_unreachable that the server was silent for too long; the worker has been stopped then.
//
// Lines of the worker's output become log events with Source "stdout" or "stderr". Msg holds one line or several,
// without the last newline: whoever appends it to a file adds one.
func Work(ctx context.Context, job api.Job, o Options) error {
	o = o.withDefaults(job)
	for _, dir := range []string{o.Dir, o.Artifacts} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	own, err := takeOver(o.Dir, job)
	if err != nil {
		return err
	}
	out, err := openOutbox(o.Dir, job.NextSeq, job.Spec.Attempt)
	if err != nil {
		return err
	}
	defer out.close() //nolint:errcheck // each write was checked
	w := newWork(ctx, job, o, own, out)
	err = w.run(ctx)
	w.leave()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func (o Options) withDefaults(job api.Job) Options {
	o.Artifacts = cmp.Or(o.Artifacts, filepath.Join(o.Dir, "artifacts"))
	o.ArtifactURI = cmp.Or(o.ArtifactURI, hostname()+":"+o.Artifacts)
	o.PythonKey = cmp.Or(o.PythonKey, "model_training.python")
	o.LeaseTimeout = cmp.Or(o.LeaseTimeout, seconds(job.HeartbeatTimeoutS), 120*time.Second)
	o.ServerLossTimeout = cmp.Or(o.ServerLossTimeout, 300*time.Second)
	o.LastWords = cmp.Or(o.LastWords, 10*time.Second)
	o.HeartbeatEvery = cmp.Or(o.HeartbeatEvery, 500*time.Millisecond)
	o.SendEvery = cmp.Or(o.SendEvery, 100*time.Millisecond)
	o.RetryAfter = cmp.Or(o.RetryAfter, 100*time.Millisecond)
	o.Poll = cmp.Or(o.Poll, 25*time.Millisecond)
	o.LogLimit = cmp.Or(o.LogLimit, api.MaxLogBytes)
	if o.Launcher == nil {
		o.Launcher = Process{}
	}
	if o.Env == nil {
		o.Env = WorkerEnv()
	}
	if o.Save == nil {
		o.Save = func(api.Handle) error { return nil }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}
