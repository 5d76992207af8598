package runners

import (
	"context"

	"potato/api"
)

// CountRuns counts the runs in each state; states without runs are absent.
func (s *Supervisor) CountRuns(ctx context.Context) (map[api.RunStatus]int, error) {
	return s.db.CountRuns(ctx)
}
