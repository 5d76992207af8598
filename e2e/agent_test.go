package e2e_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const workstation = "lab-workstation"

// agentStudy is the tutorial's study with its agent backend, and lines of model_training of the test's own.
func agentStudy(t *testing.T, training ...string) string {
	return study(t, append(training, "backends:", "  "+workstation+":", "    type: agent", "    queue_timeout_s: 3600")...)
}

// ask runs a command of potato on the study and returns its exit code and all that it said.
func ask(t *testing.T, args ...string) (int, string) {
	t.Helper()
	cmd := exec.Command(potato(t), args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

var tokenPattern = regexp.MustCompile(`export POTATO_TRAINING_TOKEN=(\S+)`)

// register issues a token of the study's agent backend.
func register(t *testing.T, config string) string {
	t.Helper()
	code, said := ask(t, "training", "register", workstation, config)
	found := tokenPattern.FindStringSubmatch(said)
	if code != 0 || found == nil {
		t.Fatalf("register left with %d and said:\n%s", code, said)
	}
	return found[1]
}

// agentProgram is a running `potato training agent`.
type agentProgram struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan struct{}
	mu   sync.Mutex
	log  bytes.Buffer
}

// startAgent starts an agent on the machine until the test ends.
func startAgent(t *testing.T, m machine, s *server, token, workdir string, args ...string) *agentProgram {
	t.Helper()
	port := s.port()
	return launch(t, token, m.program(potato(t), append([]string{"training", "agent", "--server", "http://" + m.Here + ":" + port,
		"--backend", workstation, "--workdir", workdir, "--python", python(t)}, args...)...))
}

// launch starts an agent's command with the token in its environment, until the test ends. No token may be in what it says.
func launch(t *testing.T, token string, cmd *exec.Cmd) *agentProgram {
	t.Helper()
	a := &agentProgram{t: t, cmd: cmd, done: make(chan struct{})}
	if a.cmd.Env == nil {
		a.cmd.Env = os.Environ()
	}
	a.cmd.Env = append(a.cmd.Env, "POTATO_TRAINING_TOKEN="+token)
	a.cmd.Stdout, a.cmd.Stderr = a, a
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(a.done)
		_ = a.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = a.cmd.Process.Signal(syscall.SIGTERM)
		a.left(30 * time.Second)
		if strings.Contains(a.said(), token) {
			t.Errorf("the token is in what the agent said")
		}
		if t.Failed() {
			t.Logf("the agent's log:\n%s", a.said())
		}
	})
	return a
}

func (a *agentProgram) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.log.Write(p)
}

func (a *agentProgram) said() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.log.String()
}

// left waits until the agent has left.
func (a *agentProgram) left(limit time.Duration) {
	a.t.Helper()
	select {
	case <-a.done:
	case <-time.After(limit):
		_ = a.cmd.Process.Kill()
		<-a.done
		a.t.Errorf("the agent did not leave within %v; it said:\n%s", limit, a.said())
	}
}

// G1-G7, K2-K4: the tutorial's session, server and agent on machines of their own that share one cable.
func TestTutorialsAgentSession(t *testing.T) {
	m := newMachine(t, 1)
	dir := agentStudy(t)
	config := filepath.Join(dir, "config.yaml")

	code, said := ask(t, "training", "check", workstation, config)
	if code != 1 || !strings.Contains(said, "no token issued yet") || !strings.Contains(said, "potato training register "+workstation) {
		t.Errorf("the check before registration left with %d and said:\n%s", code, said)
	}
	token := register(t, config)

	s := start(t, dir, "--host", "0.0.0.0")
	id := s.post(map[string]any{"trainer": "sklearn-text", "schemas": []string{"sentiment"}, "backend": workstation})
	if r := s.run(id); r.Status != "queued" || r.Queue == nil || !strings.Contains(r.Queue.WaitingFor, "agent") {
		t.Errorf("without an agent the run is %s and waits for %+v", describe(r), r.Queue)
	}
	workdir := t.TempDir()
	a := startAgent(t, m, s, token, workdir, "--once")
	r := s.finished(id, "success")
	a.left(20 * time.Second)
	if code := a.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("--once left with %d: %s", code, a.said())
	}
	host, model, ok := strings.Cut(r.ArtifactURI, ":")
	if !ok || host != r.Host || !strings.HasPrefix(model, workdir) {
		t.Errorf("artifact_uri is %q, want host:directory below %s", r.ArtifactURI, workdir)
	}
	if _, err := os.Stat(filepath.Join(model, "model.pkl")); err != nil {
		t.Errorf("the model stays on the training machine: %v", err)
	}
	if r.Metrics["test_accuracy"] == nil || r.Writeback == nil || r.Writeback.NWritten == 0 {
		t.Errorf("scores and write-back are as of a local run, got %v and %+v", r.Metrics, r.Writeback)
	}
	code, said = ask(t, "training", "check", workstation, config)
	if code != 0 || !strings.Contains(said, "last_seen") {
		t.Errorf("the check afterwards left with %d and said:\n%s", code, said)
	}
}

