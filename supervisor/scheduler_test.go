package supervisor_test

import (
	"context"
	"testing"
	"time"

	"potato/agent/agenttest"
	"potato/api"
	"potato/runners"
	"potato/runners/runnertest"
	"potato/supervisor"
)

// cluster is a runner whose agent says that its job waits in a scheduler's queue, until it is told that it runs.
type cluster struct {
	*runnertest.Fake
	runs chan struct{} // closed: the job runs
}

func (c *cluster) Follow(ctx context.Context, j runners.Job, _ api.Handle) error {
	seq := j.NextSeq
	say := func(state, step string) error {
		_, err := j.Desk.Progress(ctx, j.Job, []api.Event{{V: 1, Event: api.EventStatus, Seq: seq, Attempt: 1, State: state, Step: step}})
		seq++
		return err
	}
	if err := say(api.StatePending, "SLURM job 7: PENDING (Priority)"); err != nil {
		return err
	}
	for running := false; ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-j.Cancel:
			return j.Desk.Finish(ctx, j.Job, api.Finish{Cancelled: true})
		case <-time.After(20 * time.Millisecond):
		}
		if _, err := j.Desk.Heartbeat(ctx, j.Job); err != nil {
			return err
		}
		select {
		case <-c.runs:
			if !running {
				running = true
				if err := say("running", "SLURM job 7: RUNNING on node01"); err != nil {
					return err
				}
			}
		default:
		}
	}
}

// C3: the time in a scheduler's queue is no time of the run: max_wall_seconds does not end a run that waits there, and does
// once the job runs. A restart of the server forgets none of it.
func TestSchedulersQueueIsNotTheRuns(t *testing.T) {
	t.Parallel()
	c := &cluster{&runnertest.Fake{Machine: &runnertest.Machine{}}, make(chan struct{})}
	s := start(t, runnertest.Study(t, "  max_wall_seconds: 1\n"), func(o *supervisor.Options) {
		o.Runners = map[api.BackendType]runners.Runner{api.BackendLocal: c}
		o.HeartbeatWait = 20 * time.Millisecond
	})
	id := s.create(nil)
	waited := func(least float64) {
		t.Helper()
		agenttest.Wait(t, "the time in the scheduler's queue to be counted", func() (bool, string) {
			r, err := s.RunByID(t.Context(), id)
			must(t, err)
			if r.Status.Final() {
				t.Fatalf("the run ended in the scheduler's queue: %s", r.Error)
			}
			return r.SchedulerWaitS >= least, r.Step
		})
	}
	waited(1.5)
	s.restart()
	waited(3)
	close(c.runs)
	r := s.await(id, api.RunError)
	if r.ErrorCode != "wall_time" || r.SchedulerWaitS < 3 || *r.Duration-r.SchedulerWaitS < 0.9 || *r.Duration-r.SchedulerWaitS > 3 {
		t.Errorf("got %s after %v s, %v of them in the scheduler's queue", r.ErrorCode, *r.Duration, r.SchedulerWaitS)
	}
	again, err := s.RunByID(t.Context(), id)
	if err != nil || again.SchedulerWaitS != r.SchedulerWaitS {
		t.Errorf("the time in the queue grows after the end: %v, then %v (%v)", r.SchedulerWaitS, again.SchedulerWaitS, err)
	}
}
