package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"potato/runners/hosts/hoststest"
)

// sshStudy is a study with a trainer that waits for a file, and backends on the rig's hosts. Accounts of this machine that
// are not root can see the file.
type sshStudy struct {
	t        *testing.T
	dir      string
	trainers string
	gate     string
	rig      *hoststest.Rig
}

func newSSHStudy(t *testing.T, lines ...string) sshStudy {
	t.Helper()
	rig := hoststest.Get(t)
	_, err := os.Stat("/usr/bin/python3")
	need(t, err == nil, "/usr/bin/python3, which every account can run")
	trainers := t.TempDir()
	write(t, trainers, "waiting.py", waitingTrainer)
	gates, err := os.MkdirTemp("/tmp", "potato-gate-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(gates) })
	if err := os.Chmod(gates, 0o755); err != nil {
		t.Fatal(err)
	}
	config := append([]string{"trainers_dir: " + trainers, "grace_seconds: 2"}, lines...)
	config = append(config, "backends:")
	for name, host := range map[string]string{"native": "target", "openssh": "target-fish", "forbidden": "forbidden", "jumped": "jumped"} {
		transport := name
		if name != "openssh" {
			transport = "native"
		}
		config = append(config, fmt.Sprintf("  %s: {type: ssh, host: %s, transport: %s, python: /usr/bin/python3, gpus: none, heartbeat_timeout_s: 20, "+
			"remote_dir: %s}", name, host, transport, remoteDir(t)))
	}
	t.Cleanup(func() {
		left, _ := filepath.Glob("/home/potato*/" + strings.TrimPrefix(remoteDir(t), "~/"))
		for _, dir := range left {
			_ = os.RemoveAll(dir)
		}
	})
	return sshStudy{t: t, dir: study(t, config...), trainers: trainers, gate: filepath.Join(gates, "gate"), rig: rig}
}

// remoteDir is a folder of the test's own on the host, which is this machine.
func remoteDir(t *testing.T) string {
	dir := "~/potato-" + strings.ReplaceAll(strings.ToLower(t.Name()), "/", "-")
	if !strings.Contains(t.Name(), "Test") {
		t.Fatal("it needs a name of its own")
	}
	return dir
}

const waitingTrainer = `
import os, time
from potato_trainers import done, log, metric, status

TRAINER = {
    "name": "waiting", "description": "Waits for a file.", "kinds": ["nominal", "ordinal", "multilabel"],
    "params": {"type": "object", "additionalProperties": False, "properties": {"gate": {"type": "string", "default": ""}}},
}


def train(job):
    schema = job.schemas[0]
    label = next(iter(job.bundle.rows("train"))).targets[schema.name]
    yield status("fitting")
    n = 0
    while job.params["gate"] and not os.path.exists(job.params["gate"]):
        time.sleep(0.05)
        yield metric("train", "n", n, step=n)
        n += 1
    yield log("threads %s, secrets %s" % (os.environ.get("OMP_NUM_THREADS"), [k for k in os.environ if "TOKEN" in k]))
    with open(job.path("model", "weights.bin"), "wb") as f:
        f.write(b"0123456789" * 100000)
    with job.predictions() as out:
        for split in job.bundle.predicted():
            for row in job.bundle.rows(split.name):
                out.write(row.instance_id, schema.name, {"label": label, "confidence": 0.75, "scores": {label: 0.75}})
    yield done()
`

func (st sshStudy) start(args ...string) *server {
	st.t.Helper()
	return start(st.t, st.dir, append([]string{"--ssh-config", st.rig.Config}, args...)...)
}

func (st sshStudy) post(s *server, backend string, gated bool) string {
	gate := ""
	if gated {
		gate = st.gate
	}
	return s.post(map[string]any{"trainer": "waiting", "schemas": []string{"sentiment"}, "backend": backend, "params": map[string]any{"gate": gate}})
}

func (st sshStudy) open() { write(st.t, filepath.Dir(st.gate), "gate", "") }

// text is one of a run's files on the server.
func (st sshStudy) text(id, name string) string {
	b, _ := os.ReadFile(filepath.Join(st.dir, "annotation_output", "training", "runs", id, name))
	return string(b)
}

// nothingLeft waits until no process, socket or job directory of the run is left on the host.
func (st sshStudy) nothingLeft(id string) {
	st.t.Helper()
	var left string
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		processes, _ := exec.Command("pgrep", "-f", id).Output() // the job directory is in their arguments, or they are in it
		jobs, _ := filepath.Glob("/home/potato*/potato-*/jobs/" + id)
		if left = strings.Join(jobs, " ") + " " + string(processes); strings.TrimSpace(left) == "" {
			return
		}
	}
	st.t.Errorf("left on the host: %s", left)
}

