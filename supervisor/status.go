package supervisor

import (
	"context"

	"potato/api"
)

// stateIdle is what Status says when no run is under way.
const stateIdle api.RunStatus = "idle"

// DatabaseGone says that the study's database was removed, or replaced, since the server started. Nothing is saved then.
func (s *Supervisor) DatabaseGone() error { return s.db.Gone() }

// Status is what the server is doing right now.
func (s *Supervisor) Status(ctx context.Context) (api.Status, error) {
	st := api.Status{
		State: stateIdle, Running: []api.Run{}, Queued: []api.Run{}, Warnings: []string{},
		ProjectName: s.o.Config.AnnotationTaskName, Version: s.o.Version,
	}
	runs, err := s.underWay(ctx)
	if err != nil {
		return st, err
	}
	for _, r := range runs {
		if r.Status == api.RunQueued {
			st.Queued = append(st.Queued, r)
		} else {
			st.Running = append(st.Running, r)
		}
	}
	if of := append(st.Running[:len(st.Running):len(st.Running)], st.Queued...); len(of) > 0 {
		st.State, st.RunID = of[0].Status, &of[0].RunID
	}
	auto, err := s.AutoRetrain(ctx)
	st.SkipReason = auto.SkipReason
	return st, err
}

// CountRuns counts the runs in each state; states without runs are absent.
func (s *Supervisor) CountRuns(ctx context.Context) (map[api.RunStatus]int, error) {
	return s.db.CountRuns(ctx)
}
