package supervisor

import (
	"context"
	"fmt"
	"sync"
	"time"

	"potato/api"
	"potato/project"
	"potato/store"
)

// retrainState is what auto-retrain found when it looked last.
type retrainState struct {
	mu     sync.Mutex
	looked bool
	fresh  int    // annotations since it last started a run
	reason string // why it does not train now
}

// AutoRetrain is the state of automatic retraining (R9).
func (s *Supervisor) AutoRetrain(context.Context) (api.AutoRetrain, error) {
	c := s.o.Config.ModelTraining
	state := api.AutoRetrain{
		Enabled: c.AutoRetrain.Enabled, Trainer: c.AutoRetrain.Trainer, Schemas: c.AutoRetrain.Schemas, Backend: c.RetrainBackend(),
		UpdateFrequency: c.AutoRetrain.UpdateFrequency, MinIntervalS: c.AutoRetrain.MinIntervalS,
	}
	if state.Schemas == nil {
		state.Schemas = []string{}
	}
	if !state.Enabled {
		state.SkipReason = "auto-retrain is off"
		return state, nil
	}
	s.retrain.mu.Lock()
	defer s.retrain.mu.Unlock()
	state.NewAnnotations, state.SkipReason = s.retrain.fresh, s.retrain.reason
	if !s.retrain.looked {
		state.SkipReason = "the labels are being counted"
	}
	return state, nil
}

// retrainLoop looks at the labels now and then and starts a run when there are enough new ones.
func (s *Supervisor) retrainLoop(ctx context.Context) {
	if !s.o.Config.ModelTraining.AutoRetrain.Enabled {
		return
	}
	tick := time.NewTicker(s.o.RetrainEvery)
	defer tick.Stop()
	for logged := ""; ; {
		fresh, reason, err := s.considerRetrain(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			reason = "the last try failed: " + api.AsError(err).Message
			if logged != reason {
				s.log.Warn("auto-retrain could not start a run", "err", err)
			}
			logged = reason
		}
		s.retrain.mu.Lock()
		s.retrain.looked, s.retrain.fresh, s.retrain.reason = true, fresh, reason
		s.retrain.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// considerRetrain starts a run, or says why not.
func (s *Supervisor) considerRetrain(ctx context.Context) (fresh int, reason string, err error) {
	c := s.o.Config.ModelTraining.AutoRetrain
	if c.Trainer == "" || len(c.Schemas) == 0 {
		return 0, "auto_retrain names no trainer or no schemas", nil
	}
	last, err := s.db.LastRetrain(ctx)
	if err != nil {
		return 0, "", err
	}
	n, err := s.o.Study.Annotations(ctx, c.Schemas)
	if err != nil {
		return 0, "", err
	}
	// Annotations can become fewer; then those since count from there.
	fresh = max(n-last.NAnnotations, 0)
	if missing := c.UpdateFrequency - fresh; missing > 0 {
		return fresh, "waiting for " + plural(missing, "more annotation"), nil
	}
	if left := last.StartedAt + c.MinIntervalS - s.seconds(); last.RunID != "" && left > 0 {
		return fresh, "waiting " + plural(int(left)+1, "more second") + " since the last run", nil
	}
	if until, quiet := project.QuietUntil(c.QuietHours, s.o.Now()); quiet {
		return fresh, "waiting for the end of the quiet hours at " + until, nil
	}
	busy, err := s.db.RunsByStatus(ctx, notOver...)
	if err != nil {
		return fresh, "", err
	}
	if len(busy) > 0 {
		return fresh, "a run is already in progress", nil
	}
	backend := s.retrainBackend()
	_, err = s.createRun(ctx, api.RunRequest{Trainer: c.Trainer, Schemas: c.Schemas, Backend: backend, Params: c.Params},
		api.TriggerAuto, "auto-retrain", &store.Retrain{NAnnotations: n, StartedAt: s.seconds()})
	if err != nil {
		return fresh, "", err
	}
	return 0, "", nil
}

// retrainBackend is the backend of retraining, or its fallback when no run can start on the first.
func (s *Supervisor) retrainBackend() string {
	name := s.o.Config.ModelTraining.RetrainBackend()
	fallback := s.o.Config.ModelTraining.AutoRetrain.Fallback
	if b, ok := s.backend(name); fallback != "" && (!ok || !b.Available) {
		return fallback
	}
	return name
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
