package supervisor

import (
	"context"
	"sync"

	"potato/api"
	"potato/store"
)

// copies are the finished runs whose files are to be copied here once more, one after the other.
type copies struct {
	mu      sync.Mutex
	waiting map[api.RunID]bool // and the one that is being copied
	next    chan store.Run
}

const maxCopies = 100

func newCopies() *copies {
	return &copies{waiting: map[api.RunID]bool{}, next: make(chan store.Run, maxCopies)}
}

// CopyArtifacts has the files of a successful run copied here from the machine that trained, once more and from where the
// last copy broke off (H7). It returns at once; the run's step says how far the copy is, its warnings what went wrong.
// Conflict has code nothing_to_copy when there is no more to come, and copy_running when it is under way.
func (s *Supervisor) CopyArtifacts(ctx context.Context, id api.RunID) error {
	r, err := s.db.RunByID(ctx, id)
	if err != nil {
		return err
	}
	b, _ := s.o.Config.ModelTraining.Backends.ByName(r.Backend)
	nothing := func(why, hint string) error {
		return api.Conflictf("nothing_to_copy", "run %s has no files to copy: %s", id, why).WithHint("%s", hint)
	}
	switch {
	case r.Status != api.RunSuccess || s.activeRun(id) != nil:
		return nothing("it is "+string(r.Status), "only a run that has ended with success leaves a model")
	case r.Pruned:
		return nothing("its files were removed, since newer runs are kept", "raise `retain_runs` to keep more of them")
	case s.fetcher(r.Backend) == nil || r.Handle == nil:
		return nothing("this server cannot reach the machine that trained, or is that machine", "`artifact_uri` says where they are")
	case r.ArtifactURI == s.folder(id).artifacts():
		return nothing("they are all here", "")
	case !b.FetchArtifacts:
		return nothing("`fetch_artifacts` of "+r.Backend+" is false", "set it to true in the config, start the server again, and copy again")
	}
	s.copies.mu.Lock()
	defer s.copies.mu.Unlock()
	if s.copies.waiting[id] {
		return api.Conflictf("copy_running", "the files of run %s are being copied already", id).WithHint("its step says how far it is")
	}
	select {
	case s.copies.next <- r:
		s.copies.waiting[id] = true
		return nil
	default:
		return api.Unavailablef("copy_running", "%d runs are waiting to be copied", maxCopies).WithHint("ask again when some of them are done")
	}
}

// copying reports whether a finished run's files are on their way.
func (s *Supervisor) copying(id api.RunID) bool {
	s.copies.mu.Lock()
	defer s.copies.mu.Unlock()
	return s.copies.waiting[id]
}

// copyLoop copies what CopyArtifacts was asked for. A copy that a restart cuts off is not taken up by itself: whoever wants
// the files asks again.
func (s *Supervisor) copyLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case r := <-s.copies.next:
			say := func(line string) { s.log.Info(line, "run", r.RunID) }
			if err := s.fetch(ctx, r, say); err != nil && ctx.Err() == nil {
				s.log.Error("cannot store how the copy ended", "run", r.RunID, "err", err)
			}
			s.copies.mu.Lock()
			delete(s.copies.waiting, r.RunID)
			s.copies.mu.Unlock()
			none := ""
			if err := s.update(context.WithoutCancel(ctx), r.RunID, store.RunUpdate{Step: &none}); err != nil {
				s.log.Warn("cannot store the step", "run", r.RunID, "err", err)
			}
		}
	}
}
