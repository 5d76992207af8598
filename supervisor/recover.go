package supervisor

import (
	"context"
	"sync"
)

// recover takes up again every run that an earlier server left in the middle (R6): what was being built is built anew,
// what was training is followed by its handle, and the tail of a run is done again from what is stored. What is queued
// stays there. Limits start afresh: silence before this server's own start is not the agents' fault.
func (s *Supervisor) recover(ctx context.Context, work *sync.WaitGroup) error {
	runs, err := s.db.RunsByStatus(ctx, underWay...)
	if err != nil {
		return err
	}
	for _, r := range runs {
		s.log.Info("taking up a run again", "run", r.RunID, "status", r.Status)
		s.carry(ctx, r, work)
	}
	return nil
}
