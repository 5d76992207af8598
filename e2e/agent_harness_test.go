package e2e_test

import (
	"bytes"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// agentPrograms are the two ways to start an agent; their flags are the same (K4).
func agentPrograms(t *testing.T) map[string][]string {
	t.Helper()
	alone := filepath.Join(root, "bin", "potato-agent")
	_, err := os.Stat(alone)
	need(t, err == nil, "bin/potato-agent; `make build` makes it")
	return map[string][]string{"potato training agent": {potato(t), "training", "agent"}, "potato-agent": {alone}}
}

// agentHere starts `potato training agent` on this machine, against the address.
func agentHere(t *testing.T, address, token, workdir string, args ...string) *agentProgram {
	t.Helper()
	return launch(t, token, exec.Command(potato(t), append([]string{"training", "agent", "--server", address,
		"--backend", workstation, "--workdir", workdir, "--python", python(t)}, args...)...))
}

// says waits until the agent has said the text.
func (a *agentProgram) says(text string) {
	a.t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !strings.Contains(a.said(), text); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			a.t.Fatalf("the agent never said %q; it said:\n%s", text, a.said())
		}
	}
}

// leaves waits until the agent has left with the exit code.
func (a *agentProgram) leaves(code int) {
	a.t.Helper()
	a.left(60 * time.Second)
	if got := a.cmd.ProcessState.ExitCode(); got != code {
		a.t.Errorf("the agent left with %d, want %d; it said:\n%s", got, code, a.said())
	}
}

// kill ends the agent as the kernel would, and nothing else.
func (a *agentProgram) kill() {
	a.t.Helper()
	if err := a.cmd.Process.Kill(); err != nil {
		a.t.Fatal(err)
	}
	<-a.done
}

// agentTextRun starts a run of sentiment on the agent backend; one of epochs takes its time.
func (s *server) agentTextRun(epochs int) string {
	s.t.Helper()
	request := map[string]any{"trainer": "sklearn-text", "schemas": []string{"sentiment"}, "backend": workstation}
	if epochs > 0 {
		request["params"] = map[string]any{"classifier": "sgd", "epochs": epochs}
	}
	return s.post(request)
}

const (
	forLong   = 10000 // epochs that no test waits for
	forAWhile = 400
)

// training waits until a run's worker fits.
func (s *server) training(id string) {
	s.t.Helper()
	s.wait(id, "training", func(r run) bool { return strings.Contains(r.Step, "epoch") || strings.Contains(r.Step, "fitting") })
}

// jobs are the processes of runs in an agent's workdir: workers, by their command line, and what has their marker in its
// environment, their shims included.
func jobs(t *testing.T, workdir string) (pids []int) {
	t.Helper()
	markers := map[string]bool{}
	all := map[int]string{}
	paths, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		pid, err := strconv.Atoi(filepath.Base(path))
		if err != nil {
			continue
		}
		environ, err := os.ReadFile(filepath.Join(path, "environ"))
		if err != nil {
			continue // it has ended
		}
		for _, v := range bytes.Split(environ, []byte{0}) {
			if marker, ok := strings.CutPrefix(string(v), "POTATO_MARKER="); ok {
				all[pid] = marker
			}
		}
		if cmdline, _ := os.ReadFile(filepath.Join(path, "cmdline")); all[pid] != "" && bytes.Contains(cmdline, []byte(workdir+"/")) {
			markers[all[pid]] = true
		}
	}
	shims, err := filepath.Glob(filepath.Join(workdir, "jobs", "*", "shim.*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range shims {
		markers[strings.Split(filepath.Base(path), ".")[1]] = true
	}
	for pid, marker := range all {
		if markers[marker] {
			pids = append(pids, pid)
		}
	}
	return pids
}

// worker waits for the run's worker in the workdir and returns its process.
func worker(t *testing.T, workdir string) int {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		for _, pid := range jobs(t, workdir) {
			if cmdline, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline")); bytes.Contains(cmdline, []byte("worker.py")) {
				return pid
			}
		}
	}
	t.Fatalf("no worker runs in %s; there are %v", workdir, jobs(t, workdir))
	return 0
}

// noJobLeft waits until no process of a run in the workdir is left, nor any of those that were seen before, and names those
// that are.
func noJobLeft(t *testing.T, workdir string, before ...int) {
	t.Helper()
	look := func() []int {
		left := jobs(t, workdir)
		for _, pid := range before {
			if syscall.Kill(pid, 0) == nil && !slices.Contains(left, pid) {
				left = append(left, pid)
			}
		}
		return left
	}
	left := look()
	for deadline := time.Now().Add(10 * time.Second); len(left) > 0 && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		left = look()
	}
	for _, pid := range left {
		cmdline, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		t.Errorf("process %d is left: %q", pid, cmdline)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// edit changes one place of a study's config.
func edit(t *testing.T, dir, from, to string) {
	t.Helper()
	path := filepath.Join(dir, "config.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Count(text, []byte(from)) != 1 {
		t.Fatalf("the config does not say %q once:\n%s", from, text)
	}
	write(t, dir, "config.yaml", strings.Replace(string(text), from, to, 1))
}

// port is the one that the server listens on.
func (s *server) port() string {
	s.t.Helper()
	u, err := url.Parse(s.URL)
	if err != nil {
		s.t.Fatal(err)
	}
	return u.Port()
}
