package supervisor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"potato/api"
	"potato/project"
	"potato/runners"
	"potato/store"
)

// stopTime is how long a runner may take to end work that its agent does not end.
const stopTime = 60 * time.Second

// train has the run's runner start the work, or follow what was started, until the agent has reported its end. It returns
// nil when there is a result with its predictions, and then the run is evaluating.
func (s *Supervisor) train(ctx context.Context, a *active, r store.Run) error {
	if !a.finished() {
		if err := s.work(ctx, a, r); err != nil {
			s.cleanUp(ctx, a)
			return err
		}
	}
	err := s.conclude(ctx, a)
	if err != nil {
		s.cleanUp(ctx, a)
	}
	return err
}

// work runs the runner and, when the run is to end and nobody reports that it did, ends it without the agent's help.
func (s *Supervisor) work(ctx context.Context, a *active, r store.Run) error {
	runner, job, err := s.job(ctx, a, r)
	if err != nil {
		if runner != nil {
			err = errors.Join(err, s.stopWork(ctx, a, runner, job))
		}
		return err
	}
	following, leave := context.WithCancel(ctx)
	defer leave()
	handle := r.Handle
	done := make(chan error, 1)
	go func() {
		var err error
		if handle == nil {
			var h api.Handle
			starting, release := a.untilStop(following)
			h, err = runner.Start(starting, job)
			release()
			if err != nil {
				done <- err
				return
			}
			handle = &h
		}
		a.expect(true)
		defer a.expect(false)
		done <- runner.Follow(following, job, *handle)
	}()
	select {
	case err := <-done:
		return s.followed(ctx, a, runner, job, err)
	case <-a.stop:
	}
	asked := time.Now()
	for _, patience := range []func(*active, time.Time) time.Duration{s.patience, s.slack} {
		limit := time.NewTimer(patience(a, asked))
		select {
		case err := <-done:
			limit.Stop()
			return s.followed(ctx, a, runner, job, err)
		case <-limit.C:
		}
	}
	leave()
	if err := <-done; err == nil {
		return s.followed(ctx, a, runner, job, nil) // it ended at the last moment
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if a.wasReleased() {
		return context.Canceled // nothing was begun
	}
	return s.stopWork(ctx, a, runner, job)
}

// patience is how long the worker has to end after a cancel.
func (s *Supervisor) patience(a *active, _ time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.silent || a.released {
		return 0
	}
	return s.grace()
}

// slack is how long an agent has to report the end after that. One that has claimed the run and has not spoken since the
// cancel has none (H8); one that has may just be ending a worker that used all of its grace.
func (s *Supervisor) slack(a *active, asked time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.silent, a.released:
		return 0
	case a.agentID == "":
		return s.o.StopSlack
	case a.spoke.Before(asked):
		return 0
	}
	return s.o.RemoteSlack
}

// followed looks at what Follow returned. Work whose end will not be heard of is ended, so that it holds no machine.
func (s *Supervisor) followed(ctx context.Context, a *active, runner runners.Runner, job runners.Job, err error) error {
	if err == nil || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	return errors.Join(err, s.stopWork(ctx, a, runner, job))
}

// stopWork ends the work by the runner alone. That the worker may still run is told in the run's warnings.
func (s *Supervisor) stopWork(ctx context.Context, a *active, runner runners.Runner, job runners.Job) error {
	r, err := s.db.RunByID(ctx, a.id)
	if err != nil || r.Handle == nil {
		return err
	}
	limit, cancel := context.WithTimeout(ctx, s.grace()+stopTime)
	defer cancel()
	if err := runner.Stop(limit, job, *r.Handle); err != nil {
		s.log.Warn("cannot stop the work", "run", a.id, "err", err)
		return s.update(ctx, a.id, store.RunUpdate{Warn: []string{api.AsError(err).Message}})
	}
	return nil
}

