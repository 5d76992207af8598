package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"potato/agent"
	"potato/agent/agenttest"
	"potato/api"
)

const pollToken = "poll-token-0123456789"

// polling is a server over HTTP and a workdir for agents.
type polling struct {
	*testing.T
	server  *agenttest.Server
	o       agent.PollOptions
	archive []byte
}

func newPolling(t *testing.T) *polling {
	t.Helper()
	p := &polling{T: t, server: agenttest.NewServer(pollToken), archive: agenttest.Archive(t, "manifest.json", "{}")}
	p.server.HeartbeatWait, p.server.Unheard = 200*time.Millisecond, 500*time.Millisecond
	listening := httptest.NewServer(p.server)
	t.Cleanup(listening.Close)
	p.o = agent.PollOptions{
		Client: p.client(listening.URL), Workdir: filepath.Join(t.TempDir(), "work"), Version: "test",
		Job: agent.Options{
			Backend: "lab", Python: agenttest.Python(t), WorkerPath: agenttest.Worker(t), Shim: agenttest.Shim(t), PythonKey: "--python",
			Poll: 10 * time.Millisecond, SendEvery: time.Millisecond, RetryAfter: 2 * time.Millisecond, LeaseTimeout: 20 * time.Second,
		},
		ClaimWait: time.Second, RetryAfter: 5 * time.Millisecond, LongestWait: 20 * time.Millisecond,
	}
	return p
}

// client is one with connections of its own, which are closed with the test.
func (p *polling) client(url string) *api.Client {
	p.Helper()
	hc, err := api.NewHTTPClient("")
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(hc.CloseIdleConnections)
	return &api.Client{BaseURL: url, Token: pollToken, HTTP: hc, RetryAfter: time.Millisecond, CallTimeout: 5 * time.Second}
}

func (p *polling) add(steps ...agenttest.Step) api.RunID {
	job := agenttest.Job(steps...)
	p.server.Add(job, p.archive)
	return job.RunID
}

// once lets an agent do one job, and wants it to leave by itself.
func (p *polling) once() error {
	p.Helper()
	p.o.Once = true
	ctx, cancel := context.WithTimeout(p.Context(), 60*time.Second)
	defer cancel()
	return agent.Poll(ctx, p.o)
}

// start starts an agent; stop ends it cleanly and returns what it said, leave at once.
func (p *polling) start() (stop, leave func() error) {
	p.Helper()
	stopping := make(chan struct{})
	ctx, cancel := context.WithCancel(p.Context())
	o, ended := p.o, make(chan error, 1)
	o.Stop = stopping
	go func() {
		ended <- agent.Poll(ctx, o)
		close(ended)
	}()
	p.Cleanup(func() { // of a test that failed in between
		cancel()
		<-ended
	})
	wait := func() error {
		select {
		case err := <-ended:
			return err
		case <-time.After(60 * time.Second):
			p.Fatal("the agent does not leave")
			return nil
		}
	}
	return func() error {
			close(stopping)
			return wait()
		}, func() error {
			cancel()
			return wait()
		}
}

func (p *polling) until(id api.RunID, status api.RunStatus) agenttest.Held {
	p.Helper()
	agenttest.Wait(p, "run to be "+string(status), func() (bool, string) {
		h := p.server.Run(id)
		return h.Status == status, string(h.Status) + ": " + join(texts(h.Events))
	})
	return p.server.Run(id)
}

// says waits for a step of the worker's.
func (p *polling) says(id api.RunID, text string) {
	p.Helper()
	agenttest.Wait(p, "step "+text, func() (bool, string) {
		all := texts(p.server.Run(id).Events)
		for _, s := range all {
			if s == "status "+text {
				return true, ""
			}
		}
		return false, join(all)
	})
}

// idle makes the agent's waits for work a channel.
func (p *polling) idle() <-chan string {
	waits := make(chan string, 100)
	p.o.Report = func(run api.RunID, text string) {
		if run == "" {
			select {
			case waits <- text:
			default:
			}
		}
	}
	return waits
}

// hears waits for a report.
func (p *polling) hears(reports <-chan string, want string) {
	p.Helper()
	limit := time.After(20 * time.Second)
	var heard []string
	for {
		select {
		case got := <-reports:
			if heard = append(heard, got); got == want {
				return
			}
		case <-limit:
			p.Fatalf("waited for report %q; heard %q", want, heard)
		}
	}
}

// good wants a run that succeeded, with every number of its metrics once and in order.
func (p *polling) good(id api.RunID, metrics int) {
	p.Helper()
	h := p.until(id, api.RunSuccess)
	next := 0
	for i, e := range h.Events {
		if e.Seq != int64(i+1) {
			p.Fatalf("event %d has number %d", i+1, e.Seq)
		}
		if e.Event == api.EventMetric {
			if *e.Value != float64(next) {
				p.Fatalf("metric %v came where %d was due", *e.Value, next)
			}
			next++
		}
	}
	if next != metrics {
		p.Errorf("%d metrics came, want %d", next, metrics)
	}
	if f := p.server.Faults(); len(f) > 0 {
		p.Errorf("the agent broke the protocol: %v", f)
	}
}

// has lists what lies in a folder of the workdir.
func (p *polling) has(folder string) (names []string) {
	p.Helper()
	entries, err := os.ReadDir(filepath.Join(p.o.Workdir, folder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

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

func (p *polling) marker(id api.RunID) string {
	p.Helper()
	var h api.Handle
	readJSON(p.T, filepath.Join(p.o.Workdir, "jobs", string(id), "handle.json"), &h)
	if h.Marker == "" {
		p.Fatal("the job has no marker")
	}
	return h.Marker
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
