package supervisor_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"potato/agent/agenttest"
	"potato/api"
	"potato/runners/runnertest"
	"potato/store"
	"potato/supervisor"
)

// retrains is how many runs auto-retrain has started, and why it starts none now.
func (s *server) retrains() (int, api.AutoRetrain) {
	s.t.Helper()
	list, err := s.Runs(s.t.Context(), store.RunFilter{})
	must(s.t, err)
	n := 0
	for _, r := range list.Runs {
		if r.Trigger == api.TriggerAuto {
			n++
		}
	}
	state, err := s.AutoRetrain(s.t.Context())
	must(s.t, err)
	return n, state
}

func (s *server) awaitReason(n int, reason string) {
	s.t.Helper()
	agenttest.Wait(s.t, "auto-retrain to say "+reason, func() (bool, string) {
		got, state := s.retrains()
		return got == n && strings.Contains(state.SkipReason, reason), state.SkipReason
	})
}

func TestAutoRetrain(t *testing.T) {
	c := runnertest.Study(t, "  auto_retrain: {enabled: true, trainer: steered, schemas: [sentiment], update_frequency: 20, min_interval_s: 0}\n")
	m := &runnertest.Machine{}
	s := start(t, c, func(o *supervisor.Options) {
		fake(m)(o)
		o.RetrainEvery = 10 * time.Millisecond
	})
	// 60 answers are there: a first run, and then none until there are 20 more.
	s.awaitReason(1, "waiting for 20 more annotations")
	r, err := s.db.LatestRun(t.Context())
	must(t, err)
	if r.Trigger != api.TriggerAuto || r.CreatedBy != "auto-retrain" {
		t.Errorf("got a run of %s by %s", r.Trigger, r.CreatedBy)
	}
	s.await(r.RunID, api.RunSuccess)
	s.restart()
	s.awaitReason(1, "waiting for 20 more annotations") // P10
	runnertest.Label(t, c.Dir, "cem", 0, 19)
	s.awaitReason(1, "waiting for 1 more annotation")
	runnertest.Label(t, c.Dir, "cem", 0, 25)
	s.awaitReason(2, "waiting for 20 more annotations")
	status, err := s.Status(t.Context())
	must(t, err)
	if !strings.Contains(status.SkipReason, "waiting for") {
		t.Errorf("the status says %q", status.SkipReason)
	}
}

func TestAutoRetrainWaits(t *testing.T) {
	var at atomic.Int64
	at.Store(time.Date(2026, 11, 29, 23, 0, 0, 0, time.UTC).Unix())
	now := func() time.Time { return time.Unix(at.Load(), 0).UTC() }
	c := runnertest.Study(t, `  auto_retrain: {enabled: true, trainer: steered, schemas: [sentiment], update_frequency: 5, min_interval_s: 600, quiet_hours: "22:00-06:00"}
`)
	s := start(t, c, func(o *supervisor.Options) {
		fake(&runnertest.Machine{})(o)
		o.RetrainEvery, o.Now = 10*time.Millisecond, now
	})
	s.awaitReason(0, "quiet hours at 06:00")
	at.Store(time.Date(2026, 11, 30, 6, 0, 0, 0, time.UTC).Unix())
	s.awaitReason(1, "waiting for 5 more annotations")
	runnertest.Label(t, c.Dir, "cem", 0, 10)
	s.awaitReason(1, "more seconds since the last run")
	at.Add(601)
	s.awaitReason(2, "waiting for 5 more annotations")
}

func TestAutoRetrainIsOff(t *testing.T) {
	s := start(t, runnertest.Study(t, ""), fake(&runnertest.Machine{}))
	if n, state := s.retrains(); n != 0 || state.SkipReason != "auto-retrain is off" || state.Schemas == nil {
		t.Errorf("got %d runs, %+v", n, state)
	}
}

func TestAutoRetrainSaysWhatFails(t *testing.T) {
	c := runnertest.Study(t, "  auto_retrain: {enabled: true, trainer: nobody, schemas: [sentiment], update_frequency: 5}\n")
	s := start(t, c, func(o *supervisor.Options) { o.RetrainEvery = 10 * time.Millisecond })
	s.awaitReason(0, `there is no trainer "nobody"`)
}
