package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"potato/api"
)

const launches = 3 // how often a worker is started that does not even begin

// work is one call of Work: the loop that brings a job forward, with three goroutines beside it that send events, send
// heartbeats and keep watch.
type work struct {
	o      Options
	job    api.Job
	log    *slog.Logger
	own    owner
	out    *outbox
	follow follower
	handle api.Handle

	mu      sync.Mutex
	end     ending
	contact time.Time // when the server last answered
	silence time.Duration
	sent    int64 // first event the server lacks

	first    sync.Once
	answered chan struct{} // closed with the server's first answer

	wake  chan struct{}      // something changed that the loop waits for
	hurry chan struct{}      // closed when the worker has ended: no more gathering
	stop  context.CancelFunc // see arm
	leave func()             // ends the goroutines and waits for them

	resultAt           time.Time // when its result was there; zero: not yet
	terminated, killed time.Time // when the worker was told to end; zero: not yet
}

func newWork(ctx context.Context, job api.Job, o Options, own owner, out *outbox) *work {
	w := &work{
		o: o, job: job, log: o.runLog(job.RunID, out), own: own, out: out,
		follow: follower{dir: o.Dir, logLimit: o.LogLimit, maxLine: maxLine, at: out.at},
		end:    ending{grace: graceOf(job.GraceSeconds)}, contact: time.Now(), silence: o.ServerLossTimeout, sent: max(job.NextSeq, out.first),
		answered: make(chan struct{}), wake: make(chan struct{}, 1), hurry: make(chan struct{}),
	}
	select {
	case <-o.Cancel: // before anything is begun
		w.end.cancelled = true
	default:
	}
	w.arm(ctx)
	beside, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { w.send(beside) })
	wg.Go(func() { w.heartbeat(beside) })
	wg.Go(func() { w.watch(beside) })
	w.leave = func() {
		cancel()
		wg.Wait()
		w.stop()
	}
	return w
}

// run brings the job to its end from wherever it stands.
func (w *work) run(ctx context.Context) error {
	w.introduce()
	o, err := w.outcome(ctx)
	if err != nil {
		return err
	}
	return w.conclude(ctx, o)
}

// outcome sees the worker to its end and writes down what came of it, for whoever has to report it in our place.
func (w *work) outcome(ctx context.Context) (outcome, error) {
	var o outcome
	path := filepath.Join(w.o.Dir, finishFile)
	if readJSON(path, &o) {
		return o, nil
	}
	state, err := w.worker(ctx)
	if err == nil && state.Exit.Reason == ReasonTerminated {
		// An earlier agent may have ended it on a cancel that we have not heard of yet.
		w.await(ctx, w.answered)
	}
	end := w.ending()
	switch {
	case ctx.Err() != nil:
		return o, ctx.Err()
	case end.over != nil:
		return o, end.over
	case w.leavesJob(end):
		return o, api.Unavailablef("server_unreachable", "The server did not answer for %.0f s; the agent leaves, and the job goes on", w.o.ServerLossTimeout.Seconds())
	case err != nil && !end.any():
		o = w.failure(err)
	default:
		o = w.decide(state, end)
		if c := state.Exit.Code; o.Predictions != "" && (c == nil || *c != 0) {
			e := logEvent("warning", "The worker ended with an error after it had written its result")
			if err := w.out.append(w.follow.record(e)); err != nil {
				return o, err
			}
		}
	}
	err = writeJSON(path, o, true)
	if errors.Is(err, fs.ErrNotExist) {
		return w.removed(), nil
	}
	if err != nil && !isDiskFull(err) {
		return o, err
	}
	return o, nil
}

// await waits for done, or for a reason to end the work.
func (w *work) await(ctx context.Context, done <-chan struct{}) {
	for !w.ending().any() {
		select {
		case <-ctx.Done():
			return
		case <-done:
			return
		case <-w.wake:
		}
	}
}

