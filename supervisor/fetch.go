package supervisor

import (
	"context"
	"time"

	"potato/runners"

	"potato/store"
)

// cleanTime bounds the tidying of a machine after a run without a result.
const cleanTime = 30 * time.Second

// fetch brings a run's artifacts here from the machine that trained, where they are not here by themselves. It may be done
// again, and goes on where it was cut off.
func (s *Supervisor) fetch(ctx context.Context, a *active) error {
	return s.fetchOf(ctx, a, true)
}

// cleanUp removes what a run without a result left on its machine. One that cannot be reached keeps it.
func (s *Supervisor) cleanUp(ctx context.Context, a *active) {
	if ctx.Err() != nil {
		return // the next server goes on with the run
	}
	ctx, cancel := context.WithTimeout(ctx, cleanTime)
	defer cancel()
	if err := s.fetchOf(ctx, a, false); err != nil {
		s.log.Warn("cannot clean up after the run", "run", a.id, "err", err)
	}
}

func (s *Supervisor) fetchOf(ctx context.Context, a *active, success bool) error {
	r, err := s.db.RunByID(ctx, a.id)
	if err != nil || r.Handle == nil {
		return err
	}
	b, _ := s.backend(r.Backend)
	if _, ok := s.o.Runners[b.Type].(runners.Fetcher); !ok {
		return nil
	}
	runner, job, err := s.job(ctx, a, r)
	if err != nil {
		return err
	}
	here, err := runner.(runners.Fetcher).Fetch(ctx, job, *r.Handle, success)
	if err != nil || !success || !here {
		return err
	}
	dir := s.folder(a.id).artifacts()
	return s.update(ctx, a.id, store.RunUpdate{ArtifactURI: &dir})
}
