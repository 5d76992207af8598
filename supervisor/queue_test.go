package supervisor_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"potato/agent/agenttest"
	"potato/api"
	"potato/project"
	"potato/runners"
	"potato/runners/runnertest"
	"potato/store"
	"potato/supervisor"
)

// fake puts the fake runner in the place of the local one; what it works on outlives a restart of the server.
func fake(m *runnertest.Machine) func(*supervisor.Options) {
	return func(o *supervisor.Options) {
		o.Runners = map[api.BackendType]runners.Runner{api.BackendLocal: &runnertest.Fake{Machine: m}}
	}
}

func gate(t *testing.T) string { return filepath.Join(t.TempDir(), "gate") }

func open(t *testing.T, gate string) {
	t.Helper()
	must(t, os.WriteFile(gate, nil, 0o600))
}

func TestP1EightAtOnceNeverTrainTwo(t *testing.T) {
	s := start(t, runnertest.Study(t, ""), fake(&runnertest.Machine{}))
	g := gate(t)
	type answer struct {
		api.RunStarted
		err error
	}
	answers := make(chan answer)
	for range 8 {
		go func() {
			started, err := s.CreateRun(t.Context(), request(map[string]any{"gate": g}), api.TriggerAPI, "admin")
			answers <- answer{started, err}
		}()
	}
	begun := 0
	var places []int
	for range 8 {
		a := <-answers
		must(t, a.err)
		if a.Started {
			begun++
		} else {
			places = append(places, a.Queue.Position)
		}
	}
	if begun != 1 || len(places) != 7 {
		t.Errorf("%d began at once, %d wait; want 1 and 7", begun, len(places))
	}
	status, err := s.Status(t.Context())
	must(t, err)
	if len(status.Running) != 1 || len(status.Queued) != 7 || status.Queued[6].Queue.Position != 7 {
		t.Errorf("got %d running and %d queued, want 1 and 7", len(status.Running), len(status.Queued))
	}
	open(t, g)
	var all []api.Run
	agenttest.Wait(t, "all to end", func() (bool, string) {
		list, err := s.Runs(t.Context(), store.RunFilter{Sort: "created_at", Status: []api.RunStatus{api.RunSuccess}})
		must(t, err)
		all = list.Runs
		return len(all) == 8, ""
	})
	slices.SortFunc(all, func(a, b api.Run) int { return int(1000 * (*a.StartedAt - *b.StartedAt)) })
	for i := 1; i < len(all); i++ {
		if *all[i].StartedAt < *all[i-1].FinishedAt {
			t.Errorf("run %s began before run %s had ended", all[i].RunID, all[i-1].RunID)
		}
	}
}

func TestQueueKeepsItsOrder(t *testing.T) {
	s := start(t, runnertest.Study(t, ""), fake(&runnertest.Machine{}))
	g := gate(t)
	var ids []api.RunID
	for range 4 {
		ids = append(ids, s.create(map[string]any{"gate": g}))
	}
	r := s.await(ids[2], api.RunQueued)
	if r.Queue == nil || r.Queue.Position != 2 || r.Queue.WaitingFor != "run "+string(ids[1])+" to end" {
		t.Errorf("got queue %+v, want place 2 behind run %s", r.Queue, ids[1])
	}
	open(t, g)
	var last float64
	for _, id := range ids {
		r := s.await(id, api.RunSuccess)
		if *r.StartedAt < last {
			t.Errorf("run %s came out of its turn", id)
		}
		last = *r.StartedAt
	}
}

func TestMaxConcurrentRuns(t *testing.T) {
	s := start(t, runnertest.Study(t, "  max_concurrent_runs: 3\n"), fake(&runnertest.Machine{}))
	g := gate(t)
	for range 5 {
		s.create(map[string]any{"gate": g})
	}
	status, err := s.Status(t.Context())
	must(t, err)
	if len(status.Running) != 3 || len(status.Queued) != 2 {
		t.Errorf("got %d running and %d queued, want 3 and 2", len(status.Running), len(status.Queued))
	}
	open(t, g)
	agenttest.Wait(t, "all to end", func() (bool, string) {
		status, err := s.Status(t.Context())
		must(t, err)
		return len(status.Running)+len(status.Queued) == 0, ""
	})
}