// G6, T39: a cancel reaches the agent, nothing is left on its machine, and the token stands in no process there.
func TestCancelReachesTheAgent(t *testing.T) {
	m := newMachine(t, 2)
	dir := agentStudy(t, "grace_seconds: 2")
	token := register(t, filepath.Join(dir, "config.yaml"))
	s := start(t, dir, "--host", "0.0.0.0")
	workdir := t.TempDir()
	startAgent(t, m, s, token, workdir)
	id := s.post(map[string]any{
		"trainer": "sklearn-text", "schemas": []string{"sentiment"}, "backend": workstation,
		"params": map[string]any{"classifier": "sgd", "epochs": 10000},
	})
	s.wait(id, "training", func(r run) bool { return strings.Contains(r.Step, "epoch") || strings.Contains(r.Step, "fitting") })
	if where := processesThatSay(t, token); len(where) > 0 {
		t.Errorf("the token stands in %v", where)
	}
	asked := time.Now()
	if status := s.api("POST", "/runs/"+id+"/cancel", nil, nil); status != 200 {
		t.Fatalf("cancel answered %d", status)
	}
	s.finished(id, "cancelled")
	if took := time.Since(asked); took > 2*time.Second+5*time.Second {
		t.Errorf("the cancel took %v", took)
	}
	noJobLeft(t, workdir)
}

// processesThatSay names the processes with the text in their arguments or their environment, this test's own and the
// `ip` that was started with it aside.
func processesThatSay(t *testing.T, text string) []string {
	t.Helper()
	var found []string
	for _, what := range []string{"cmdline", "environ"} {
		paths, err := filepath.Glob("/proc/[0-9]*/" + what)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, []byte(text)) {
				found = append(found, path)
			}
		}
	}
	return found
}

// R6, T38: the server is killed while an agent trains for it and comes back; the run goes on, no event lost or doubled.
func TestServerIsKilledWhileAnAgentTrains(t *testing.T) {
	m := newMachine(t, 3)
	dir := agentStudy(t)
	token := register(t, filepath.Join(dir, "config.yaml"))
	s := start(t, dir, "--host", "0.0.0.0")
	port := s.port()
	startAgent(t, m, s, token, t.TempDir())
	id := s.post(map[string]any{
		"trainer": "sklearn-text", "schemas": []string{"sentiment"}, "backend": workstation,
		"params": map[string]any{"classifier": "sgd", "epochs": 400},
	})
	s.wait(id, "running", func(r run) bool { return r.Status == "running" })
	s.stop(syscall.SIGKILL)
	s = start(t, dir, "--host", "0.0.0.0", "--port", port)
	r := s.finished(id, "success")
	var events struct {
		Events []struct {
			Seq   int64
			Event string
		}
	}
	s.api("GET", "/runs/"+id+"/events?limit=5000", nil, &events)
	var last int64
	results := 0
	for _, e := range events.Events {
		if e.Seq <= last {
			t.Fatalf("event %d comes after %d", e.Seq, last)
		}
		last = e.Seq
		if e.Event == "result" {
			results++
		}
	}
	if results != 1 || r.Metrics["test_accuracy"] == nil {
		t.Errorf("%d results, metrics %v", results, r.Metrics)
	}
}
