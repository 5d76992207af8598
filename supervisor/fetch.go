package supervisor

import (
	"context"
	"time"

	"potato/api"
	"potato/runners"
	"potato/store"
)

// cleanTime bounds the tidying of a machine after a run without a result.
const cleanTime = 30 * time.Second

// fetcher is the runner of a backend whose runs leave files on their machine; nil for all others.
func (s *Supervisor) fetcher(backend string) runners.Fetcher {
	b, _ := s.backend(backend)
	f, _ := s.o.Runners[b.Type].(runners.Fetcher)
	return f
}

// cleanUp removes what a run without a result left on its machine. One that cannot be reached keeps it.
func (s *Supervisor) cleanUp(ctx context.Context, a *active) {
	if ctx.Err() != nil {
		return // the next server goes on with the run
	}
	ctx, cancel := context.WithTimeout(ctx, cleanTime)
	defer cancel()
	r, err := s.db.RunByID(ctx, a.id)
	if err == nil && r.Handle != nil && s.fetcher(r.Backend) != nil {
		_, err = s.fetcher(r.Backend).Fetch(ctx, s.fetchJob(ctx, r, s.noteTo(ctx, a)), *r.Handle, false)
	}
	if err != nil {
		s.log.Warn("cannot clean up after the run", "run", a.id, "err", err)
	}
}

// fetch brings a run's artifacts here from the machine that trained, where they are not here by themselves. It may be done
// again, and goes on where it was cut off. What goes wrong is kept with the run, until a copy succeeds (H7).
func (s *Supervisor) fetch(ctx context.Context, r store.Run, say func(string)) error {
	f := s.fetcher(r.Backend)
	if f == nil || r.Handle == nil {
		return nil
	}
	here, err := f.Fetch(ctx, s.fetchJob(ctx, r, say), *r.Handle, true)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var up store.RunUpdate
	var problem string
	if err != nil {
		e := runError(err, "internal", "copying the artifacts failed by a fault of this server, whose log has the details")
		s.log.Error("copying the artifacts failed", "run", r.RunID, "err", err)
		say(e.Message)
		problem = e.Message
	}
	up.CopyError = &problem
	if dir := s.folder(r.RunID).artifacts(); err == nil && here {
		up.ArtifactURI = &dir
	}
	return s.update(context.WithoutCancel(ctx), r.RunID, up)
}

func (s *Supervisor) fetchOf(ctx context.Context, a *active) error {
	r, err := s.db.RunByID(ctx, a.id)
	if err != nil {
		return err
	}
	return s.fetch(ctx, r, s.noteTo(ctx, a))
}

// fetchJob is as much of a run's job as a copy needs.
func (s *Supervisor) fetchJob(ctx context.Context, r store.Run, say func(string)) runners.Job {
	keep := func(up store.RunUpdate) {
		if err := s.update(context.WithoutCancel(ctx), r.RunID, up); err != nil {
			s.log.Warn("cannot store how far the copy is", "run", r.RunID, "err", err)
		}
	}
	return runners.Job{
		Job: api.Job{RunID: r.RunID}, Backend: r.Backend, Dir: string(s.folder(r.RunID)), Say: say,
		Step: func(text string) { keep(store.RunUpdate{Step: &text}) },
		Warn: func(text string) { keep(store.RunUpdate{Warn: []string{text}}) },
	}
}

func (s *Supervisor) noteTo(ctx context.Context, a *active) func(string) {
	return func(line string) { s.note(context.WithoutCancel(ctx), a, "info", line) }
}
