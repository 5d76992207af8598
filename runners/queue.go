package runners

import (
	"context"
	"fmt"
	"sync"

	"potato/api"
	"potato/store"
)

// underWay are the states of a run that holds a place.
var underWay = []api.RunStatus{api.RunBuilding, api.RunRunning, api.RunEvaluating}

// takeQueued starts the runs that have a place, in the order of the queue. Run alone calls it, so two runs can never take
// the same place (P1).
func (s *Supervisor) takeQueued(ctx context.Context, work *sync.WaitGroup) error {
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
		if !s.takePlace(taken, r.Backend) {
			continue // runs of other backends may pass it
		}
		at := s.seconds()
		step, message := "building the bundle", "Building the bundle"
		err := s.move(ctx, r.RunID, api.RunQueued, api.RunBuilding, store.RunUpdate{StartedAt: &at, Step: &step, Message: &message})
		if api.HasCode(err, "run_moved") || api.HasCode(err, "run_not_found") {
			continue // cancelled at this moment
		}
		if err != nil {
			return err
		}
		r.Status, r.StartedAt = api.RunBuilding, &at
		s.carry(ctx, r, work)
	}
	return nil
}

// places counts the runs under way by what limits them: a backend, or all of them together under the empty name.
type places map[string]int

func (s *Supervisor) countPlaces(busy []store.Run) places {
	taken := places{}
	for _, r := range busy {
		_, shared := s.o.Config.ModelTraining.MaxConcurrentRuns.Places(r.Backend)
		taken[placeName(r.Backend, shared)]++
	}
	return taken
}

func placeName(backend string, shared bool) string {
	if shared {
		return ""
	}
	return backend
}

// takePlace takes a place for a run of the backend when there is one (S4).
func (s *Supervisor) takePlace(taken places, backend string) bool {
	n, shared := s.o.Config.ModelTraining.MaxConcurrentRuns.Places(backend)
	name := placeName(backend, shared)
	if taken[name] >= n {
		return false
	}
	taken[name]++
	return true
}

// queuePlaces tells each queued run's place and what it waits for.
func (s *Supervisor) queuePlaces(ctx context.Context) (map[api.RunID]*api.Queue, error) {
	runs, err := s.db.RunsByStatus(ctx, append([]api.RunStatus{api.RunQueued}, underWay...)...)
	if err != nil {
		return nil, err
	}
	ahead := map[string]api.RunID{} // the run that a place waits for
	for _, r := range runs {
		if r.Status != api.RunQueued {
			_, shared := s.o.Config.ModelTraining.MaxConcurrentRuns.Places(r.Backend)
			ahead[placeName(r.Backend, shared)] = r.RunID
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
		switch first, ok := ahead[name]; {
		case n == 0:
			q.WaitingFor = fmt.Sprintf("a place: max_concurrent_runs gives %s none", r.Backend)
		case ok:
			q.WaitingFor = fmt.Sprintf("run %s to end", first)
		}
		ahead[name] = r.RunID
		queue[r.RunID] = q
	}
	return queue, nil
}
