package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"potato/runners/hosts/hoststest"
)

// heartbeat is the study's with another heartbeat time-out on every backend.
func (st sshStudy) heartbeat(seconds int) {
	st.t.Helper()
	config := read(st.t, filepath.Join(st.dir, "config.yaml"))
	write(st.t, st.dir, "config.yaml", strings.ReplaceAll(config, "heartbeat_timeout_s: 20", fmt.Sprintf("heartbeat_timeout_s: %d", seconds)))
}

func signalTo(t *testing.T, sig syscall.Signal, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(pid, sig); err != nil {
			t.Fatalf("signal %v to %d: %v", sig, pid, err)
		}
	}
}

// H9: an agent that falls silent while its host goes on fails the run in these words, and nothing of it is left there.
func TestSSHSilentAgent(t *testing.T) {
	t.Parallel()
	st := newSSHStudy(t)
	st.heartbeat(3)
	s := st.start()
	id := st.post(s, "native", true)
	s.wait(id, "fitting", func(r run) bool { return r.Step == "fitting" })
	signalTo(t, syscall.SIGSTOP, st.agent(id))
	r := s.wait(id, "over", run.final)
	if r.Status != "error" || r.ErrorCode != "heartbeat_lost" || r.Error != "No word from the agent on native for 3 seconds" || r.Hint == "" {
		t.Errorf("got %s: %s: %s (%s)", r.Status, r.ErrorCode, r.Error, r.Hint)
	}
	if log := st.text(id, "agent.log"); !strings.Contains(log, "starting the worker") {
		t.Errorf("agent.log holds no last words: %s", log)
	}
	st.nothingLeft(id)
}

// T26: a session that stops answering in mid-run, its connection whole, is given up for another one, and the run goes on.
func TestSSHSessionStalls(t *testing.T) {
	t.Parallel()
	st := newSSHStudy(t)
	st.heartbeat(120)
	s := st.start()
	id := st.post(s, "native", true)
	s.wait(id, "fitting", func(r run) bool { return r.Step == "fitting" })
	agent := st.agent(id)
	session := st.session(agent)
	signalTo(t, syscall.SIGSTOP, session)
	t.Cleanup(func() { _ = syscall.Kill(session, syscall.SIGKILL) })
	last := 0
	for end := time.Now().Add(90 * time.Second); last == 0 || last == agent; time.Sleep(50 * time.Millisecond) {
		if last = st.agent(id); time.Now().After(end) {
			t.Fatalf("no other agent took the run up: %s", st.text(id, "events.jsonl"))
		}
	}
	st.open()
	s.finished(id, "success")
	st.whole(id)
	if log := st.text(id, "events.jsonl"); !strings.Contains(log, "going there again") {
		t.Error("the log does not say that the session was given up")
	}
	st.nothingLeft(id)
}

// T27: the file system of remote_dir fills up in mid-run.
func TestSSHDiskFills(t *testing.T) {
	t.Parallel()
	st := newSSHStudy(t)
	home, err := hoststest.Home(hoststest.Bash)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(home, strings.TrimPrefix(remoteDir(t), "~/"))
	if out, err := exec.Command("install", "-d", "-o", hoststest.Bash, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=250m,mode=0777", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", dir).Run() })
	s := st.start()
	id := st.post(s, "native", true)
	s.wait(id, "fitting", func(r run) bool { return r.Step == "fitting" })
	fill(t, dir)
	st.open()
	r := s.wait(id, "over", run.final)
	if r.Status != "error" || r.ErrorCode != "disk_full" || !strings.Contains(r.Error, dir) || r.Hint == "" {
		t.Errorf("got %s: %s: %s (%s)", r.Status, r.ErrorCode, r.Error, r.Hint)
	}
	st.nothingLeft(id)
}

// fill writes until no space is left.
func fill(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "other-people's-data"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 1<<20)
	for size := len(block); size > 0; {
		if _, err := f.Write(block[:size]); err != nil {
			size /= 2
		}
	}
}
