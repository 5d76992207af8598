package supervisor

import (
	"context"
	"os"
	"sync"
	"time"

	"potato/runners"

	"potato/api"
	"potato/store"
)

// carry brings a run from the state it is in to its end, in a goroutine of its own. When ctx ends it leaves the run where
// it is, for the next server.
func (s *Supervisor) carry(ctx context.Context, r store.Run, work *sync.WaitGroup) {
	a, err := s.activate(ctx, r)
	if err != nil {
		s.log.Error("cannot take up the run", "run", r.RunID, "err", err)
		work.Go(func() {
			s.endError(ctx, r.RunID, r.Status, runError(err, "start_failed", "the run's folder cannot be used"))
		})
		return
	}
	work.Go(func() {
		at := s.advanceWithin(ctx, a, r)
		back := at != "" && a.wasReleased() && ctx.Err() == nil
		if back {
			s.note(ctx, a, "warning", "the agent on "+a.host+" claimed the run and did not begin; it is queued again")
		}
		s.deactivate(a)
		if back {
			s.requeue(ctx, a.id, at, a.host)
		}
	})
}

// advanceWithin is advance with the run's limits watched.
func (s *Supervisor) advanceWithin(ctx context.Context, a *active, r store.Run) (stuck api.RunStatus) {
	var limits sync.WaitGroup
	watched, done := context.WithCancel(ctx)
	limits.Go(func() { s.watchLimits(watched, a, r.Backend) })
	defer limits.Wait()
	defer done()
	return s.advance(ctx, a, r)
}

// advance goes through the states from the run's own on. It returns the state in which the run is stuck when the agent
// that claimed it never spoke.
func (s *Supervisor) advance(ctx context.Context, a *active, r store.Run) (stuck api.RunStatus) {
	if r.Status == api.RunBuilding {
		s.o.Hold(ctx, a.id, r.Status)
		if err := s.build(ctx, a, r); err != nil {
			return s.endWork(ctx, a, api.RunBuilding, err)
		}
		r.Status = api.RunRunning
	}
	if r.Status == api.RunRunning {
		s.o.Hold(ctx, a.id, r.Status)
		if err := s.train(ctx, a, r); err != nil {
			return s.endWork(ctx, a, api.RunRunning, err)
		}
	}
	s.o.Hold(ctx, a.id, api.RunEvaluating)
	if ctx.Err() == nil {
		s.evaluate(ctx, a)
	}
	return ""
}

// endWork ends a run whose work broke off with err: as cancelled when somebody asked for it, with the error that it was
// condemned to when there is one, else with err. When ctx has ended it is we who leave, and the run stays as it is; so it
// does when its agent never spoke, and then the state is returned.
func (s *Supervisor) endWork(ctx context.Context, a *active, from api.RunStatus, err error) (stuck api.RunStatus) {
	if ctx.Err() != nil {
		return ""
	}
	a.quit()
	r, readErr := s.db.RunByID(ctx, a.id)
	if readErr != nil {
		s.log.Error("cannot read the run", "run", a.id, "err", readErr)
		return ""
	}
	if a.wasReleased() && !r.CancelRequested && r.ErrorCode == "" {
		return from
	}
	e := runError(err, "start_failed", "the run broke off by a fault of this server, whose log has the details")
	if e.Unwrap() != nil {
		s.log.Warn("run failed", "run", a.id, "err", err, "cause", e.Unwrap())
	}
	switch {
	case r.CancelRequested:
		s.note(ctx, a, "warning", "cancelled")
		s.removeJob(a.id)
		s.endCancelled(ctx, a.id, from)
		return ""
	case a.failed() != nil:
		e = a.failed()
	case r.ErrorCode != "":
		e = runners.WithHint(api.Unavailablef(r.ErrorCode, "%s", r.Error).WithHint("%s", r.Hint))
	}
	if from == api.RunBuilding {
		s.remove(a.id, s.folder(a.id).bundle()) // half of a bundle helps nobody, and the disk may be full
	}
	s.noteFailure(ctx, a, r, e)
	s.removeJob(a.id)
	s.endError(ctx, a.id, from, e)
	return ""
}