// whole checks that the run's metrics came without gap or double.
func (st sshStudy) whole(id string) {
	st.t.Helper()
	next := 0.0
	for line := range strings.Lines(st.text(id, "events.jsonl")) {
		var e struct {
			Event string  `json:"event"`
			Name  string  `json:"name"`
			Value float64 `json:"value"`
		}
		if json.Unmarshal([]byte(line), &e) != nil || e.Event != "metric" || e.Name != "n" {
			continue
		}
		if e.Value != next {
			st.t.Fatalf("metric %v came where %v was due", e.Value, next)
		}
		next++
	}
	if next == 0 {
		st.t.Error("no metrics came")
	}
}

// H2, H4, H6, H7: a run on each kind of host, the second one with nothing to copy; what it leaves is here and nothing there.
func TestSSHRun(t *testing.T) {
	t.Parallel()
	st := newSSHStudy(t)
	s := st.start()
	for _, backend := range []string{"native", "native", "openssh", "forbidden", "jumped"} {
		id := st.post(s, backend, false)
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("the events: %s", st.text(id, "events.jsonl"))
			}
		})
		r := s.finished(id, "success")
		weights := st.text(r.RunID, "artifacts/model/weights.bin")
		if len(weights) != 1_000_000 || len(r.Warnings) > 0 || !strings.HasPrefix(r.ArtifactURI, st.dir) {
			t.Errorf("%s: %d bytes of model, warnings %q, artifacts at %s", backend, len(weights), r.Warnings, r.ArtifactURI)
		}
		log := st.text(r.RunID, "events.jsonl") + st.text(r.RunID, "agent.log")
		if !strings.Contains(log, "Python 3.") || !strings.Contains(log, "secrets []") || strings.Contains(log, "potato_") && strings.Contains(log, `"token"`) {
			t.Errorf("%s: the log is %s", backend, log)
		}
		if backend == "forbidden" && !strings.Contains(log, "talks over its own standard input and output") {
			t.Errorf("the log does not say how the agent talks: %s", log)
		}
		st.nothingLeft(r.RunID)
	}
}

// H8, R5: a cancel ends the worker within its grace, and nothing is left.
func TestSSHCancel(t *testing.T) {
	t.Parallel()
	st := newSSHStudy(t)
	s := st.start()
	for _, backend := range []string{"native", "openssh"} {
		id := st.post(s, backend, true)
		s.wait(id, "fitting", func(r run) bool { return r.Step == "fitting" })
		began := time.Now()
		s.api("POST", "/runs/"+id+"/cancel", nil, nil)
		s.finished(id, "cancelled")
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s: it took %v", backend, took)
		}
		st.nothingLeft(id)
	}
}

