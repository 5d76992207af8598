package supervisor

import (
	"context"
	"fmt"
	"time"

	"potato/api"
	"potato/project"
	"potato/runners"
	"potato/store"
)

// watchLimits looks at the run's limits every second, whether or not anything is heard of it (C3, P7), until ctx ends or
// a limit was passed. All time is of this server's monotonic clock, from when this server took the run up.
func (s *Supervisor) watchLimits(ctx context.Context, a *active, backend string) {
	tick := time.NewTicker(s.o.LimitEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.stop:
			return
		case <-tick.C:
		}
		if a.release(s.o.ClaimTimeout) {
			a.end()
			return
		}
		e := s.overLimit(a, backend)
		if e == nil {
			continue
		}
		err := s.db.CondemnRun(ctx, a.id, runners.WithHint(e))
		switch {
		case err == nil:
			a.mu.Lock()
			a.silent = e.Code == "heartbeat_lost"
			a.mu.Unlock()
			s.hub.change(a.id)
			a.end()
			return
		case api.HasCode(err, "too_late") || api.HasCode(err, "run_over"):
			return // what counts is stored: the rest is ours and quick
		case ctx.Err() == nil:
			s.log.Error("cannot end the run at its limit", "run", a.id, "err", err)
		}
	}
}

func (s *Supervisor) overLimit(a *active, backend string) *api.Error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if limit := project.Seconds(s.o.Config.ModelTraining.MaxWallSeconds); limit > 0 && time.Since(a.since)-a.schedulerWait() >= limit {
		return api.Unavailablef("wall_time", "the run was not finished after %s, the limit of max_wall_seconds", inSeconds(limit))
	}
	if silence := s.heartbeatTimeout(backend); a.working && a.claimed.IsZero() && time.Since(a.heard) >= silence {
		return api.Unavailablef("heartbeat_lost", "No word from the agent on %s for %s", backend, inSeconds(silence))
	}
	return nil
}

// scheduled notes whether the run's job waits in a cluster's own queue: that time is not the run's (C3). It returns what is
// to be stored, nil when nothing has changed.
func (a *active) scheduled(pending bool, now float64) *store.SchedulerWait {
	a.mu.Lock()
	defer a.mu.Unlock()
	if pending != a.pending.IsZero() {
		return nil
	}
	w := &store.SchedulerWait{}
	if pending {
		a.pending, w.Since = time.Now(), &now
	} else {
		a.waited, a.pending = a.schedulerWait(), time.Time{}
	}
	w.Seconds = (a.before + a.waited).Seconds()
	return w
}

func (a *active) schedulerWait() time.Duration {
	if a.pending.IsZero() {
		return a.waited
	}
	return a.waited + time.Since(a.pending)
}

// heartbeatTimeout is the silence after which an agent of the backend is taken for lost.
func (s *Supervisor) heartbeatTimeout(backend string) time.Duration {
	if b, ok := s.o.Config.ModelTraining.Backends.ByName(backend); ok && b.HeartbeatTimeoutS > 0 {
		return project.Seconds(b.HeartbeatTimeoutS)
	}
	return project.Seconds(s.o.Config.ModelTraining.HeartbeatTimeoutS)
}

func inSeconds(d time.Duration) string { return fmt.Sprintf("%g seconds", d.Seconds()) }
