package e2e_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// unplugged is how long a machine is cut off: long enough for requests under way to be lost.
const unplugged = 5 * time.Second

// G5, T38: the agent's machine is cut off in mid-run and joined again: the run goes on, and no event is lost or comes twice.
func TestAgentsMachineIsCutOff(t *testing.T) {
	t.Parallel()
	m := newMachine(t, 4)
	dir := agentStudy(t)
	token := register(t, filepath.Join(dir, "config.yaml"))
	s := start(t, dir, "--host", "0.0.0.0")
	workdir := t.TempDir()
	a := startAgent(t, m, s, token, workdir, "--once")
	const epochs = 1500
	id := s.agentTextRun(epochs)
	s.training(id)
	all := jobs(t, workdir)
	m.unplug(t)
	time.Sleep(unplugged)
	if r := s.run(id); r.Status != "running" {
		t.Errorf("while its agent is away the run is %s", describe(r))
	}
	m.plug(t)
	s.finished(id, "success")
	a.leaves(0)
	s.eventsOnce(id, epochs)
	noJobLeft(t, workdir, all...)
}

// H9, T36: a machine that stays away for longer than heartbeat_timeout_s fails its run, in these words, and the queue goes on.
// When it is back, its agent stops the worker that nobody waits for, and takes the next run.
func TestAgentsMachineStaysAway(t *testing.T) {
	t.Parallel()
	m := newMachine(t, 5)
	dir := agentStudy(t, "grace_seconds: 2")
	edit(t, dir, "queue_timeout_s: 3600", "heartbeat_timeout_s: 3")
	token := register(t, filepath.Join(dir, "config.yaml"))
	s := start(t, dir, "--host", "0.0.0.0")
	workdir := t.TempDir()
	a := startAgent(t, m, s, token, workdir)
	id := s.agentTextRun(forLong)
	s.training(id)
	all := jobs(t, workdir)
	m.unplug(t)
	away := time.Now()
	r := s.finished(id, "error")
	if took := time.Since(away); took > 8*time.Second {
		t.Errorf("it took %v", took)
	}
	if r.ErrorCode != "heartbeat_lost" || r.Error != "No word from the agent on lab-workstation for 3 seconds" || !strings.Contains(r.Hint, "agent.log") {
		t.Errorf("%s, hint %q", describe(r), r.Hint)
	}
	s.finished(s.post(map[string]any{"trainer": "sklearn-text", "schemas": []string{"sentiment"}}), "success") // local
	if left := jobs(t, workdir); len(left) != len(all) {
		t.Errorf("the agent cannot know yet, but of %v there are %v", all, left)
	}
	m.plug(t)
	a.says("the run is not this agent's any more")
	noJobLeft(t, workdir, all...)
	s.finished(s.agentTextRun(0), "success")
}

// G5: an agent that cannot reach the server for too long cancels the run itself, and says so when it can.
func TestAgentGivesUpOnTheServer(t *testing.T) {
	t.Parallel()
	m := newMachine(t, 6)
	dir := agentStudy(t, "grace_seconds: 2")
	token := register(t, filepath.Join(dir, "config.yaml"))
	s := start(t, dir, "--host", "0.0.0.0")
	workdir := t.TempDir()
	a := startAgent(t, m, s, token, workdir, "--server-loss", "3s")
	id := s.agentTextRun(forLong)
	s.training(id)
	all := jobs(t, workdir)
	m.unplug(t)
	noJobLeft(t, workdir, all...)
	a.says("the server did not answer for too long; the run was cancelled here")
	m.plug(t)
	r := s.finished(id, "error")
	if r.ErrorCode != "server_unreachable" || !strings.Contains(r.Error, "did not answer for 3 s") || r.Hint == "" {
		t.Errorf("%s, hint %q", describe(r), r.Hint)
	}
	s.finished(s.agentTextRun(0), "success")
}