// H11, R6: the session is cut, the agent is killed, the server is killed: the run goes on where it was.
func TestSSHRunOutlivesEverything(t *testing.T) {
	t.Parallel()
	for _, backend := range []string{"native", "openssh"} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			st := newSSHStudy(t)
			s := st.start()
			id := st.post(s, backend, true)
			s.wait(id, "fitting", func(r run) bool { return r.Step == "fitting" })
			agent := st.agent(id)
			if err := syscall.Kill(st.session(agent), syscall.SIGKILL); err != nil {
				t.Fatalf("cut the session: %v", err)
			}
			second := st.another(id, agent)
			if err := syscall.Kill(second, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			third := st.another(id, second)
			s.stop(syscall.SIGKILL)
			s = st.start()
			st.another(id, third)
			st.open()
			s.finished(id, "success")
			st.whole(id)
			st.nothingLeft(id)
		})
	}
}

// session is the sshd that an agent was started through.
func (st sshStudy) session(pid int) int {
	st.t.Helper()
	for range 5 {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			break
		}
		name, rest, _ := strings.Cut(string(b), ") ")
		if strings.HasSuffix(name, "(sshd") {
			return pid
		}
		if pid, err = strconv.Atoi(strings.Fields(rest)[1]); err != nil {
			break
		}
	}
	st.t.Fatal("the agent has no sshd above it")
	return 0
}

// agent is the process of the agent in charge of a run.
func (st sshStudy) agent(id string) int {
	for _, owner := range st.owners(id) {
		var o struct {
			Pid int `json:"pid"`
		}
		if b, err := os.ReadFile(owner); err == nil && json.Unmarshal(b, &o) == nil {
			return o.Pid
		}
	}
	return 0
}

func (st sshStudy) owners(id string) []string {
	found, _ := filepath.Glob("/home/potato*/potato-*/jobs/" + id + "/owner")
	return found
}

// another waits until another agent is in charge.
func (st sshStudy) another(id string, before int) int {
	st.t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if pid := st.agent(id); pid != 0 && pid != before {
			return pid
		}
	}
	st.t.Fatalf("no other agent than %d took the run up; agent.log: %s", before, st.text(id, "events.jsonl")+st.text(id, "agent.log"))
	return 0
}

// A4: what connects to the forwarded socket, with debug, reaches the agents' routes and no other.
func TestSSHSocketServesAgentsAlone(t *testing.T) {
	t.Parallel()
	st := newSSHStudy(t)
	s := st.start("--debug")
	id := st.post(s, "native", true)
	s.wait(id, "fitting", func(r run) bool { return r.Step == "fitting" })
	sockets, _ := filepath.Glob("/tmp/potato-??????/s")
	asked := 0
	for _, socket := range sockets {
		for path, want := range map[string]string{"/admin/training/api/status": "404", "/metrics": "404", "/healthz": "404", "/admin/training": "404", "/api/training/jobs/" + id + "/bundle": "401"} {
			out, err := exec.Command("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--unix-socket", socket, "-H", "Potato-Lease: x", "http://localhost"+path).Output()
			if err != nil {
				continue // another run's, which has ended
			}
			asked++
			if string(out) != want {
				t.Errorf("%s answered %s, want %s", path, out, want)
			}
		}
	}
	if asked == 0 {
		t.Errorf("no socket could be asked of %v", sockets)
	}
	// T39: while it runs, no process shows the token.
	token := regexp.MustCompile(`potato_[A-Z2-7]{40,}`)
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	looked := 0
	for _, file := range files {
		about, err := os.Stat(file)
		if err != nil || about.Sys().(*syscall.Stat_t).Uid == 0 {
			continue // it has ended, or is no account's of the host
		}
		looked++
		for _, name := range []string{file, strings.Replace(file, "cmdline", "environ", 1)} {
			if b, err := os.ReadFile(name); err == nil && token.Match(b) {
				t.Errorf("the token is in %s", name)
			}
		}
	}
	if looked < 3 {
		t.Errorf("looked at %d processes; want agent, shim and worker among them", looked)
	}
	if text := st.text(id, "agent.log") + st.text(id, "events.jsonl") + s.Log(); token.MatchString(text) {
		t.Error("the token is in a log")
	}
	st.open()
	s.finished(id, "success")
}

