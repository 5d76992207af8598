package agent

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"time"

	"potato/api"
)

const drainTime = 5 * time.Second // how long files that cannot be read hold up the end of a job

// attend follows the worker until it has ended, and ends it when there is a reason to.
func (w *work) attend(ctx context.Context) (State, error) {
	var endedAt time.Time
	for {
		// Asked before the files are read: what is read after the end is all there is.
		state, err := w.o.Launcher.State(ctx, w.handle)
		ended := err == nil && state.Phase != StateRunning
		if err != nil {
			w.log.Warn("no word on the worker", "err", err)
		}
		w.pass(state.Says)
		if ended && state.Phase == StateLost {
			// The shim was killed; what it looked after must not go on alone.
			if err := w.o.Launcher.Signal(ctx, w.handle, SignalKill); err != nil {
				w.log.Warn("cannot end what a lost worker left", "err", err)
			}
		}
		if ended && endedAt.IsZero() {
			endedAt = time.Now()
		}
		late := ended && w.filesAreLate(state, endedAt)
		err = w.drain(ctx, ended && !late)
		switch {
		case err != nil && isDiskFull(err):
			w.giveUp(ending{disk: err})
		case err != nil:
			w.log.Warn("cannot follow the worker", "err", err)
		}
		if w.out.result != nil && w.resultAt.IsZero() {
			w.resultAt = time.Now()
		}
		if ended && !late && (err == nil || isDiskFull(err) || time.Since(endedAt) > drainTime) {
			return state, nil
		}
		if leave := w.press(ctx); leave {
			return state, nil
		}
		select {
		case <-ctx.Done():
			return state, ctx.Err()
		case <-w.wake:
		case <-time.After(w.o.Poll):
		}
	}
}

// pass puts what the launcher says into the run's events.
func (w *work) pass(says []api.Event) {
	for _, e := range says {
		if err := w.out.append(w.follow.record(e)); err != nil {
			w.log.Warn("cannot write down what the launcher says", "err", err)
		}
	}
}

const lateError = 5 * time.Second // how long an error event may be late, which a crash does not write at all

// filesAreLate reports whether what a worker that has ended must have written is not there yet. Network storage may show
// its exit before its result, and that before its predictions (T08).
func (w *work) filesAreLate(s State, endedAt time.Time) bool {
	if s.Late <= 0 || s.Cause != nil || s.Phase != StateEnded || w.ending().any() {
		return false
	}
	waited := time.Since(endedAt)
	if s.Exit.Code != nil && *s.Exit.Code == 0 {
		return waited < s.Late && !w.hasResult()
	}
	return waited < min(s.Late, lateError) && w.out.failed == nil && w.out.result == nil && s.Exit.Reason == ""
}

func (w *work) hasResult() bool {
	if w.out.result == nil {
		return false
	}
	_, err := os.Stat(filepath.Join(w.o.Artifacts, filepath.FromSlash(w.out.result.PredictionsFile)))
	return err == nil
}

// drain takes over what the worker has written since the last time. The place of reading moves only with what is safe
// in the outbox.
func (w *work) drain(ctx context.Context, final bool) error {
	for more := true; more && ctx.Err() == nil; {
		before := w.follow
		recs, again, err := w.follow.turn(final)
		if err == nil {
			err = w.out.append(recs...)
		}
		if err != nil {
			w.follow = before
			return err
		}
		more = again
		if !final && w.ending().any() { // a flood of output must not hold up a cancel
			return nil
		}
	}
	return ctx.Err()
}

// press ends the worker when there is a reason to: TERM, then KILL after the grace. It reports whether we leave at once,
// since the worker is another agent's now.
func (w *work) press(ctx context.Context) (leave bool) {
	end := w.ending()
	if !end.any() && !w.overstays(end.grace) {
		return false
	}
	if api.HasCode(end.over, "lease_moved") && !w.own.named(w.o.Dir) || w.leavesJob(end) {
		return true
	}
	sig := SignalKill
	switch {
	case w.terminated.IsZero():
		w.log.Info("ending the worker", "cause", cmp.Or(end.cause(), "it has brought its result and does not leave"), "grace", end.grace)
		w.terminated, sig = time.Now(), SignalTerm
	case time.Since(w.terminated) < end.grace || time.Since(w.killed) < killWait:
		return false
	default:
		w.log.Warn("killing the worker, which did not leave within its grace")
		w.killed = time.Now()
	}
	if err := w.o.Launcher.Signal(ctx, w.handle, sig); err != nil {
		w.log.Warn("cannot end the worker", "err", err)
	}
	return false
}

// leavesJob reports whether the worker goes on without an agent, until the server comes back (Q7).
func (w *work) leavesJob(end ending) bool {
	return w.o.Detach && end.lost && !end.cancelled && end.over == nil
}

// overstays reports whether the worker has had its time to leave after its result. A library that hangs while the
// interpreter shuts down must not hold the queue for ever (T29).
func (w *work) overstays(grace time.Duration) bool {
	return !w.resultAt.IsZero() && time.Since(w.resultAt) >= grace
}
