package agent

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"potato/api"
)

// ending holds the reasons to end the work before it is done.
type ending struct {
	cancelled bool          // the user wants it
	lost      bool          // the server has been silent for too long
	over      error         // the job is not ours any more
	disk      error         // no space for what the worker writes
	grace     time.Duration // between TERM and KILL
}

func (e ending) any() bool { return e.cancelled || e.lost || e.over != nil || e.disk != nil }

func (e ending) cause() string {
	switch {
	case e.over != nil:
		return e.over.Error()
	case e.cancelled:
		return "cancelled"
	case e.lost:
		return "the server is silent"
	case e.disk != nil:
		return e.disk.Error()
	}
	return ""
}

const defaultGrace = 20 * time.Second

func graceOf(s float64) time.Duration {
	if s <= 0 {
		return defaultGrace
	}
	return seconds(s)
}

func (w *work) ending() ending {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.end
}

// giveUp adds a reason to end the work, and cuts short what only makes sense without one.
func (w *work) giveUp(e ending) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.end
	w.end.cancelled = before.cancelled || e.cancelled
	w.end.lost = before.lost || e.lost
	if before.over == nil {
		w.end.over = e.over
	}
	if before.disk == nil {
		w.end.disk = e.disk
	}
	if w.end != before {
		w.stop()
		w.nudge()
	}
}

// arm returns a context that ends with ctx, or with the next reason to end the work.
func (w *work) arm(ctx context.Context) context.Context {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stop != nil {
		w.stop()
	}
	ctx, w.stop = context.WithCancel(ctx)
	return ctx
}

func (w *work) nudge() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// heard takes the server's answer into account.
func (w *work) heard(a api.Answer) {
	w.mu.Lock()
	w.contact = time.Now()
	if a.GraceSeconds > 0 {
		w.end.grace = seconds(a.GraceSeconds)
	}
	w.mu.Unlock()
	if a.Cancel {
		w.giveUp(ending{cancelled: true})
	}
	w.first.Do(func() { close(w.answered) })
}

// verdict is what an error of the desk means.
type verdict int

const (
	tryAgain verdict = iota
	refused          // it will never be accepted
	jobOver          // the job is not ours any more
)

func judge(err error) verdict {
	var e *api.Error
	if !errors.As(err, &e) {
		return tryAgain
	}
	switch e.Code {
	case "run_over", "lease_moved", "token_revoked":
		return jobOver
	}
	switch e.Kind {
	case api.KindGone, api.KindUnauthenticated:
		return jobOver
	case api.KindInvalid, api.KindDenied, api.KindNotFound, api.KindConflict, api.KindTooLarge:
		return refused
	default:
		return tryAgain
	}
}

// insist calls the desk until it accepts or refuses, or until the server was silent for too long.
func (w *work) insist(ctx context.Context, what string, call func(context.Context) error) error {
	pause := backoff{first: w.o.RetryAfter}
	for {
		err := call(ctx)
		if err == nil {
			w.mu.Lock()
			w.contact = time.Now()
			w.mu.Unlock()
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		switch judge(err) {
		case refused:
			return err
		case jobOver:
			w.giveUp(ending{over: err})
			return err
		}
		w.log.Warn("the server did not take it", "what", what, "err", err)
		if !pause.wait(ctx) {
			return ctx.Err()
		}
		if w.ending().lost {
			return unreachable(w.o.ServerLossTimeout).WithCause(err)
		}
	}
}

func unreachable(silence time.Duration) *api.Error {
	return api.Unavailablef("server_unreachable", "The server did not answer for %.0f s, so the run was cancelled on %s", silence.Seconds(), hostname()).
		WithHint("see that the server runs and that %s can reach it, then start the run again", hostname())
}

// backoff is the time between two tries: longer each time, and never the same for all who wait.
type backoff struct{ first, last time.Duration }

const longestPause = 5 * time.Second

// wait reports whether the time has passed, rather than ctx ended.
func (b *backoff) wait(ctx context.Context) bool {
	b.last = min(max(2*b.last, b.first), longestPause)
	select {
	case <-ctx.Done():
		return false
	case <-time.After(b.last/2 + rand.N(b.last)):
		return true
	}
}

func (b *backoff) reset() { b.last = 0 }
