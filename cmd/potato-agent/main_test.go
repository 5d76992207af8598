package main_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"potato/agent/agenttest"
	"potato/api"
)

// program is the agent as it is shipped, built once for all tests.
var program string

func TestMain(m *testing.M) {
	code, err := built(m.Run)
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func built(run func() int) (int, error) {
	dir, err := os.MkdirTemp("", "potato-agent-*")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program = filepath.Join(dir, "potato-agent")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return 1, fmt.Errorf("build: %w\n%s", err, out)
	}
	return run(), nil
}

// machine is a training machine: its home, its interpreter, and a server that it reaches.
type machine struct {
	*testing.T
	token   string
	server  *agenttest.Server
	url     string
	home    string
	python  string
	archive []byte
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{T: t, token: "token-" + rand.Text(), home: t.TempDir(), archive: agenttest.Archive(t, "manifest.json", "{}")}
	m.server = agenttest.NewServer(m.token)
	m.server.HeartbeatWait, m.server.Unheard = 200*time.Millisecond, 500*time.Millisecond
	s := httptest.NewServer(m.server)
	t.Cleanup(s.Close)
	m.url = s.URL
	// An interpreter whose every worker is the tests' own: the agent brings its own worker and knows no other.
	m.python = filepath.Join(m.home, "python")
	script := fmt.Sprintf("#!/bin/sh\ncase \"$2\" in --spec) shift; exec %q %q \"$@\";; *) exec %q \"$@\";; esac\n",
		agenttest.Python(t), agenttest.Worker(t), agenttest.Python(t))
	if err := os.WriteFile(m.python, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *machine) add(steps ...agenttest.Step) api.RunID {
	job := agenttest.Job(steps...)
	m.server.Add(job, m.archive)
	return job.RunID
}

func (m *machine) workdir() string { return filepath.Join(m.home, ".cache", "potato-training") }

// env is that of a login, with more.
func (m *machine) env(more ...string) []string {
	return append([]string{"HOME=" + m.home, "PATH=" + os.Getenv("PATH")}, more...)
}

// process is an agent that was started.
type process struct {
	m    *machine
	cmd  *exec.Cmd
	out  *lines
	done chan struct{}
}

// lines is what a process has written so far.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// start starts an agent with the token in its environment.
func (m *machine) start(args ...string) *process {
	m.Helper()
	return m.startWith(m.env("POTATO_TRAINING_TOKEN="+m.token), append([]string{"--server", m.url, "--backend", "lab", "--python", m.python}, args...)...)
}

func (m *machine) startWith(env []string, args ...string) *process {
	m.Helper()
	p := &process{m: m, cmd: exec.Command(program, args...), out: &lines{}, done: make(chan struct{})}
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = env, p.out, p.out
	if err := p.cmd.Start(); err != nil {
		m.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // its state says how it ended
		close(p.done)
	}()
	m.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have left
		<-p.done
		for _, h := range m.handles() {
			for _, line := range agenttest.Marked(h) {
				pid := 0
				if _, err := fmt.Sscan(line, &pid); err == nil {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
		}
		if strings.Contains(p.out.String(), m.token) {
			m.Errorf("the token is in what the agent said:\n%s", p.out)
		}
	})
	return p
}

func (p *process) signal(s syscall.Signal) {
	p.m.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.m.Fatal(err)
	}
}

// leaves waits until the agent has left, with the exit code and having said the text.
func (p *process) leaves(code int, said string) {
	p.m.Helper()
	select {
	case <-p.done:
	case <-time.After(30 * time.Second):
		p.m.Fatalf("the agent does not leave; it said:\n%s", p.out)
	}
	if got := p.cmd.ProcessState.ExitCode(); got != code || !strings.Contains(p.out.String(), said) {
		p.m.Errorf("exit code %d, want %d and %q; it said:\n%s", got, code, said, p.out)
	}
}

func (p *process) says(text string) {
	p.m.Helper()
	agenttest.Wait(p.m, "the agent to say "+text, func() (bool, string) { return strings.Contains(p.out.String(), text), p.out.String() })
}

func (m *machine) until(id api.RunID, status api.RunStatus) agenttest.Held {
	m.Helper()
	agenttest.Wait(m, "run to be "+string(status), func() (bool, string) {
		h := m.server.Run(id)
		return h.Status == status, fmt.Sprintf("%s, %+v", h.Status, h.Finish)
	})
	return m.server.Run(id)
}

// step waits until the worker has said that it is so far.
func (m *machine) step(id api.RunID, step string) {
	m.Helper()
	agenttest.Wait(m, "step "+step, func() (bool, string) {
		h := m.server.Run(id)
		for _, e := range h.Events {
			if e.StepText() == step {
				return true, ""
			}
		}
		return false, fmt.Sprintf("%s, %d events, %+v", h.Status, len(h.Events), h.Finish)
	})
}

// handles are the markers of the jobs in the workdir.
func (m *machine) handles() (markers []string) {
	paths, _ := filepath.Glob(filepath.Join(m.workdir(), "jobs", "*", "shim.*.json")) // a good pattern
	for _, path := range paths {
		markers = append(markers, strings.Split(filepath.Base(path), ".")[1])
	}
	return markers
}

func (m *machine) held() []string {
	found, _ := filepath.Glob(filepath.Join(m.workdir(), "jobs", "*")) // a good pattern
	return found
}

// answers runs the program to its end.
func (m *machine) answers(env []string, args ...string) (code int, out string) {
	m.Helper()
	ctx, cancel := context.WithTimeout(m.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = env
	b, _ := cmd.CombinedOutput() // the exit code says how it ended
	if strings.Contains(string(b), m.token) {
		m.Errorf("the token is in what the agent said:\n%s", b)
	}
	return cmd.ProcessState.ExitCode(), string(b)
}

func isClaim(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/claim") }
