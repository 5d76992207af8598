package agent

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"potato/api"
)

// PollOptions say for whom an agent works and where. Client, Workdir and what Job needs are needed, the rest has defaults.
type PollOptions struct {
	Client  *api.Client
	Workdir string // everything of the agent lies below it
	Version string // of the program, for the server's list
	Once    bool   // leave after one job
	Keep    bool   // keep job directories, bundles included

	// Job says how jobs are worked on: the interpreter, the worker and the times. Its folders, its desk and its cancel
	// are the agent's own.
	Job Options

	// Stop, when it is closed, ends the agent cleanly: a run under way is cancelled, which its server is told.
	Stop <-chan struct{}
	// Report, when set, hears what the agent is doing; without a run it waits for one.
	Report func(run api.RunID, text string)
	Log    *slog.Logger

	ClaimWait   time.Duration // how long the server may keep a question for work; default 30 s
	RetryAfter  time.Duration // pause after a question that got no answer, doubled each time; default 1 s
	LongestWait time.Duration // and the most of it; default 15 s
	SayEvery    time.Duration // how often a run's log says how far its download is; default 5 s
	StopTimeout time.Duration // how long the server may take to hear of the end once the worker's grace is over; default 30 s
}

// poller is one call of Poll.
type poller struct {
	o        PollOptions
	log      *slog.Logger
	id       string
	launcher Launcher
	answered bool // the server has, at least once
}

// Poll asks the server for jobs and does them, one at a time, until it is stopped, or for good reason gives up: the
// token is not valid, or what answers is no server. Jobs that an earlier agent left in the workdir are gone on with first.
//
// ctx ending ends everything at once, the worker of a run under way too; the run's end is told by the next agent that
// is started on the workdir. Only one agent at a time works in a workdir.
func Poll(ctx context.Context, o PollOptions) (err error) {
	o.ClaimWait = cmp.Or(o.ClaimWait, 30*time.Second)
	o.RetryAfter = cmp.Or(o.RetryAfter, time.Second)
	o.LongestWait = cmp.Or(o.LongestWait, 15*time.Second)
	o.SayEvery = cmp.Or(o.SayEvery, 5*time.Second)
	o.StopTimeout = cmp.Or(o.StopTimeout, 30*time.Second)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Job.Log = cmp.Or(o.Job.Log, o.Log)
	p := &poller{o: o, log: o.Log, launcher: o.Job.Launcher}
	if p.launcher == nil {
		p.launcher = Process{}
	}
	if p.o.Workdir, err = filepath.Abs(o.Workdir); err != nil {
		return err
	}
	unlock, err := lockWorkdir(p.o.Workdir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if p.id, err = agentID(p.o.Workdir); err != nil {
		return err
	}
	return p.run(ctx)
}

func (p *poller) run(ctx context.Context) error {
	// Whatever the server says meanwhile: a worker that runs must not lose its lease.
	for _, job := range p.held() {
		p.log.Info("going on with a run", "run", job.RunID)
		done, err := p.work(ctx, job)
		if err != nil || p.stopped() || done && p.o.Once {
			return err
		}
	}
	for {
		job, err := p.ask(ctx)
		if err != nil || job == nil {
			return err
		}
		p.log.Info("taking a run", "run", job.RunID, "trainer", job.Spec.Trainer)
		done, err := p.work(ctx, *job)
		if err != nil || p.stopped() || done && p.o.Once {
			return err
		}
	}
}

// work does a job. It reports whether the job is out of the way, whatever its end; one that is not is kept until the
// server answers again.
func (p *poller) work(ctx context.Context, job api.Job) (done bool, err error) {
	if err := p.keep(job); err != nil {
		return false, err
	}
	o := p.o.Job
	o.Dir, o.Desk, o.Cancel = p.dir(job.RunID), p.desk(), p.o.Stop
	o.Artifacts, o.TellLog = p.artifacts(job.RunID), true
	late, err := p.bounded(ctx, graceOf(job.GraceSeconds)+p.o.StopTimeout, func(ctx context.Context) error { return Work(ctx, job, o) })
	switch {
	case err == nil:
		return true, p.clear(job.RunID)
	case late:
		p.log.Warn("leaving at once; the worker is ended, and the next agent that is started here tells the server", "run", job.RunID)
		return false, errors.Join(context.Canceled, p.end(job.RunID))
	case isOver(err):
		p.log.Warn("the run is not this agent's any more", "run", job.RunID, "err", err)
		return true, p.clear(job.RunID)
	case isTokenError(err):
		return false, errors.Join(p.note(job, api.Unavailablef("killed", "The agent's token was replaced during the run, so the worker was stopped").
			WithHint("start the agent with the new token, then the run")), err)
	case api.HasCode(err, "server_unreachable"):
		what := "the run was cancelled here"
		if o.Detach {
			what = "its job goes on"
		}
		p.log.Warn("the server did not answer for too long; "+what+", and the server will be told", "run", job.RunID)
		return false, nil
	}
	// The job directory cannot be used, or the server does not take the end of the job. The next job would fare no better.
	f := api.Finish{ErrorCode: "start_failed", Error: "The agent could not work on the run: " + err.Error(), Host: hostname()}
	if api.IsDiskFull(err) {
		f.ErrorCode = "disk_full"
	}
	return false, errors.Join(err, o.Desk.Finish(ctx, job, f), p.clear(job.RunID))
}

// bounded calls do with a context that ends so long after the agent was told to stop, and reports whether it did.
func (p *poller) bounded(ctx context.Context, limit time.Duration, do func(context.Context) error) (late bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-done:
			return
		case <-p.o.Stop:
		}
		select {
		case <-done:
		case <-time.After(limit):
			cancel()
		}
	})
	err = do(ctx)
	close(done)
	wg.Wait()
	return ctx.Err() != nil, err
}

// end ends what runs of a job.
func (p *poller) end(id api.RunID) error {
	var h api.Handle
	if !readJSON(filepath.Join(p.dir(id), handleFile), &h) {
		return nil
	}
	return p.launcher.Signal(context.Background(), h, SignalKill)
}

func (p *poller) stopped() bool {
	select {
	case <-p.o.Stop:
		return true
	default:
		return false
	}
}

func (p *poller) report(run api.RunID, text string) {
	if p.o.Report != nil {
		p.o.Report(run, text)
	}
}

// isOver reports that the run goes on elsewhere, or not at all.
func isOver(err error) bool {
	var e *api.Error
	return api.HasCode(err, "run_over") || api.HasCode(err, "lease_moved") || api.HasCode(err, "run_not_found") ||
		errors.As(err, &e) && e.Kind == api.KindGone
}

func isTokenError(err error) bool {
	var e *api.Error
	return errors.As(err, &e) && e.Kind == api.KindUnauthenticated
}