// worker starts the worker unless that was done, and attends it to its end.
func (w *work) worker(ctx context.Context) (State, error) {
	started := readJSON(filepath.Join(w.o.Dir, handleFile), &w.handle)
	why := api.Unavailablef("start_failed", "The worker could not be started: its shim ended before it began")
	for range launches {
		if !started {
			if err := w.start(ctx); err != nil {
				return State{Phase: StateUnstarted}, err
			}
		}
		state, err := w.attend(ctx)
		if err != nil || state.Phase != StateUnstarted || w.ending().any() {
			return state, err
		}
		started = false
		if state.Cause != nil {
			why = state.Cause
		}
	}
	return State{}, why
}

// start fetches the bundle, writes the spec and launches the worker.
func (w *work) start(ctx context.Context) error {
	if err := w.say("fetching the bundle"); err != nil {
		return err
	}
	var bundle string
	stopping := w.arm(ctx)
	if w.ending().any() {
		return context.Canceled
	}
	err := w.insist(stopping, "bundle", func(ctx context.Context) (err error) {
		bundle, err = w.o.Desk.Bundle(withSteps(w.retries(ctx), w.say), w.job, w.o.Dir)
		return err
	})
	if err != nil {
		return err
	}
	spec := w.spec(bundle)
	path := filepath.Join(w.o.Dir, specFile)
	b, err := json.MarshalIndent(spec, "", "  ")
	if err != nil {
		return fmt.Errorf("write spec: %w", err)
	}
	if err := WriteFile(path, append(b, '\n'), false); err != nil {
		return fmt.Errorf("write spec: %w", err)
	}
	if err := w.say("starting the worker"); err != nil {
		return err
	}
	if stopping.Err() != nil {
		return stopping.Err()
	}
	h, err := w.o.Launcher.Launch(ctx, Launch{
		RunID: w.job.RunID, Attempt: spec.Attempt, Backend: w.o.Backend, Dir: w.o.Dir, Spec: path, Trainer: spec.Trainer, Python: w.o.Python, WorkerPath: w.o.WorkerPath, Env: w.o.Env,
		NumThreads: deref(spec.Limits.NumThreads), MaxRAMMB: deref(spec.Limits.MaxRAMMB), LeaseFile: filepath.Join(w.o.Dir, ownerFile),
		LeaseTimeout: w.o.LeaseTimeout, Grace: w.ending().grace, Shim: w.o.Shim, Warm: w.o.Warm, Hold: w.o.Hold, Save: w.save,
	})
	if err != nil {
		// Whatever was begun must not go on: this attempt is about to be reported as failed.
		if w.handle.Marker != "" {
			err = errors.Join(err, w.o.Launcher.Signal(context.WithoutCancel(ctx), w.handle, SignalKill))
		}
		return err
	}
	w.handle = h
	if h.Pid != 0 { // a job of a scheduler is told of by its launcher
		w.log.Debug("the worker is on its way", "pid", h.Pid)
	}
	return nil
}

// spec is what the worker reads: the job's, with the folders of this machine.
func (w *work) spec(bundle string) api.Spec {
	s := w.job.Spec
	s.V = max(s.V, 1)
	s.RunID, s.Attempt = w.job.RunID, w.out.at.Attempt
	s.BundleDir, s.Workdir, s.EventsFile = bundle, w.o.Artifacts, filepath.Join(w.o.Dir, eventsFile)
	s.CheckpointDir = filepath.Join(w.o.Dir, checkpointDir)
	if own := filepath.Join(bundle, "trainers"); s.TrainersDir == nil && isDir(own) { // a study's own come with the bundle
		s.TrainersDir = &own
	}
	if s.Params == nil {
		s.Params = map[string]any{}
	}
	if s.Limits.Device == "" {
		s.Limits.Device = "auto"
	}
	return s
}

func (w *work) save(h api.Handle) error {
	w.handle = h
	if err := writeJSON(filepath.Join(w.o.Dir, handleFile), h, false); err != nil {
		return fmt.Errorf("save handle: %w", err)
	}
	return w.o.Save(h)
}

// say puts a step of the agent's own into the run's events.
func (w *work) say(step string) error {
	w.log.Debug(step)
	e := api.Event{V: 1, Event: api.EventStatus, T: now(), State: "running", Step: step}
	return w.out.append(w.follow.record(e))
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
