package runners

import (
	"context"

	"potato/api"
	"potato/store"
)

// score computes the run's held-out scores and keeps them (R4).
func (s *Supervisor) score(ctx context.Context, a *active) error {
	r, err := s.db.RunByID(ctx, a.id)
	if err != nil {
		return err
	}
	metrics := api.Metrics{}
	for name, v := range r.Result.Metrics {
		metrics[name] = v
	}
	return s.update(ctx, a.id, store.RunUpdate{Metrics: metrics})
}
