package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"potato/agent/agenttest"
	"potato/api"
)

// A run's way: claimed, done, told; its model stays here, everything else goes (G1-G4).
func TestPollDoesARun(t *testing.T) {
	p := newPolling(t)
	id := p.add(append([]agenttest.Step{{"status", "training"}, {"metrics", 20}}, agenttest.Good(5)...)...)
	var said []string
	p.o.Report = func(run api.RunID, text string) { said = append(said, strings.TrimSpace(string(run)+" "+text)) }
	if err := p.once(); err != nil {
		t.Fatalf("Poll: %v", err)
	}
	p.good(id, 20)
	h := p.server.Run(id)
	if strings.Count(string(h.Predictions), "\n") != 5 {
		t.Errorf("predictions: %q", h.Predictions)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	artifacts := filepath.Join(p.o.Workdir, "artifacts", string(id))
	if got, want := h.Finish.ArtifactURI, host+":"+artifacts; got != want {
		t.Errorf("artifact_uri %s, want %s", got, want)
	}
	if _, err := os.Stat(filepath.Join(artifacts, "predictions.jsonl")); err != nil {
		t.Error(err)
	}
	if left := p.has("jobs"); len(left) > 0 {
		t.Errorf("jobs/ has %v", left)
	}
	if all := join(said); !strings.HasPrefix(all, "waiting for a run; ") || !strings.Contains(all, string(id)+" training") || !strings.Contains(all, string(id)+" predictions: 0 of 0 MB") {
		t.Errorf("reported: %s", all)
	}
	q := p.server.Claims()[0]
	if q.Host != host || q.Backend != "lab" || q.Version != "test" || q.WaitS != 1 || len(q.Held) != 0 {
		t.Errorf("asked %+v", q)
	}
	for _, path := range []string{"", "jobs", "artifacts"} {
		if st, err := os.Stat(filepath.Join(p.o.Workdir, path)); err != nil || st.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", path, st, err)
		}
	}
}

// The agent's name is the same after a restart, and another one on another workdir.
func TestPollKeepsItsName(t *testing.T) {
	p := newPolling(t)
	for range 2 {
		p.add(agenttest.Good(1)...)
		if err := p.once(); err != nil {
			t.Fatal(err)
		}
	}
	p.o.Workdir = t.TempDir()
	p.add(agenttest.Good(1)...)
	if err := p.once(); err != nil {
		t.Fatal(err)
	}
	q := p.server.Claims()
	if q[0].AgentID != q[1].AgentID || q[1].AgentID == q[2].AgentID || q[0].ClaimID == q[1].ClaimID {
		t.Errorf("asked as %+v", q)
	}
}

// --keep leaves the bundle, and a job directory that was kept is not gone on with.
func TestPollKeepsBundles(t *testing.T) {
	p := newPolling(t)
	p.o.Keep = true
	id := p.add(agenttest.Good(1)...)
	if err := p.once(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(p.o.Workdir, "jobs", string(id), "bundle", "manifest.json")); err != nil {
		t.Error(err)
	}
	next := p.add(agenttest.Good(1)...)
	if err := p.once(); err != nil {
		t.Fatal(err)
	}
	p.good(next, 0)
	if held := p.server.Claims()[1].Held; len(held) > 0 {
		t.Errorf("held %v", held)
	}
}

// A worker that fails is the run's failure, not the agent's; artifacts that do not exist leave no folder.
func TestPollOutlivesAFailure(t *testing.T) {
	p := newPolling(t)
	stop, _ := p.start()
	bad := p.add(agenttest.Step{"error", "worker_failed", "It failed"}, agenttest.Step{"exit", 3})
	good := p.add(agenttest.Good(1)...)
	h := p.until(bad, api.RunError)
	if h.Finish.ErrorCode != "worker_failed" || *h.Finish.ExitCode != 3 {
		t.Errorf("finish: %+v", h.Finish)
	}
	p.good(good, 0)
	if err := stop(); err != nil {
		t.Errorf("Poll: %v", err)
	}
	if kept := join(p.has("artifacts")); kept != string(good) {
		t.Errorf("artifacts/ has %s", kept)
	}
}

// G8, T37: two agents with one token; each job goes to exactly one.
func TestPollTwoAgents(t *testing.T) {
	p := newPolling(t)
	stopA, _ := p.start()
	p.o.Workdir = t.TempDir()
	stopB, _ := p.start()
	var ids []api.RunID
	for range 6 {
		ids = append(ids, p.add(append([]agenttest.Step{{"sleep", 0.1}}, agenttest.Good(1)...)...))
	}
	both := map[string]bool{}
	for _, id := range ids {
		p.good(id, 0)
		h := p.server.Run(id)
		if len(h.Agents) != 1 {
			t.Errorf("%s was claimed by %v", id, h.Agents)
		}
		both[h.Agents[0]] = true
	}
	if len(both) != 2 {
		t.Errorf("agents that worked: %v", both)
	}
	if err := errors.Join(stopA(), stopB()); err != nil {
		t.Error(err)
	}
}

