package agent

import (
	"context"
	"errors"
	"time"

	"potato/api"
)

// send brings the outbox to the server, in order and from wherever the server stands.
func (w *work) send(ctx context.Context) {
	pause := backoff{first: w.o.RetryAfter}
	for {
		w.mu.Lock()
		from := w.sent
		w.mu.Unlock()
		batch, err := w.out.read(from)
		if err == nil && len(batch) == 0 {
			select {
			case <-ctx.Done():
				return
			case <-w.out.grown:
				continue
			}
		}
		if err == nil {
			err = w.post(ctx, batch)
		}
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			if pause.last > 0 {
				w.log.Info("the server takes events again")
			}
			pause.reset()
			select {
			case <-ctx.Done():
				return
			case <-w.hurry:
			case <-time.After(w.o.SendEvery):
			}
			continue
		}
		if judge(err) == jobOver {
			w.giveUp(ending{over: err})
			return
		}
		w.log.Warn("events not sent", "err", err)
		if !pause.wait(ctx) {
			return
		}
	}
}

var errNotTaken = errors.New("the server answered and did not take the events")

// post sends one batch and goes on from where the answer says.
func (w *work) post(ctx context.Context, batch []api.Event) error {
	a, err := w.o.Desk.Progress(ctx, w.job, batch)
	if err != nil {
		return err
	}
	w.heard(a)
	w.mu.Lock()
	w.sent = min(max(a.NextSeq, 1), w.out.end())
	w.mu.Unlock()
	w.nudge()
	if a.NextSeq <= batch[0].Seq {
		return errNotTaken
	}
	return nil
}

// heartbeat keeps saying that we live, whatever else is going on, and hears of a cancel.
func (w *work) heartbeat(ctx context.Context) {
	pause := backoff{first: w.o.RetryAfter}
	for {
		began := time.Now()
		a, err := w.o.Desk.Heartbeat(ctx, w.job)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			pause.reset()
			w.heard(a)
			select {
			case <-ctx.Done():
				return
			case <-time.After(w.o.HeartbeatEvery - time.Since(began)):
			}
			continue
		case judge(err) == jobOver:
			w.giveUp(ending{over: err})
			return
		}
		w.log.Warn("heartbeat failed", "err", err)
		if !pause.wait(ctx) {
			return
		}
	}
}

// watch renews the worker's lease and looks for the reasons to end that nobody tells us of.
func (w *work) watch(ctx context.Context) {
	tick := time.NewTicker(min(max(w.o.LeaseTimeout/10, 20*time.Millisecond), 2*time.Second, max(w.o.ServerLossTimeout/4, 20*time.Millisecond)))
	defer tick.Stop()
	cancel := w.o.Cancel
	for {
		select {
		case <-ctx.Done():
			return
		case <-cancel:
			cancel = nil
			w.giveUp(ending{cancelled: true})
		case <-tick.C:
			if !w.own.named(w.o.Dir) {
				w.giveUp(ending{over: api.Conflictf("lease_moved", "another agent has taken over the job in %s", w.o.Dir)})
				return
			}
			if err := w.own.touch(w.o.Dir); err != nil {
				w.log.Warn("cannot renew the worker's lease", "err", err)
			}
			w.mu.Lock()
			lost := time.Since(w.contact) > w.silence
			w.mu.Unlock()
			if lost && !w.ending().lost {
				w.giveUp(ending{lost: true})
			}
		}
	}
}

// flush waits until the server has every event, but for lines of the agent's own log.
func (w *work) flush(ctx context.Context) error {
	var seen int64
	since := time.Now()
	for {
		w.mu.Lock()
		sent, end := w.sent, w.end
		w.mu.Unlock()
		if sent >= w.out.needed() {
			return nil
		}
		if sent != seen {
			seen, since = sent, time.Now()
		}
		if end.over != nil {
			return end.over
		}
		if end.lost || time.Since(since) > w.o.ServerLossTimeout {
			return unreachable(w.o.ServerLossTimeout)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.wake:
		case <-time.After(w.o.Poll):
		}
	}
}