// H7: what is too large, or not wanted here, stays on the host, and the run says where.
func TestSSHArtifactsThatStay(t *testing.T) {
	t.Parallel()
	st := newSSHStudy(t)
	file := filepath.Join(st.dir, "config.yaml")
	config, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		more, here, there string
		kept              bool
	}{
		"fetch_artifacts": {", fetch_artifacts: false}", "", "model/weights.bin", false},
		"keep_remote":     {", keep_remote: true}", "model/weights.bin", "model/weights.bin", true},
	} {
		write(t, st.dir, "config.yaml", strings.ReplaceAll(string(config), "/potato-testsshartifactsthatstay}", "/potato-testsshartifactsthatstay"+c.more))
		s := st.start()
		r := s.finished(st.post(s, "native", false), "success")
		dir := "/home/" + hoststest.Bash + "/potato-testsshartifactsthatstay/jobs/" + r.RunID
		if _, err := os.Stat(filepath.Join(dir, "artifacts", c.there)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "spec.json")); (err == nil) != c.kept {
			t.Errorf("%s: the job directory: %v", name, err)
		}
		if got := st.text(r.RunID, "artifacts/"+c.here) != ""; got != (c.here != "") {
			t.Errorf("%s: the model is here: %v", name, got)
		}
		if c.here == "" && r.ArtifactURI != "target:"+dir+"/artifacts" {
			t.Errorf("%s: artifacts at %s", name, r.ArtifactURI)
		}
		s.stop(syscall.SIGTERM)
	}
}

// H9, H11: a server that does not come back within the time limit leaves no process, socket or job directory behind, and says
// so when it does come back.
func TestSSHServerAwayForTooLong(t *testing.T) {
	t.Parallel()
	st := newSSHStudy(t)
	write(t, st.dir, "config.yaml", strings.ReplaceAll(read(t, filepath.Join(st.dir, "config.yaml")), "heartbeat_timeout_s: 20", "heartbeat_timeout_s: 3"))
	s := st.start()
	id := st.post(s, "native", true)
	s.wait(id, "fitting", func(r run) bool { return r.Step == "fitting" })
	s.stop(syscall.SIGKILL)
	st.nothingLeft(id)
	s = st.start()
	r := s.wait(id, "over", run.final)
	if r.Status != "error" || r.ErrorCode != "server_restarted" || r.Hint == "" {
		t.Errorf("got %s: %s: %s (%s)", r.Status, r.ErrorCode, r.Error, r.Hint)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// withGPUs gives every host of the study so many GPUs, by a stand-in for nvidia-smi, and returns the paths of their locks. Their
// names are the test's own: the locks are the whole machine's.
func (st sshStudy) withGPUs(bin string, n int) (locks []string) {
	st.t.Helper()
	smi := "#!/bin/sh\n"
	for i := range n {
		uuid := fmt.Sprintf("GPU-%s-%d", filepath.Base(bin), i)
		smi += fmt.Sprintf("echo '%d, NVIDIA L4, %s, 23034, 9000, 0, 8.9, 550.1'\n", i, uuid)
		lock := "/tmp/potato-" + uuid + ".lock"
		st.t.Cleanup(func() { _ = os.Remove(lock) })
		locks = append(locks, lock)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(bin, "nvidia-smi"), []byte(smi), 0o755), os.Chmod(bin, 0o755)); err != nil {
		st.t.Fatal(err)
	}
	config := strings.ReplaceAll(read(st.t, filepath.Join(st.dir, "config.yaml")), "gpus: none", `env: {PATH: "`+bin+`:/usr/bin:/bin"}`)
	write(st.t, st.dir, "config.yaml", config)
	return locks
}

// programs is a folder for stand-ins that every account may run.
func programs(t *testing.T) string {
	t.Helper()
	bin, err := os.MkdirTemp("/tmp", "potato-smi-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(bin) })
	return bin
}

// H3: two servers that come to a host at the same moment do not take the same GPU.
func TestSSHTwoServersTakeTwoGPUs(t *testing.T) {
	t.Parallel()
	bin := programs(t)
	seen := map[string]bool{}
	var ends []func()
	for range 2 {
		st := newSSHStudy(t)
		st.withGPUs(bin, 2)
		s := st.start()
		id := st.post(s, "native", true)
		s.wait(id, "fitting", func(r run) bool { return r.Step == "fitting" })
		for _, owner := range st.owners(id) {
			seen[strings.TrimSpace(read(t, filepath.Join(filepath.Dir(owner), "gpus.json")))] = true
		}
		ends = append(ends, func() {
			st.open()
			s.finished(id, "success")
		})
	}
	if len(seen) != 2 {
		t.Errorf("the runs have the GPUs %v", seen)
	}
	for _, end := range ends {
		end()
	}
}

// H3: an agent that dies lets no other server have the GPU on which its worker goes on.
func TestSSHDeadAgentKeepsItsGPU(t *testing.T) {
	t.Parallel()
	st := newSSHStudy(t)
	lock := st.withGPUs(programs(t), 1)[0]
	s := st.start()
	id := st.post(s, "native", true)
	s.wait(id, "fitting", func(r run) bool { return r.Step == "fitting" })
	agent := st.agent(id)
	session := st.session(agent)
	signalTo(t, syscall.SIGSTOP, session) // nobody comes in its place so soon
	signalTo(t, syscall.SIGKILL, agent)
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if state, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", agent)); len(state) == 0 || strings.Contains(string(state), ") Z ") {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the agent lives on")
		}
	}
	if err := exec.Command("flock", "-n", lock, "true").Run(); err == nil {
		t.Error("the GPU of a worker that trains is free")
	}
	signalTo(t, syscall.SIGKILL, session)
	st.open()
	s.finished(id, "success")
	if err := exec.Command("flock", "-n", lock, "true").Run(); err != nil {
		t.Errorf("the GPU is not free after the run: %v", err)
	}
}

