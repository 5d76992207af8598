package agent

import (
	"context"
	"path/filepath"
	"time"

	"potato/api"
)

// conclude tells the server everything and, last of all, the end.
func (w *work) conclude(ctx context.Context, o outcome) error {
	w.mu.Lock()
	if w.end.lost { // one more chance, a short one: the server may just be back
		w.end.lost, w.contact, w.silence = false, time.Now(), w.o.LastWords
	}
	w.mu.Unlock()
	close(w.hurry)
	w.sayEnd(o.Finish)
	if err := w.flush(ctx); err != nil {
		return err
	}
	if o.Predictions != "" {
		if err := w.upload(ctx, &o); err != nil {
			return err
		}
	}
	w.lastLines(ctx)
	finish := func(ctx context.Context) error { return w.o.Desk.Finish(ctx, w.job, o.Finish) }
	for {
		armed := w.arm(ctx)
		err := w.insist(armed, "finish", finish)
		cut := err != nil && judge(err) == tryAgain && armed.Err() != nil
		if cut && api.HasCode(w.ending().over, "run_over") {
			// A heartbeat was answered before this was: the run may be over because it was told. The server knows.
			err = finish(ctx)
		}
		end := w.ending()
		switch {
		case err == nil || ctx.Err() != nil || judge(err) != tryAgain:
			return err
		case end.over != nil:
			return end.over
		case end.lost:
			return unreachable(w.o.ServerLossTimeout).WithCause(err)
		}
		// A cancel cut it short. The job has ended all the same.
	}
}

// upload hands over the predictions, unless the run is cancelled before they are stored. What the server refuses turns
// the outcome into a failure.
func (w *work) upload(ctx context.Context, o *outcome) error {
	wanted := w.arm(ctx)
	var err error
	if !w.ending().any() {
		w.log.Debug("handing over the predictions")
		err = w.insist(w.retries(wanted), "predictions", func(ctx context.Context) error { return w.o.Desk.Predictions(ctx, w.job, o.Predictions) })
		if err == nil {
			w.log.Debug("the server has the predictions")
			return nil
		}
	}
	end := w.ending()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case end.over != nil:
		return end.over
	case end.lost:
		return unreachable(w.o.ServerLossTimeout)
	case end.cancelled:
		o.Finish.Cancelled = true
	default:
		w.log.Debug("the server refuses the predictions", "err", err)
		refusal := w.failure(err).Finish
		o.Finish.ErrorCode, o.Finish.Error, o.Finish.Hint = refusal.ErrorCode, refusal.Error, refusal.Hint
	}
	o.Predictions = ""
	return writeJSON(filepath.Join(w.o.Dir, finishFile), o, true)
}
