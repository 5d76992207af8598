package supervisor

import (
	"context"
	"slices"
	"time"

	"potato/api"
)

// warmer is a runner that can keep a worker ready for a trainer. Only the local one can.
type warmer interface {
	KeepWarm(ctx context.Context, trainer string) error
}

// warmUse is how long after its last use the Training page counts as in use.
const warmUse = 10 * time.Minute

// keepWarm says that somebody uses the Training page, so that a worker is kept ready for the next run.
func (s *Supervisor) keepWarm() {
	select {
	case s.used <- struct{}{}:
	default: // it was said already
	}
}

// warmLoop keeps a worker ready while the page is in use. After a run it makes the next one ready: the run took it.
func (s *Supervisor) warmLoop(ctx context.Context) {
	w, ok := s.o.Runners[api.BackendLocal].(warmer)
	if !ok {
		return
	}
	var last time.Time
	for version := uint64(0); ; {
		changed, now, next := s.hub.since(version)
		version = now
		if time.Since(last) < warmUse && len(changed) > 0 {
			s.warm(ctx, w)
		}
		select {
		case <-ctx.Done():
			return
		case <-s.used:
			last = time.Now()
			s.warm(ctx, w)
		case <-next:
			select { // a run that trains changes all the time
			case <-ctx.Done():
				return
			case <-time.After(s.o.LimitEvery):
			}
		}
	}
}

func (s *Supervisor) warm(ctx context.Context, w warmer) {
	busy, err := s.db.RunsByStatus(ctx, notOver...)
	if err != nil || len(busy) > 0 {
		return // the run that trains has the machine; after it there is time
	}
	trainer := s.likelyTrainer(ctx)
	if trainer == "" {
		return
	}
	if err := w.KeepWarm(ctx, trainer); err != nil && ctx.Err() == nil {
		s.log.Info("no worker is kept warm", "trainer", trainer, "err", err)
	}
}

// likelyTrainer is the trainer that the next run probably has: the last run's, or the first that can train here.
func (s *Supervisor) likelyTrainer(ctx context.Context) string {
	env, err := s.o.Python.Environment(ctx)
	if err != nil {
		return ""
	}
	can := func(t api.Trainer) bool { return t.Available && t.Source == "built-in" }
	if last, err := s.db.LatestRun(ctx); err == nil && last != nil {
		if slices.ContainsFunc(env.Trainers, func(t api.Trainer) bool { return t.Name == last.Trainer && can(t) }) {
			return last.Trainer
		}
	}
	if i := slices.IndexFunc(env.Trainers, can); i >= 0 {
		return env.Trainers[i].Name
	}
	return ""
}