// noteFailure writes the error and the worker's last words into the run's log, so that the log alone tells the story (T30).
func (s *Supervisor) noteFailure(ctx context.Context, a *active, r store.Run, e *api.Error) {
	if r.Finish != nil {
		for _, line := range r.Finish.Stderr {
			s.note(ctx, a, "error", "stderr: "+line)
		}
	}
	s.note(ctx, a, "error", e.Message)
}

// note adds a line of the server's own to the run's log. A log that cannot be written is no reason to stop.
func (s *Supervisor) note(ctx context.Context, a *active, level, msg string) {
	s.say(ctx, a, api.Event{Level: level, Msg: msg})
}

// noteAgent adds a line to agent.log.
func (s *Supervisor) noteAgent(ctx context.Context, a *active, msg string) {
	s.say(ctx, a, api.Event{Level: "info", Source: "agent", Msg: s.o.Now().UTC().Format(time.RFC3339) + " " + msg})
}

func (s *Supervisor) say(ctx context.Context, a *active, e api.Event) {
	e.Event, e.T = api.EventLog, s.seconds()
	err := a.log.say(e, func(_ []api.Event, got store.Received) error {
		return s.db.UpdateRun(context.WithoutCancel(ctx), a.id, store.RunUpdate{Received: &got})
	})
	if err != nil {
		s.log.Warn("cannot write the run's log", "run", a.id, "err", err)
	}
	s.hub.wake(a.id)
}

func (s *Supervisor) endCancelled(ctx context.Context, id api.RunID, from api.RunStatus) {
	code, text, message := "cancelled", "Cancelled by the admin", "Cancelled"
	s.end(ctx, id, from, api.RunCancelled, store.RunUpdate{ErrorCode: &code, Error: &text, Message: &message})
}

func (s *Supervisor) endError(ctx context.Context, id api.RunID, from api.RunStatus, e *api.Error) {
	code := runCode(e.Code, from)
	s.end(ctx, id, from, api.RunError, store.RunUpdate{ErrorCode: &code, Error: &e.Message, Hint: &e.Hint, Message: &e.Message})
}

// end moves a run to a final state. It tries until that is stored, or until we leave and the next server finds the run as
// it was: a disk may be full for a while.
func (s *Supervisor) end(ctx context.Context, id api.RunID, from, to api.RunStatus, up store.RunUpdate) {
	at, none, no := s.seconds(), "", false
	up.FinishedAt, up.Step, up.NoProgress, up.CancelRequested = &at, &none, true, &no
	for roomMade := false; ; {
		err := s.move(context.WithoutCancel(ctx), id, from, to, up)
		if err == nil || api.HasCode(err, "run_moved") {
			return
		}
		if isDiskFull(err) && to != api.RunSuccess && !roomMade {
			s.makeRoom(id)
			roomMade = true
			continue
		}
		s.log.Error("cannot end the run; trying again", "run", id, "err", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(5 * s.o.LimitEvery):
		}
	}
}

// makeRoom gives up the bundle of a run that fails on a full disk: its end needs the room more.
func (s *Supervisor) makeRoom(id api.RunID) { s.remove(id, s.folder(id).bundle()) }

// removeJob removes what only an agent needed: a local one's folder, the packed bundle, half an upload.
func (s *Supervisor) removeJob(id api.RunID) {
	dir := s.folder(id)
	for _, path := range []string{dir.job(), dir.archive(), dir.archiveSum(), dir.upload()} {
		s.remove(id, path)
	}
}

func (s *Supervisor) remove(id api.RunID, path string) {
	if err := os.RemoveAll(path); err != nil {
		s.log.Warn("cannot remove what the run no longer needs", "run", id, "path", path, "err", err)
	}
}