// A second agent on the same workdir is refused.
func TestPollWorkdirIsTaken(t *testing.T) {
	p := newPolling(t)
	stop, _ := p.start()
	agenttest.Wait(t, "the first question", func() (bool, string) { return len(p.server.Claims()) > 0, "" })
	err := p.once()
	if !api.HasCode(err, "workdir_taken") || !strings.Contains(err.Error(), "another agent works in "+p.o.Workdir) {
		t.Errorf("the second agent: %v", err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	p.add(agenttest.Good(1)...)
	if err := p.once(); err != nil {
		t.Errorf("after the first has left: %v", err)
	}
}

// G6: a cancel reaches the worker, and the agent goes on.
func TestPollCancel(t *testing.T) {
	p := newPolling(t)
	id := p.add(agenttest.Step{"on_term", "event"}, agenttest.Step{"status", "ready"}, agenttest.Step{"sleep", 600})
	stop, _ := p.start()
	p.says(id, "ready")
	began := time.Now()
	p.server.Cancel(id)
	if h := p.until(id, api.RunCancelled); h.Finish.ErrorCode != "" || time.Since(began) > 5*time.Second {
		t.Errorf("after %v: %+v", time.Since(began), h.Finish)
	}
	next := p.add(agenttest.Good(1)...)
	p.good(next, 0)
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// The first signal: the run is cancelled, the server is told why, the agent leaves.
func TestPollIsStopped(t *testing.T) {
	p := newPolling(t)
	id := p.add(agenttest.Step{"on_term", "event"}, agenttest.Step{"status", "ready"}, agenttest.Step{"sleep", 600})
	stop, _ := p.start()
	p.says(id, "ready")
	if err := stop(); err != nil {
		t.Errorf("Poll: %v", err)
	}
	h := p.server.Run(id)
	if h.Status != api.RunCancelled || !strings.Contains(h.Finish.Error, "was stopped while it worked on the run") {
		t.Errorf("%s: %+v", h.Status, h.Finish)
	}
	if left := p.has("jobs"); len(left) > 0 {
		t.Errorf("jobs/ has %v", left)
	}
	idle, _ := p.start()
	agenttest.Wait(t, "another question", func() (bool, string) { return len(p.server.Claims()) > 1, "" })
	if err := idle(); err != nil {
		t.Errorf("idle: %v", err)
	}
}

// The second signal: everything ends at once, and the next agent tells the server.
func TestPollLeavesAtOnce(t *testing.T) {
	p := newPolling(t)
	id := p.add(agenttest.Step{"on_term", "ignore"}, agenttest.Step{"status", "ready"}, agenttest.Step{"sleep", 600})
	_, leave := p.start()
	p.says(id, "ready")
	marker := p.marker(id)
	if err := leave(); !errors.Is(err, context.Canceled) {
		t.Errorf("Poll: %v", err)
	}
	if left := agenttest.Marked(marker); len(left) > 0 {
		t.Errorf("still there: %v", left)
	}
	if err := p.once(); err != nil {
		t.Fatal(err)
	}
	if h := p.server.Run(id); h.Status != api.RunError || h.Finish.ErrorCode != "killed" {
		t.Errorf("%s: %+v", h.Status, h.Finish)
	}
	if n := len(p.server.Claims()); n != 1 {
		t.Errorf("%d questions; the second agent should have gone on without one", n)
	}
}

// A signal while the server is away does not keep the agent for ever.
func TestPollIsStoppedWithoutAServer(t *testing.T) {
	p := newPolling(t)
	p.o.StopTimeout = 100 * time.Millisecond
	job := agenttest.Job(agenttest.Step{"on_term", "event"}, agenttest.Step{"status", "ready"}, agenttest.Step{"sleep", 600})
	job.GraceSeconds = 1
	p.server.Add(job, p.archive)
	stop, _ := p.start()
	p.says(job.RunID, "ready")
	marker := p.marker(job.RunID)
	var away atomic.Bool
	away.Store(true)
	p.server.Before = func(w http.ResponseWriter, _ *http.Request) bool {
		if away.Load() {
			http.Error(w, "away", http.StatusBadGateway)
		}
		return away.Load()
	}
	if err := stop(); !errors.Is(err, context.Canceled) {
		t.Errorf("Poll: %v", err)
	}
	if left := agenttest.Marked(marker); len(left) > 0 {
		t.Errorf("still there: %v", left)
	}
	away.Store(false)
	if err := p.once(); err != nil {
		t.Fatal(err)
	}
	if h := p.server.Run(job.RunID); h.Status != api.RunCancelled {
		t.Errorf("%s: %+v", h.Status, h.Finish)
	}
}

// job.json says what is held, for its owner alone and without the token.
func TestPollHoldsNoSecret(t *testing.T) {
	p := newPolling(t)
	id := p.add(agenttest.Step{"status", "ready"}, agenttest.Step{"sleep", 600})
	_, leave := p.start()
	p.says(id, "ready")
	path := filepath.Join(p.o.Workdir, "jobs", string(id), "job.json")
	var job api.Job
	b, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(b, &job) != nil || job.RunID != id || job.Lease == "" {
		t.Errorf("job.json: %s, %v", b, err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("job.json: %v, %v", st, err)
	}
	err = filepath.WalkDir(p.o.Workdir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), pollToken) {
			t.Errorf("the token is in %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if err := leave(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