// job is the run as its runner and its agent get it.
func (s *Supervisor) job(ctx context.Context, a *active, r store.Run) (runners.Runner, runners.Job, error) {
	b, ok := s.backend(r.Backend)
	runner := s.o.Runners[b.Type]
	if !ok || runner == nil {
		return nil, runners.Job{}, api.Conflictf("start_failed", "the backend %s of this run is no longer in the config", r.Backend).WithHint("%s", stillThere(r))
	}
	spec, err := readSpec(s.folder(a.id).spec())
	if err != nil {
		return runner, runners.Job{Job: api.Job{RunID: a.id, GraceSeconds: s.grace().Seconds()}}, fmt.Errorf("read the run's spec: %w", err)
	}
	spec.BundleDir, spec.Workdir, spec.EventsFile = "", "", ""
	keep := context.WithoutCancel(ctx)
	return runner, runners.Job{
		Job: api.Job{
			RunID: a.id, Lease: a.lease, Spec: spec, GraceSeconds: s.grace().Seconds(),
			HeartbeatTimeoutS: s.heartbeatTimeout(r.Backend).Seconds(), BundleDigest: r.BundleDigest, NextSeq: a.log.nextSeq(),
		},
		Backend: r.Backend, Host: a.host, Dir: string(s.folder(a.id)), Desk: desk{s: s}, Cancel: a.stop, Ended: a.done,
		Save: func(h api.Handle) error { return s.update(keep, a.id, store.RunUpdate{Handle: &h, Host: &h.Host}) },
		Step: func(text string) {
			if err := s.update(keep, a.id, store.RunUpdate{Step: &text}); err != nil {
				s.log.Warn("cannot store the step", "run", a.id, "err", err)
			}
		},
		Say: func(line string) { s.note(keep, a, "info", line) },
		Warn: func(text string) {
			if err := s.update(keep, a.id, store.RunUpdate{Warn: []string{text}}); err != nil {
				s.log.Warn("cannot store a warning", "run", a.id, "err", err)
			}
		},
	}, nil
}

// conclude decides what came of the work, from what is stored: a result with predictions leads on, whatever happened
// after it; everything else is the end.
func (s *Supervisor) conclude(ctx context.Context, a *active) error {
	r, err := s.db.RunByID(ctx, a.id)
	if err != nil {
		return err
	}
	switch {
	case r.NPredictions != nil && r.Result != nil:
		step, message := "computing scores", "Computing scores"
		move := func() error {
			return s.move(ctx, a.id, api.RunRunning, api.RunEvaluating, store.RunUpdate{Step: &step, Message: &message, NoProgress: true})
		}
		return s.insist(ctx, "evaluating the run", move)
	}
	return s.finishedWith(ctx, a)
}

// finishedWith is why work that was reported as finished brought no result.
func (s *Supervisor) finishedWith(ctx context.Context, a *active) error {
	r, err := s.db.RunByID(ctx, a.id)
	switch {
	case err != nil:
		return err
	case r.Finish == nil:
		return api.Unavailablef("killed", "the work on the run ended and nobody reported how")
	case r.Finish.ErrorCode != "":
		return api.Unavailablef(r.Finish.ErrorCode, "%s", r.Finish.Error).WithHint("%s", r.Finish.Hint)
	case r.Finish.Cancelled:
		return api.Unavailablef("killed", "the worker was stopped on its machine, and not from here")
	case r.Result == nil:
		return api.Unavailablef("worker_failed", "the worker ended without a result")
	default:
		return api.Unavailablef("worker_failed", "the worker reported a result and no predictions")
	}
}

// stillThere says where work may go on that nobody can follow any more.
func stillThere(r store.Run) string {
	if r.Handle == nil || r.Handle.Host == "" {
		return "put the backend back into the config, and start the run again"
	}
	return fmt.Sprintf("what the run has started may still be at work on %s, in %s: end it there (on a cluster, `squeue --me` and `scancel` on the login node)", r.Handle.Host, r.Handle.Dir)
}

// grace is never nothing: to an agent that means that nobody said how long it is.
func (s *Supervisor) grace() time.Duration {
	return max(project.Seconds(s.o.Config.ModelTraining.GraceSeconds), time.Millisecond)
}
