package agent_test

import (
	"context"
	"sync"
	"testing"

	"potato/agent/agenttest"
	"potato/api"
)

// overtaken is a server whose answer to a heartbeat, that the run is over, comes before its answer to the finish that
// ended the run.
type overtaken struct {
	*agenttest.Desk
	refuses bool // the run was over before
	once    sync.Once
	told    chan struct{} // closed by the finish
}

func (d *overtaken) Heartbeat(ctx context.Context, _ api.Job) (api.Answer, error) {
	select {
	case <-d.told:
		return api.Answer{}, api.Gonef("run_over", "the run is over")
	case <-ctx.Done():
		return api.Answer{}, ctx.Err()
	}
}

func (d *overtaken) Finish(ctx context.Context, job api.Job, f api.Finish) (err error) {
	d.once.Do(func() {
		if !d.refuses {
			err = d.Desk.Finish(ctx, job, f)
		}
		close(d.told)
		<-ctx.Done()
		err = ctx.Err()
	})
	switch {
	case err != nil:
		return err
	case d.refuses:
		return api.Gonef("run_over", "the run is over")
	}
	return d.Desk.Finish(ctx, job, f)
}

// Our own finish ends the run, and a heartbeat may hear of that first: the job is done all the same, and not somebody
// else's.
func TestHeartbeatHearsOfTheEndFirst(t *testing.T) {
	b := newBench(t, agenttest.Good(1)...)
	b.o.Desk = &overtaken{Desk: b.desk, told: make(chan struct{})}
	if f := b.finish(); f.ErrorCode != "" || b.desk.Calls(agenttest.CallFinish) != 2 {
		t.Errorf("finish = %+v, told %d times", f, b.desk.Calls(agenttest.CallFinish))
	}

	b = newBench(t, agenttest.Good(1)...)
	b.o.Desk = &overtaken{Desk: b.desk, refuses: true, told: make(chan struct{})}
	if err := b.begin(t.Context())(); !api.HasCode(err, "run_over") {
		t.Errorf("Work of a run that was over before: %v", err)
	}
}
