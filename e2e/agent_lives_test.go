package e2e_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"potato/api"
)

// G8: registering again in mid-run ends the old agent's access at once: its worker is stopped and it says why it leaves.
// The agent with the new token tells how the run ended.
func TestRegisterAgainInMidRun(t *testing.T) {
	t.Parallel()
	dir := agentStudy(t, "grace_seconds: 2")
	config := filepath.Join(dir, "config.yaml")
	token := register(t, config)
	s := start(t, dir)
	workdir := t.TempDir()
	a := agentHere(t, s.URL, token, workdir)
	id := s.agentTextRun(forLong)
	s.training(id)
	all := jobs(t, workdir)
	if len(all) < 2 {
		t.Fatalf("shim and worker are to be among %v", all)
	}
	token = register(t, config)
	a.leaves(1)
	last := a.said()[strings.LastIndex(strings.TrimSpace(a.said()), "\n")+1:]
	if !strings.Contains(strings.ToLower(last), "this token was replaced by a newer one") || !strings.Contains(last, "potato training register") {
		t.Errorf("its last line is %q", last)
	}
	noJobLeft(t, workdir, all...)

	agentHere(t, s.URL, token, workdir)
	r := s.finished(id, "error")
	if r.ErrorCode != "killed" || !strings.Contains(r.Error, "token was replaced during the run") || r.Hint == "" {
		t.Errorf("%s, hint %q", describe(r), r.Hint)
	}
	s.finished(s.agentTextRun(0), "success")
}

// G8, T37: two agents with one token share six runs: each is trained once, and both agents are listed.
func TestTwoAgentsShareSixRuns(t *testing.T) {
	t.Parallel()
	dir := agentStudy(t, "max_concurrent_runs: 2")
	config := filepath.Join(dir, "config.yaml")
	token := register(t, config)
	s := start(t, dir)
	workdirs := []string{t.TempDir(), t.TempDir()}
	var agents []*agentProgram
	for _, workdir := range workdirs {
		agents = append(agents, agentHere(t, s.URL, token, workdir))
	}
	for _, a := range agents {
		a.says("interpreter of the worker")
	}
	var ids []string
	for range 6 {
		ids = append(ids, s.agentTextRun(0))
	}
	took := map[string]int{}
	for _, id := range ids {
		r := s.finished(id, "success")
		for i, a := range agents {
			if n := strings.Count(a.said(), `msg="taking a run" run=`+id); n > 0 {
				took[id] += n
				if want := filepath.Join(workdirs[i], "artifacts", id); !strings.HasSuffix(r.ArtifactURI, ":"+want) {
					t.Errorf("artifact_uri %q, want %s", r.ArtifactURI, want)
				}
			}
		}
		if took[id] != 1 {
			t.Errorf("run %s was taken %d times", id, took[id])
		}
	}
	for i, workdir := range workdirs {
		if models, _ := filepath.Glob(filepath.Join(workdir, "artifacts", "*", "model.pkl")); len(models) == 0 {
			t.Errorf("agent %d trained none of the six", i)
		}
	}
	_, said := ask(t, "training", "check", workstation, config)
	for _, workdir := range workdirs {
		id, err := os.ReadFile(filepath.Join(workdir, "agent_id"))
		if err != nil {
			t.Fatal(err)
		}
		if name := strings.TrimSpace(string(id)); strings.Count(said, name) != 1 {
			t.Errorf("%s is not listed once:\n%s", name, said)
		}
	}
	var list struct{ Backends []api.Backend }
	if status := s.api("GET", "/backends", nil, &list); status != http.StatusOK {
		t.Fatalf("backends answered %d", status)
	}
	i := slices.IndexFunc(list.Backends, func(b api.Backend) bool { return b.Name == workstation })
	if i < 0 || list.Backends[i].Agent == nil || len(list.Backends[i].Agent.Agents) != 2 {
		t.Errorf("the page's menu has %+v", list.Backends)
	}
}

// G8, T36: the agent is killed in mid-run and started again in the same workdir: the run goes on where it was, no event is
// lost or comes twice, and no worker is left.
func TestAgentIsKilledInMidRun(t *testing.T) {
	t.Parallel()
	dir := agentStudy(t)
	token := register(t, filepath.Join(dir, "config.yaml"))
	s := start(t, dir)
	workdir := t.TempDir()
	a := agentHere(t, s.URL, token, workdir)
	id := s.agentTextRun(forAWhile)
	s.training(id)
	first := worker(t, workdir)
	all := jobs(t, workdir)
	a.kill()
	a = agentHere(t, s.URL, token, workdir, "--once")
	a.says("going on with a run")
	if now := worker(t, workdir); now != first {
		t.Errorf("another worker runs: %d, not %d", now, first)
	}
	s.finished(id, "success")
	a.leaves(0)
	s.eventsOnce(id, forAWhile)
	noJobLeft(t, workdir, all...)
}

// T36: so it is when agent, shim and worker are all killed, as by a machine that restarts: the run fails with the reason.
func TestAgentsMachineRestarts(t *testing.T) {
	t.Parallel()
	dir := agentStudy(t)
	token := register(t, filepath.Join(dir, "config.yaml"))
	s := start(t, dir)
	workdir := t.TempDir()
	a := agentHere(t, s.URL, token, workdir)
	id := s.agentTextRun(forLong)
	s.training(id)
	all := jobs(t, workdir)
	a.kill()
	for _, pid := range all {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	agentHere(t, s.URL, token, workdir)
	r := s.finished(id, "error")
	if r.ErrorCode != "killed" || r.Error == "" || r.Hint == "" {
		t.Errorf("%s, hint %q", describe(r), r.Hint)
	}
	noJobLeft(t, workdir, all...)
	s.finished(s.agentTextRun(0), "success")
}

// eventsOnce checks that a run's events come in order, and that the loss of each of its epochs is told once.
func (s *server) eventsOnce(id string, epochs int) {
	s.t.Helper()
	var list struct {
		Events []struct {
			Seq         int64
			Event, Name string
			Step        any
		}
	}
	s.api("GET", "/runs/"+id+"/events?limit=5000", nil, &list)
	last, told, results := int64(0), 0, 0
	for _, e := range list.Events {
		if e.Seq <= last {
			s.t.Fatalf("event %d comes after %d", e.Seq, last)
		}
		last = e.Seq
		switch {
		case e.Event == "result":
			results++
		case e.Event == "metric" && e.Name == "loss":
			if told++; e.Step != float64(told) {
				s.t.Fatalf("the loss of epoch %v comes where that of %d was due", e.Step, told)
			}
		}
	}
	if results != 1 || told != epochs {
		s.t.Errorf("%d results, and the losses of %d epochs of %d", results, told, epochs)
	}
}
