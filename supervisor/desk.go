package supervisor

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"

	"potato/runners"

	"potato/api"
	"potato/store"
)

// desk is the server's side of agent.Desk.
type desk struct {
	s       *Supervisor
	backend string    // whose runs alone are there; empty: all are
	run     api.RunID // the only one that is there; empty: all are
}

// holder finds the run that the job is for, or says that the sender has nothing to do with it any more.
func (d desk) holder(ctx context.Context, job api.Job) (*active, error) {
	if d.run != "" && job.RunID != d.run {
		return nil, api.NotFoundf("run_not_found", "there is no run %s", job.RunID)
	}
	a := d.s.activeRun(job.RunID)
	if a == nil || d.backend != "" && a.backend != d.backend {
		return nil, d.notHere(ctx, job.RunID)
	}
	return a, d.hear(ctx, a, job.Lease)
}

// hear notes that the agent with the lease has spoken, and keeps that it has when it is the first time.
func (d desk) hear(ctx context.Context, a *active, lease string) error {
	first, err := a.hear(lease)
	if err == nil {
		a.mu.Lock()
		a.spoke = time.Now()
		a.mu.Unlock()
	}
	if api.HasCode(err, "lease_moved") { // nobody's any more, when it has just ended
		if r, err := d.s.db.RunByID(ctx, a.id); err == nil && r.Status.Final() {
			return runOver(a.id)
		}
	}
	if first {
		if err := d.s.db.HearLease(context.WithoutCancel(ctx), a.id, lease); err != nil {
			d.s.log.Warn("cannot store that the agent has spoken", "run", a.id, "err", err)
		}
	}
	return err
}

// notHere says why nobody can speak for a run that this server does not work on.
func (d desk) notHere(ctx context.Context, id api.RunID) error {
	r, err := d.s.db.RunByID(ctx, id)
	switch {
	case err == nil && d.backend != "" && r.Backend != d.backend:
		return api.NotFoundf("run_not_found", "there is no run %s", id)
	case err != nil && d.backend != "":
		return err
	case api.HasCode(err, "run_not_found") || err == nil && r.Status.Final():
		return runOver(id)
	case err != nil:
		return err
	case r.Status == api.RunQueued:
		return leaseMoved(id)
	}
	return api.Unavailablef("run_waiting", "run %s is not taken up yet", id).WithHint("try again")
}

// Bundle implements agent.Desk: on this machine the bundle needs no copying.
func (d desk) Bundle(ctx context.Context, job api.Job, _ string) (string, error) {
	if _, err := d.holder(ctx, job); err != nil {
		return "", err
	}
	dir := d.s.folder(job.RunID).bundle()
	if _, err := os.Stat(dir); err != nil {
		return "", api.NotFoundf("bad_bundle", "the run's bundle is gone from the server").WithCause(err)
	}
	return dir, nil
}

// Progress implements agent.Desk.
func (d desk) Progress(ctx context.Context, job api.Job, events []api.Event) (api.Answer, error) {
	a, err := d.holder(ctx, job)
	if err != nil {
		return api.Answer{}, err
	}
	ctx = context.WithoutCancel(ctx)
	changed := false
	err = a.log.append(events, func(fresh []api.Event, got store.Received) error {
		up := changes(fresh)
		changed = up.Step != nil || up.Progress != nil || up.Result != nil
		for _, e := range fresh {
			if e.Event != api.EventStatus {
				continue
			}
			if w := a.scheduled(e.State == api.StatePending, d.s.seconds()); w != nil {
				up.Scheduler = w
			}
		}
		up.Received = &got
		return d.s.db.UpdateRun(ctx, a.id, up)
	})
	if isDiskFull(err) {
		a.fail(runError(err, "", "")) // an agent would try for minutes, while nothing of the run can be kept
	}
	if err != nil {
		return api.Answer{}, fmt.Errorf("take events of run %s: %w", a.id, err)
	}
	if changed {
		d.s.hub.change(a.id)
	} else {
		d.s.hub.wake(a.id)
	}
	return d.answer(a), nil
}

// changes is what events change in their run's row. A worker's status changes the step only; the state is ours (R1).
func changes(events []api.Event) store.RunUpdate {
	var up store.RunUpdate
	for _, e := range events {
		if e.Attempt > 0 {
			up.Attempt = &e.Attempt
		}
		switch e.Event {
		case api.EventStatus:
			if step := e.StepText(); step != "" {
				up.Step = &step
			}
		case api.EventProgress:
			if e.Current != nil && e.Total != nil {
				up.Progress = &api.Progress{Phase: e.Phase, Current: *e.Current, Total: *e.Total, ETA: e.ETA}
			}
		case api.EventLog:
			if e.Level == "warning" && e.Source == "" {
				up.Warn = append(up.Warn, e.Msg)
			}
		case api.EventResult:
			result := e
			up.Result, up.ModelVersion, up.Device = &result, &result.ModelVersion, &result.Device
		}
	}
	up.Warn = limited(up.Warn)
	return up
}

