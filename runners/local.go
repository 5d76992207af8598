package runners

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"potato/agent"
	"potato/api"
	"potato/project"
)

// LocalOptions are what the local runner stands on. Config, Python and Shim are needed, the rest has defaults.
type LocalOptions struct {
	Config *project.Config
	Python *Python
	Shim   []string        // argv of the program whose body is agent.Exec
	Warm   *agent.WarmPool // nil: no worker is kept warm
	Log    *slog.Logger
	Poll   time.Duration // how often the worker's files are looked at; default the agent's
}

// Local trains on this machine: the agent works inside the server and launches a process.
type Local struct{ o LocalOptions }

// NewLocal makes the local runner.
func NewLocal(o LocalOptions) *Local {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Local{o: o}
}

// Start implements Runner: the interpreter and the worker's files are made ready. The worker is launched by Follow.
func (l *Local) Start(ctx context.Context, j Job) (api.Handle, error) {
	j.Step("preparing the interpreter")
	if _, _, err := l.o.Python.prepare(ctx, j.Step, j.Say); err != nil {
		return api.Handle{}, err
	}
	host, err := os.Hostname()
	if err != nil {
		return api.Handle{}, fmt.Errorf("read the host's name: %w", err)
	}
	h := api.Handle{Backend: j.Backend, Dir: j.jobDir(), Host: host}
	return h, j.Save(h)
}

// Follow implements Runner. Whether the worker is to be launched, is running or has ended, the agent reads in the job's
// folder.
func (l *Local) Follow(ctx context.Context, j Job, h api.Handle) error {
	o, err := l.work(ctx, j, h)
	if err != nil {
		return err
	}
	return agent.Work(ctx, j.Job, o)
}

func (l *Local) work(ctx context.Context, j Job, h api.Handle) (agent.Options, error) {
	prepare := l.o.Python.prepare
	if h.Pid != 0 {
		prepare = l.o.Python.prepared // it runs: nothing of what it needed has to be there any more
	}
	python, worker, err := prepare(ctx, j.Step, func(string) {})
	if err != nil {
		return agent.Options{}, err
	}
	return agent.Options{
		Dir: h.Dir, Desk: j.Desk, Backend: j.Backend, Python: python, WorkerPath: worker,
		Artifacts: j.artifacts(), ArtifactURI: j.artifacts(),
		Shim: l.o.Shim, Warm: l.o.Warm, Save: j.Save, Cancel: j.Cancel, Log: l.o.Log, Poll: l.o.Poll,
	}, nil
}

// Stop implements Runner: a second leg that needs no agent, only the handle.
func (l *Local) Stop(ctx context.Context, j Job, h api.Handle) error {
	p := agent.Process{}
	if h.Marker == "" {
		return nil // nothing was launched
	}
	if err := p.Signal(ctx, h, agent.SignalTerm); err != nil {
		return err
	}
	limit := time.NewTimer(project.Seconds(j.GraceSeconds))
	defer limit.Stop()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		if st, err := p.State(ctx, h); err == nil && st.Phase != agent.StateRunning {
			return nil
		}
		select {
		case <-look.C:
		case <-limit.C:
			return p.Signal(ctx, h, agent.SignalKill)
		case <-ctx.Done():
			return errors.Join(ctx.Err(), p.Signal(context.WithoutCancel(ctx), h, agent.SignalKill))
		}
	}
}

// KeepWarm keeps a worker ready for the trainer, so that its imports are done when a run comes. It costs memory, so it is
// asked for only while somebody uses the Training page.
func (l *Local) KeepWarm(ctx context.Context, trainer string) error {
	if l.o.Warm == nil || l.o.Config.ModelTraining.WarmWorker == project.WarmWorkerOff {
		return nil
	}
	if v := l.o.Python.venv(); v != nil && !v.ready() {
		return nil // the first run makes it
	}
	python, worker, err := l.o.Python.prepare(ctx, func(string) {}, func(string) {})
	if err != nil {
		return err
	}
	return l.o.Warm.Start(ctx, agent.WarmSpec{
		Trainer: trainer, Python: python, WorkerPath: worker, NumThreads: l.o.Config.ModelTraining.NumThreads, Shim: l.o.Shim,
	})
}