// H2: the same run succeeds with the oldest and the newest Python.
func TestSSHOldAndNewPython(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"3.8", "3.13"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			st := newSSHStudy(t)
			python := pythonForAll(t, version)
			write(t, st.dir, "config.yaml", strings.ReplaceAll(read(t, filepath.Join(st.dir, "config.yaml")), "/usr/bin/python3", python+
				", env: {LD_LIBRARY_PATH: "+filepath.Join(filepath.Dir(filepath.Dir(python)), "lib")+"}")) // a copy finds its own library so
			s := st.start()
			r := s.finished(st.post(s, "native", false), "success")
			if log := st.text(r.RunID, "events.jsonl"); !strings.Contains(log, "Python "+version+".") {
				t.Errorf("the log names no Python %s: %s", version, log)
			}
		})
	}
}

// pythonForAll finds a version of Python that every account can run: where it lies in a home, a copy of it.
func pythonForAll(t *testing.T, version string) string {
	t.Helper()
	home, _ := os.UserHomeDir()
	found, _ := filepath.Glob(filepath.Join(home, ".pyenv", "versions", version+".*", "bin", "python"+version))
	if path, err := exec.LookPath("python" + version); err == nil && !strings.Contains(path, ".pyenv") {
		return path
	}
	need(t, len(found) > 0, "python"+version)
	dir, err := os.MkdirTemp("/tmp", "potato-python-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	from := filepath.Dir(filepath.Dir(found[0]))
	copied := fmt.Sprintf("cd %s && tar cf - --exclude=test --exclude=site-packages --exclude='*.a' --exclude=share --exclude=include . | tar xf - -C %s && chmod 755 %s", from, dir, dir)
	if out, err := exec.Command("/bin/sh", "-c", copied).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return filepath.Join(dir, "bin", "python"+version)
}