// maxWarnings bounds what one report adds to a run's warnings; the log has all of them.
const maxWarnings = 20

// Heartbeat implements agent.Desk. It waits a while for a cancel.
func (d desk) Heartbeat(ctx context.Context, job api.Job) (api.Answer, error) {
	a, err := d.holder(ctx, job)
	if err != nil {
		return api.Answer{}, err
	}
	wait := min(d.s.o.HeartbeatWait, time.Duration(job.HeartbeatTimeoutS*float64(time.Second)/3))
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-a.stop:
	case <-a.done:
	case <-timer.C:
	case <-d.s.left:
	case <-ctx.Done():
		return api.Answer{}, ctx.Err()
	}
	if _, err := a.hear(job.Lease); err != nil { // it ended meanwhile, or went to another
		return api.Answer{}, err
	}
	return d.answer(a), nil
}

func (d desk) answer(a *active) api.Answer {
	return api.Answer{
		Cancel: a.ending(), GraceSeconds: d.s.grace().Seconds(), NextSeq: a.log.nextSeq(),
	}
}

// Predictions implements agent.Desk: the file is on this machine.
func (d desk) Predictions(ctx context.Context, job api.Job, path string) error {
	a, err := d.holder(ctx, job)
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return api.Invalidf("worker_failed", "the predictions file cannot be read: %v", errors.Unwrap(err)).WithCause(err)
	}
	defer f.Close() //nolint:errcheck // only read from
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if err := d.s.withinLimit(st); err != nil {
		return err
	}
	err = d.s.storePredictions(ctx, a, f)
	if isDiskFull(err) {
		e := runError(err, "", "")
		return api.Conflictf(e.Code, "%s", e.Message).WithHint("%s", e.Hint).WithCause(err) // refused: it would not be better soon
	}
	return err
}

func (s *Supervisor) withinLimit(st fs.FileInfo) error {
	if st.Size() <= s.o.Config.ModelTraining.MaxPredictionsMB<<20 {
		return nil
	}
	return s.tooLarge(st.Size())
}

// tooLarge refuses predictions of that size, or of more when that is all that is known.
func (s *Supervisor) tooLarge(size int64) error {
	limit := s.o.Config.ModelTraining.MaxPredictionsMB
	return runners.WithHint(api.TooLargef("predictions_too_large", "The predictions have %d MB, more than max_predictions_mb allows (%d)",
		(size+1<<20-1)>>20, limit))
}

// Finish implements agent.Desk.
func (d desk) Finish(ctx context.Context, job api.Job, f api.Finish) error {
	a, err := d.holder(ctx, job)
	if api.HasCode(err, "run_over") && d.ended(ctx, job) {
		return nil // its answer was lost
	}
	if err != nil {
		return err
	}
	up := store.RunUpdate{Finish: &f, ArtifactURI: &f.ArtifactURI, Environment: f.Environment}
	if f.Host != "" {
		up.Host = &f.Host
	}
	if device := f.Environment["device"]; device != "" {
		up.Device = &device
	}
	take := func() error {
		if f.ExitCode != nil {
			if err := writeFile(d.s.folder(a.id).exitCode(), []byte(strconv.Itoa(*f.ExitCode)+"\n")); err != nil {
				return err
			}
		}
		return d.s.update(context.WithoutCancel(ctx), a.id, up)
	}
	err = take()
	if isDiskFull(err) && (f.ErrorCode != "" || f.Cancelled) {
		d.s.makeRoom(a.id)
		err = take()
	}
	if err != nil {
		return fmt.Errorf("take the end of run %s: %w", a.id, err)
	}
	a.finish()
	return nil
}

// ended reports whether the run's end was reported with this very lease.
func (d desk) ended(ctx context.Context, job api.Job) bool {
	if a := d.s.activeRun(job.RunID); a != nil {
		return a.finished() && a.lease == job.Lease
	}
	r, err := d.s.db.RunByID(ctx, job.RunID)
	if err != nil || r.Finish == nil {
		return false
	}
	l, err := d.s.db.LeaseOf(ctx, job.RunID)
	return err == nil && l != nil && subtle.ConstantTimeCompare([]byte(l.Lease), []byte(job.Lease)) == 1
}