func TestCreateRunSaysWhatIsWrong(t *testing.T) {
	c := runnertest.Study(t, `  backends:
    gpu-server: {type: ssh, host: gpu.example.org}
`)
	s := start(t, c, nil)
	for name, tt := range map[string]struct {
		change     func(*api.RunRequest)
		code, path string
	}{
		"no such backend":  {func(r *api.RunRequest) { r.Backend = "moon" }, "unknown_backend", "body.backend"},
		"without a runner": {func(r *api.RunRequest) { r.Backend = "gpu-server" }, "backend_unavailable", "body.backend"},
		"no such trainer":  {func(r *api.RunRequest) { r.Trainer = "stered" }, "unknown_trainer", "body.trainer"},
		"no such scheme":   {func(r *api.RunRequest) { r.Schemas = []string{"sentiment", "mood"} }, "bad_schemas", "body.schemas[1]"},
		"no scheme":        {func(r *api.RunRequest) { r.Schemas = nil }, "bad_schemas", "body.schemas"},
		"bad parameter":    {func(r *api.RunRequest) { r.Params = map[string]any{"junk": "much"} }, "bad_params", "body.params.junk"},
		"no parameter":     {func(r *api.RunRequest) { r.Params = map[string]any{"gaet": "x"} }, "bad_params", "body.params.gaet"},
	} {
		t.Run(name, func(t *testing.T) {
			req := request(nil)
			tt.change(&req)
			_, err := s.CreateRun(t.Context(), req, api.TriggerAPI, "admin")
			wantCode(t, err, tt.code)
			e := api.AsError(err)
			if len(e.Problems) == 0 || e.Problems[0].Path != tt.path || e.Hint == "" {
				t.Errorf("got problems %+v and hint %q, want %s first and a hint", e.Problems, e.Hint, tt.path)
			}
		})
	}
	list, err := s.Runs(t.Context(), store.RunFilter{})
	must(t, err)
	if len(list.Runs) != 0 {
		t.Errorf("got %d runs of refused requests, want none", len(list.Runs))
	}
	backends, err := s.Backends(t.Context())
	must(t, err)
	if len(backends.Backends) != 2 || backends.Backends[0].Name != "local" || !backends.Backends[0].Available || !backends.Backends[0].Default ||
		backends.Backends[1].Label != "gpu-server (ssh to gpu.example.org)" || backends.Backends[1].Available || backends.Backends[1].Reason == "" {
		t.Errorf("got %+v", backends.Backends)
	}
}

// A trainer whose file is broken is refused with what is wrong with it.
func TestCreateRunOfABrokenTrainer(t *testing.T) {
	c := runnertest.Study(t, "")
	must(t, os.WriteFile(filepath.Join(c.Dir, "trainers", "mine.py"), []byte("def train(:\n"), 0o600))
	s := start(t, c, nil)
	req := request(nil)
	req.Trainer = "mine.py"
	_, err := s.CreateRun(t.Context(), req, api.TriggerAPI, "admin")
	wantCode(t, err, "unknown_trainer")
	if e := api.AsError(err); !strings.Contains(e.Message, "line 1 is not valid Python") || len(e.Problems) != 1 {
		t.Errorf("got %q, %+v; want the reason", e.Message, e.Problems)
	}
}

// A scheme that no trainer can take is refused in words, not by the name of its kind.
func TestCreateRunOfFreeText(t *testing.T) {
	c := runnertest.Study(t, "")
	c.AnnotationSchemes = append(c.AnnotationSchemes, project.Scheme{Name: "note", AnnotationType: "text"})
	s := start(t, c, nil)
	req := request(nil)
	req.Schemas = []string{"note"}
	_, err := s.CreateRun(t.Context(), req, api.TriggerAPI, "admin")
	wantCode(t, err, "bad_schemas")
	if text := api.AsError(err).Message; strings.Contains(text, "unsupported") || !strings.Contains(text, "can be trained") {
		t.Errorf("got %q, want what can be trained", text)
	}
}

func TestT51NothingToTrain(t *testing.T) {
	c := runnertest.Study(t, "")
	for _, who := range []string{"ana", "ben"} {
		runnertest.Label(t, c.Dir, who, 0, 0)
	}
	s := start(t, c, nil)
	_, err := s.CreateRun(t.Context(), request(nil), api.TriggerAPI, "admin")
	wantCode(t, err, "nothing_to_train")
	t.Log(err)
}

func TestQueueSurvivesARestart(t *testing.T) {
	m := &runnertest.Machine{}
	s := start(t, runnertest.Study(t, ""), fake(m))
	g := gate(t)
	var ids []api.RunID
	for range 3 {
		ids = append(ids, s.create(map[string]any{"gate": g}))
	}
	s.awaitStep(ids[0], "fitting")
	s.restart()
	if r := s.await(ids[2], api.RunQueued); r.Queue.Position != 2 {
		t.Errorf("got place %d after a restart, want 2", r.Queue.Position)
	}
	open(t, g)
	for _, id := range ids {
		s.await(id, api.RunSuccess)
	}
}

func TestCancelInTheQueue(t *testing.T) {
	s := start(t, runnertest.Study(t, ""), fake(&runnertest.Machine{}))
	g := gate(t)
	first, second := s.create(map[string]any{"gate": g}), s.create(map[string]any{"gate": g})
	r, err := s.Cancel(t.Context(), second)
	must(t, err)
	if r.Status != api.RunCancelled || r.FinishedAt == nil || r.ErrorCode != "cancelled" {
		t.Errorf("got %s, want cancelled at once", r.Status)
	}
	_, err = s.Cancel(t.Context(), second)
	wantCode(t, err, "run_over")
	_, err = s.Cancel(t.Context(), "20260101T000000-000000")
	wantCode(t, err, "run_not_found")
	open(t, g)
	s.await(first, api.RunSuccess)
	_, err = s.Cancel(t.Context(), first)
	wantCode(t, err, "run_over")
}

// TestCancelAtEveryMoment cancels runs with less and less delay and more and more: each one ends as cancelled or went
// through, and nothing hangs (P2).
func TestCancelAtEveryMoment(t *testing.T) {
	s := start(t, runnertest.Study(t, ""), fake(&runnertest.Machine{}))
	for i := range 40 {
		id := s.create(nil)
		if i > 0 {
			<-time.After(time.Duration(i) * 500 * time.Microsecond)
		}
		_, err := s.Cancel(t.Context(), id)
		want := api.RunCancelled
		if err != nil {
			if !api.HasCode(err, "too_late") && !api.HasCode(err, "run_over") {
				t.Fatal(err)
			}
			want = api.RunSuccess
		}
		s.await(id, want)
	}
}
