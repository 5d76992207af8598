package supervisor

import (
	"context"
	"fmt"
	"sync"

	"potato/api"
	"potato/store"
)

// underWay are the states of a run that holds a place.
var underWay = []api.RunStatus{api.RunBuilding, api.RunRunning, api.RunEvaluating}

// notOver are those, and queued.
var notOver = append([]api.RunStatus{api.RunQueued}, underWay...)

// takeQueued starts the runs that have a place, in the order of the queue. Run alone calls it, so two runs can never take
// the same place (P1).
func (s *Supervisor) takeQueued(ctx context.Context, work *sync.WaitGroup) error {
	s.claims.fed()
	queued, err := s.db.RunsByStatus(ctx, api.RunQueued)
	if err != nil || len(queued) == 0 {
		return err
	}
	busy, err := s.db.RunsByStatus(ctx, underWay...)
	if err != nil {
		return err
	}
	taken := s.countPlaces(busy)
	for _, r := range queued {
		if r.CancelRequested {
			s.endCancelled(ctx, r.RunID, api.RunQueued)
			continue
		}
		if !s.free(taken, r.Backend) {
			continue // runs of other backends may pass it
		}
		start := s.startQueued
		if s.claimedByAgents(r.Backend) {
			start = s.offer
		}
		started, err := start(ctx, r, work)
		if err != nil {
			return err
		}
		if started {
			taken[s.placeOf(r.Backend)]++
		}
	}
	return nil
}

// startQueued starts a run that has a place. False says that it was cancelled at this moment.
func (s *Supervisor) startQueued(ctx context.Context, r store.Run, work *sync.WaitGroup) (started bool, err error) {
	at := s.seconds()
	step, message := "building the bundle", "Building the bundle"
	err = s.move(ctx, r.RunID, api.RunQueued, api.RunBuilding, store.RunUpdate{StartedAt: &at, Step: &step, Message: &message})
	if api.HasCode(err, "run_moved") || api.HasCode(err, "run_not_found") {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	r.Status, r.StartedAt = api.RunBuilding, &at
	s.carry(ctx, r, work)
	return true, nil
}

// forAgent is what a run waits for that has a place and nobody to take it.
func forAgent(backend string) string { return "an agent on " + backend + " to ask for it" }

// places counts the runs under way by what limits them: a backend, or all of them together under the empty name.
type places map[string]int

func (s *Supervisor) countPlaces(busy []store.Run) places {
	taken := places{}
	for _, r := range busy {
		taken[s.placeOf(r.Backend)]++
	}
	return taken
}

func (s *Supervisor) placeOf(backend string) string {
	_, shared := s.o.Config.ModelTraining.MaxConcurrentRuns.Places(backend)
	return placeName(backend, shared)
}

func placeName(backend string, shared bool) string {
	if shared {
		return ""
	}
	return backend
}

// free reports whether there is a place for a run of the backend (S4). One that waits for an agent takes none.
func (s *Supervisor) free(taken places, backend string) bool {
	n, shared := s.o.Config.ModelTraining.MaxConcurrentRuns.Places(backend)
	return taken[placeName(backend, shared)] < n
}

// queuePlaces tells each queued run's place and what it waits for.
func (s *Supervisor) queuePlaces(ctx context.Context) (map[api.RunID]*api.Queue, error) {
	runs, err := s.db.RunsByStatus(ctx, notOver...)
	if err != nil {
		return nil, err
	}
	ahead := map[string]api.RunID{} // the run that a place waits for
	for _, r := range runs {
		if r.Status != api.RunQueued {
			ahead[s.placeOf(r.Backend)] = r.RunID
		}
	}
	queue := map[api.RunID]*api.Queue{}
	for _, r := range runs {
		if r.Status != api.RunQueued {
			continue
		}
		q := &api.Queue{Position: len(queue) + 1, WaitingFor: "its turn"}
		n, shared := s.o.Config.ModelTraining.MaxConcurrentRuns.Places(r.Backend)
		name := placeName(r.Backend, shared)
		first, blocked := ahead[name]
		switch {
		case n == 0:
			q.WaitingFor = fmt.Sprintf("a place: max_concurrent_runs gives %s none", r.Backend)
		case blocked:
			q.WaitingFor = fmt.Sprintf("run %s to end", first)
		case s.claimedByAgents(r.Backend):
			q.WaitingFor = forAgent(r.Backend)
			queue[r.RunID] = q
			continue // it holds up nobody
		}
		ahead[name] = r.RunID
		queue[r.RunID] = q
	}
	return queue, nil
}
