package e2e_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// agentLog is a run's agent.log, which the page's log of the source "agent" must equal.
func (s *server) agentLog(id string) []string {
	s.t.Helper()
	b, err := os.ReadFile(filepath.Join(s.dir, "annotation_output", "training", "runs", id, "agent.log"))
	if err != nil {
		s.t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	var shown struct{ Lines []struct{ Text string } }
	if status := s.api("GET", "/runs/"+id+"/log?source=agent&limit=2000", nil, &shown); status != http.StatusOK || len(shown.Lines) != len(lines) {
		s.t.Errorf("the log answered %d with %d lines of %d", status, len(shown.Lines), len(lines))
	}
	for i, l := range shown.Lines {
		if i < len(lines) && l.Text != lines[i] {
			s.t.Errorf("line %d is shown as %q, the file has %q", i+1, l.Text, lines[i])
		}
	}
	return lines
}

// saidInOrder wants each text in a line of its own, in that order.
func saidInOrder(t *testing.T, lines []string, texts ...string) {
	t.Helper()
	at := 0
	for _, text := range texts {
		for at < len(lines) && !strings.Contains(lines[at], text) {
			at++
		}
		if at == len(lines) {
			t.Errorf("%q is not there, or not in its place, in:\n%s", text, strings.Join(lines, "\n"))
			return
		}
		at++
	}
}

// DESIGN §3: what an agent does for a run, what it had to try again and why it ended the worker is in the run's agent.log, and
// the token is not.
func TestAgentLogOfARun(t *testing.T) {
	t.Parallel()
	dir := agentStudy(t, "grace_seconds: 2")
	moreItems(t, dir, 60, 64<<10)
	token := register(t, filepath.Join(dir, "config.yaml"))
	s := start(t, dir)
	workdir := t.TempDir()
	agentHere(t, cutting(t, s, 1, 1<<20).address, token, workdir)
	id := s.agentTextRun(0)
	s.finished(id, "success")
	lines := s.agentLog(id)
	saidInOrder(t, lines, "claimed by the agent", "working on the run host=", "fetching the bundle", "trying again what=bundle: the connection was cut after ",
		"starting the worker", "the worker is on its way pid=", "the worker has ended with a result exit_code=0", "handing over the predictions", "the server has the predictions")
	if !strings.Contains(lines[1], " dir="+filepath.Join(workdir, "jobs", id)) || len(lines) > 15 {
		t.Errorf("%d lines, and the job directory is to be in the second:\n%s", len(lines), strings.Join(lines, "\n"))
	}

	cancelled := s.agentTextRun(forLong)
	s.training(cancelled)
	s.api("POST", "/runs/"+cancelled+"/cancel", nil, nil)
	s.finished(cancelled, "cancelled")
	saidInOrder(t, s.agentLog(cancelled), "starting the worker", "ending the worker grace=2s: cancelled", "the work has ended, cancelled")
	for _, id := range []string{id, cancelled} {
		if log := strings.Join(s.agentLog(id), "\n"); strings.Contains(log, token) {
			t.Errorf("the token is in the agent's log:\n%s", log)
		}
	}
}

// R6: what the agent noted while the server was away comes with the rest, once.
func TestAgentLogOfAnAbsence(t *testing.T) {
	t.Parallel()
	dir := agentStudy(t)
	token := register(t, filepath.Join(dir, "config.yaml"))
	s := start(t, dir)
	port := s.port()
	a := agentHere(t, s.URL, token, t.TempDir())
	id := s.agentTextRun(forAWhile)
	s.training(id)
	s.stop(syscall.SIGKILL)
	a.says("events not sent")
	s = start(t, dir, "--port", port)
	s.finished(id, "success")
	lines := s.agentLog(id)
	saidInOrder(t, lines, "working on the run", "warning: events not sent: ", "the server takes events again", "the server has the predictions")
	if n := strings.Count(strings.Join(lines, "\n"), "events not sent"); n > 3 {
		t.Errorf("the failed sends are told %d times:\n%s", n, strings.Join(lines, "\n"))
	}
}

// The agent that a server brought over ssh tells as much.
func TestAgentLogOverSSH(t *testing.T) {
	t.Parallel()
	st := newSSHStudy(t)
	s := st.start()
	id := st.post(s, "native", false)
	s.finished(id, "success")
	saidInOrder(t, s.agentLog(id), "working on the run host=", "fetching the bundle", "starting the worker", "the worker is on its way pid=",
		"the worker has ended with a result exit_code=0", "handing over the predictions", "the server has the predictions")
}
