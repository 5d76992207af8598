package agent_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"potato/agent"
	"potato/agent/agenttest"
	"potato/api"
	"potato/trainers"
)

// meeting is a trainer whose ranks meet over sockets, as those of torch do: each sends its number to rank 0.
const meeting = `
import json, os, signal, socket, sys, time
from potato_trainers import *

TRAINER = {"name": "meeting", "description": "A test.", "kinds": ["nominal"], "distributed": DISTRIBUTED, "checkpoints": True,
    "params": {"type": "object", "properties": {"rank_1": {"type": "string", "default": ""}}}}

def train(job):
    yield status("meeting")
    print("printed by", job.rank)
    print("written by", job.rank, file=sys.stderr, flush=True)
    yield log("at %s" % os.environ.get("RANK"))
    open(job.path("model.bin"), "w").write(str(job.rank))
    with job.saving() as folder:
        open(os.path.join(folder, "n"), "w").write(str(job.rank))
    with job.predictions() as out:
        out.write("a", "mood", {"label": str(job.rank), "confidence": None})
    place = (os.environ.get("MASTER_ADDR", "127.0.0.1"), int(os.environ.get("MASTER_PORT", "0")))
    if job.rank > 0:
        if job.rank == 1:
            exec(job.params["rank_1"])
        for _ in range(2000):
            try:
                meeting = socket.create_connection(place)
                break
            except ConnectionRefusedError:
                time.sleep(0.01)
        meeting.sendall(json.dumps([job.rank, job.local_rank, int(os.environ["NODE_RANK"]), os.environ["LOCAL_WORLD_SIZE"]]).encode())
        meeting.close()
    met = []
    if job.rank == 0 and job.world_size > 1:
        room = socket.create_server(place)
        while len(met) < job.world_size - 1:
            guest, _ = room.accept()
            met.append(json.loads(guest.makefile().read()))
    yield artifact("model.bin")
    yield log("met %s" % json.dumps(sorted(met)))
    yield done(metrics={"n_train": len(met) + 1})
`

// ranks is a job directory with the worker that ships and that trainer.
type ranks struct {
	*testing.T
	dir    string
	python string
	worker string
}

func newRanks(t *testing.T, distributed bool, rank1 string) *ranks {
	t.Helper()
	r := &ranks{T: t, dir: t.TempDir(), python: agenttest.Python(t)}
	worker, err := trainers.Materialise(filepath.Join(r.dir, "code"))
	if err != nil {
		t.Fatal(err)
	}
	r.worker = worker
	flag := map[bool]string{true: "True", false: "False"}[distributed]
	own := filepath.Join(r.dir, "own")
	r.write("own/meeting.py", strings.Replace(meeting, "DISTRIBUTED", flag, 1))
	r.write("bundle/manifest.json", `{"v":1,"splits":{},"labels":{},"digest":"00"}`)
	spec, err := json.Marshal(api.Spec{
		V: 1, RunID: "20261129T192252-d3d870", Attempt: 1, Trainer: "meeting", Schemas: []api.Scheme{{Name: "mood", Kind: api.KindNominal}},
		BundleDir: filepath.Join(r.dir, "bundle"), Workdir: filepath.Join(r.dir, "artifacts"), EventsFile: filepath.Join(r.dir, "events.jsonl"),
		CheckpointDir: filepath.Join(r.dir, "checkpoints"), TrainersDir: &own, Params: map[string]any{"rank_1": rank1},
		Limits: api.Limits{Device: "cpu"},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.write("spec.json", string(spec))
	return r
}

func (r *ranks) write(name, text string) string {
	r.Helper()
	path := filepath.Join(r.dir, name)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		r.Fatal(err)
	}
	return path
}

// launcher is a rank launcher that runs as a process of its own.
type launcher struct {
	*exec.Cmd
	stdout, stderr bytes.Buffer
}

// start starts the launcher of one node with these variables.
func (r *ranks) start(env []string, args ...string) *launcher {
	r.Helper()
	self, err := os.Executable()
	if err != nil {
		r.Fatal(err)
	}
	l := &launcher{Cmd: exec.Command(self, slices.Concat([]string{"rank"}, args, []string{r.python, r.worker, "--spec", filepath.Join(r.dir, "spec.json")})...)}
	l.Env = append(agent.WorkerEnv("CUDA_VISIBLE_DEVICES=", "GORACE=atexit_sleep_ms=0", "TMPDIR="+r.dir), env...)
	l.Stdout, l.Stderr = &l.stdout, &l.stderr
	if err := l.Start(); err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = l.Process.Kill() }) // it has mostly ended
	return l
}

// end waits for the launcher and returns its status.
func (r *ranks) end(l *launcher) int {
	r.Helper()
	late := time.AfterFunc(30*time.Second, func() { _ = l.Process.Kill() })
	defer late.Stop()
	_ = l.Wait() // the status says it
	return l.ProcessState.ExitCode()
}

func (r *ranks) events() (events []api.Event) {
	r.Helper()
	b, err := os.ReadFile(filepath.Join(r.dir, "events.jsonl"))
	if err != nil {
		r.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if line == "\n" {
			continue
		}
		var e api.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			r.Fatalf("%q: %v", line, err)
		}
		events = append(events, e)
	}
	return events
}

// await waits until rank 0 has said a step.
func (r *ranks) await(text string) {
	r.Helper()
	agenttest.Wait(r, text, func() (bool, string) {
		b, _ := os.ReadFile(filepath.Join(r.dir, "events.jsonl"))
		return strings.Contains(string(b), text), string(b)
	})
}

// stays is a rank 1 that says its process and goes on for long.
const stays = "open(os.environ['TMPDIR'] + '/.pid', 'w').write(str(os.getpid())); os.rename(os.environ['TMPDIR'] + '/.pid', os.environ['TMPDIR'] + '/pid'); time.sleep(600)"

// rank1 waits for the process of a rank 1 that stays.
func (r *ranks) rank1() (pid int) {
	r.Helper()
	agenttest.Wait(r, "rank 1", func() (bool, string) {
		b, err := os.ReadFile(filepath.Join(r.dir, "pid"))
		pid, _ = strconv.Atoi(string(b))
		return pid > 0, fmt.Sprint(err)
	})
	return pid
}

func logs(events []api.Event) (texts []string) {
	for _, e := range events {
		if e.Event == api.EventLog {
			texts = append(texts, e.Msg)
		}
	}
	return texts
}

// Q10: the ranks of a node meet, and rank 0 alone reports and leaves files.
func TestRanksMeetOnANode(t *testing.T) {
	t.Parallel()
	r := newRanks(t, true, "")
	l := r.start(nil, "--ranks", "3")
	if code := r.end(l); code != 0 {
		t.Fatalf("status %d; %s", code, l.stderr.String())
	}
	events := r.events()
	if got, want := logs(events), []string{"at 0", `met [[1, 1, 0, "3"], [2, 2, 0, "3"]]`}; !slices.Equal(got, want) {
		t.Errorf("got the log %q, want %q", got, want)
	}
	if last := events[len(events)-1]; last.Event != api.EventResult || *last.Metrics["n_train"] != 3 || *last.NPredictions != 1 {
		t.Errorf("the last event is %+v", last)
	}
	if got := l.stdout.String(); got != "printed by 0\n" {
		t.Errorf("standard output is %q", got)
	}
	said := strings.Split(strings.TrimSpace(l.stderr.String()), "\n")
	slices.Sort(said)
	if want := []string{"[rank 1] written by 1", "[rank 2] written by 2", "written by 0"}; !slices.Equal(said, want) {
		t.Errorf("standard error is %q, want %q", said, want)
	}
	for name, want := range map[string]string{"model.bin": "0", "predictions.jsonl": `"label": "0"`} {
		if b, err := os.ReadFile(filepath.Join(r.dir, "artifacts", name)); err != nil || !strings.Contains(strings.ReplaceAll(string(b), `":"`, `": "`), want) {
			t.Errorf("%s is %q, %v", name, b, err)
		}
	}
	if left := slices.Concat(glob(t, r.dir+"/rank*"), glob(t, r.dir+"/checkpoints"), glob(t, r.dir+"/tmp*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// One rank a GPU on each of two nodes, each with a launcher of its own.
func TestRanksMeetOnTwoNodes(t *testing.T) {
	t.Parallel()
	r := newRanks(t, true, "")
	env := []string{"SLURM_NNODES=2", "SLURM_JOB_ID=4242", "SLURM_JOB_NODELIST=127.0.0.1,elsewhere", "CUDA_VISIBLE_DEVICES=0,1", "MASTER_PORT=" + freePort(t)}
	nodes := []*launcher{r.start(append(env, "SLURM_NODEID=0")), r.start(append(env, "SLURM_NODEID=1"))}
	for _, l := range nodes {
		if code := r.end(l); code != 0 {
			t.Fatalf("status %d; %s", code, l.stderr.String())
		}
	}
	if got := logs(r.events()); !slices.Contains(got, `met [[1, 1, 0, "2"], [2, 0, 1, "2"], [3, 1, 1, "2"]]`) {
		t.Errorf("got the log %q", got)
	}
	if got := nodes[1].stdout.String() + nodes[1].stderr.String(); !strings.Contains(got, "[rank 2] written by 2\n") || strings.Contains(got, "printed") {
		t.Errorf("the second node says %q", got)
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// A rank that fails ends all, and rank 0 says why.
func TestARankFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		how     string
		status  int
		code    string
		message string
		stderr  string
	}{
		"raising": {"raise ValueError('shapes differ')", 1, "worker_failed", "Rank 1 failed: Trainer 'meeting' failed while meeting: ValueError: shapes differ", "[rank 1] ValueError: shapes differ"},
		"leaving": {"os._exit(7)", 7, "worker_failed", "Rank 1 failed: It ended on " + host(t) + " with status 7", "rank 1 failed, all ranks are ended"},
		"killed":  {"os.kill(os.getpid(), signal.SIGKILL)", 137, "killed", "Rank 1 failed: It was killed on " + host(t) + " (killed)", "rank 1 failed, all ranks are ended"},
		"refused": {"raise ValidationFailed('too few items', 'label more')", 2, "validation_failed", "Rank 1 failed: too few items", "[rank 1] too few items"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRanks(t, true, c.how)
			l := r.start(nil, "--ranks", "3")
			if code := r.end(l); code != c.status {
				t.Errorf("status %d, want %d", code, c.status)
			}
			events := r.events()
			if last := events[len(events)-1]; last.Event != api.EventError || last.Code != c.code || last.Message != c.message {
				t.Errorf("the last event is %+v", last)
			}
			if !strings.Contains(l.stderr.String(), c.stderr) {
				t.Errorf("standard error is %q", l.stderr.String())
			}
		})
	}
}

// The failure of a rank on another node reaches rank 0 as well: srun ends its launcher.
func TestARankFailsOnAnotherNode(t *testing.T) {
	t.Parallel()
	r := newRanks(t, true, "raise ValueError('shapes differ')")
	env := []string{"SLURM_NNODES=2", "SLURM_JOB_ID=4242", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + freePort(t)}
	first := r.start(append(env, "SLURM_NODEID=0"))
	if code := r.end(r.start(append(env, "SLURM_NODEID=1"))); code != 1 {
		t.Errorf("the second node's status is %d", code)
	}
	r.await(`"meeting"`)
	if err := first.Process.Signal(syscall.SIGTERM); err != nil { // as srun --kill-on-bad-exit does
		t.Fatal(err)
	}
	if code := r.end(first); code != 1 {
		t.Errorf("the first node's status is %d", code)
	}
	events := r.events()
	if last := events[len(events)-1]; last.Event != api.EventError || !strings.HasPrefix(last.Message, "Rank 1 failed: Trainer 'meeting' failed") {
		t.Errorf("the last event is %+v", last)
	}
}

// stubborn is a worker whose rank 0 does not heed TERM, nor does what it has started.
const stubborn = `
import os, signal, subprocess, sys, time
if "--describe" in sys.argv:
    print('{"trainers": [{"name": "meeting", "distributed": true}]}')
    sys.exit()
here = os.path.dirname(sys.argv[-1])
if os.environ["RANK"] == "0":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen(["sleep", "600"])
    open(os.path.join(here, "pids"), "w").write("%d %d" % (os.getpid(), child.pid))
    time.sleep(600)
while not os.path.exists(os.path.join(here, "pids")) or not open(os.path.join(here, "pids")).read():
    time.sleep(0.01)
sys.exit(9)
`

func TestRanksThatDoNotEndAreKilled(t *testing.T) {
	t.Parallel()
	r := newRanks(t, true, "")
	r.worker = r.write("stubborn.py", stubborn)
	if code := r.end(r.start(nil, "--ranks", "2", "--grace", "200ms")); code != 9 {
		t.Errorf("status %d, want 9: that of the first rank that failed", code)
	}
	// Rank 0 did not get to say why, so the launcher does.
	want := "Rank 1 failed: It ended on " + host(t) + " with status 9"
	if events := r.events(); len(events) != 1 || events[0].Event != api.EventError || events[0].Code != "worker_failed" || events[0].Message != want {
		t.Errorf("the events are %+v", events)
	}
	b, err := os.ReadFile(filepath.Join(r.dir, "pids"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range strings.Fields(string(b)) {
		pid, _ := strconv.Atoi(text)
		agenttest.Wait(t, "the end of every process", func() (bool, string) {
			p, ok := stat(pid)
			return !ok || p.state == "Z", fmt.Sprint(pid, p)
		})
	}
}

// TERM reaches every rank, and is a cancel.
func TestRanksAreTerminated(t *testing.T) {
	t.Parallel()
	r := newRanks(t, true, stays)
	l := r.start(nil, "--ranks", "2")
	r.await(`"at 0"`)
	r.rank1()
	if err := l.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := r.end(l); code != 4 {
		t.Errorf("status %d; %s", code, l.stderr.String())
	}
	events := r.events()
	if last := events[len(events)-1]; last.Event != api.EventError || last.Code != "cancelled" {
		t.Errorf("the last event is %+v", last)
	}
	if notes := glob(t, r.dir+"/rank_failed*"); len(notes) > 0 {
		t.Errorf("a cancel is no failure of a rank: %v", notes)
	}
}

// The scheduler's signal before the time limit asks every rank for a checkpoint, and ends none.
func TestRanksAreAskedToSave(t *testing.T) {
	t.Parallel()
	r := newRanks(t, true, "while not job.save_requested: time.sleep(0.01)")
	l := r.start(nil, "--ranks", "2")
	r.await(`"loading bundle"`)
	// Again and again: rank 1 may not listen yet, which must not harm it.
	agenttest.Wait(t, "the end", func() (bool, string) {
		_ = l.Process.Signal(syscall.SIGUSR1) // it may have ended
		b, _ := os.ReadFile(filepath.Join(r.dir, "events.jsonl"))
		return strings.Contains(string(b), `"result"`), string(b)
	})
	if code := r.end(l); code != 0 {
		t.Errorf("status %d; %s", code, l.stderr.String())
	}
	if got := logs(r.events()); !slices.Contains(got, "The scheduler says that the job's time runs out; the next checkpoint is saved soon") {
		t.Errorf("got the log %q", got)
	}
}

// A trainer that does not declare to be distributed is started once, on the first node, and knows of no rank.
func TestOthersRunOnce(t *testing.T) {
	t.Parallel()
	r := newRanks(t, false, "")
	env := []string{"SLURM_NNODES=2", "SLURM_JOB_NODELIST=a,b", "CUDA_VISIBLE_DEVICES=0,1"}
	for _, node := range []string{"1", "0"} {
		l := r.start(append(env, "SLURM_NODEID="+node))
		if code := r.end(l); code != 0 {
			t.Fatalf("status %d; %s", code, l.stderr.String())
		}
		if got, want := l.stdout.String(), map[string]string{"0": "printed by 0\n", "1": ""}[node]; got != want {
			t.Errorf("node %s prints %q", node, got)
		}
	}
	if got, want := logs(r.events()), []string{"at None", "met []"}; !slices.Equal(got, want) {
		t.Errorf("got the log %q, want %q", got, want)
	}
}

func TestRankUsage(t *testing.T) {
	t.Parallel()
	r := newRanks(t, true, "")
	for _, c := range []struct{ spec, python, said string }{
		{"spec.json", "no-such-python", "no-such-python was not found on " + host(t)},
		{"nowhere.json", "", "nowhere.json cannot be read on " + host(t)},
	} {
		var said bytes.Buffer
		python := c.python
		if python == "" {
			python = r.python
		}
		code := agent.Rank([]string{python, r.worker, "--spec", filepath.Join(r.dir, c.spec)}, &said)
		if code != 2 || !strings.Contains(said.String(), c.said) {
			t.Errorf("status %d, %q; want %q", code, said.String(), c.said)
		}
	}
	for _, args := range [][]string{nil, {"--ranks", "x"}, {"python3", "worker.py"}, {"python3", "worker.py", "--spec"}, {"--spec", "x"}} {
		var said bytes.Buffer
		if code := agent.Rank(args, &said); code != 2 || !strings.HasPrefix(said.String(), "potato: usage: rank") {
			t.Errorf("%v: status %d, %q", args, code, said.String())
		}
	}
}

// How many ranks there are, and where they meet, follows from the scheduler's variables.
func TestPlaceOfRanks(t *testing.T) {
	scontrol := filepath.Join(t.TempDir(), "scontrol")
	script := "#!/bin/sh\n[ \"$*\" = 'show hostnames node[07-08]' ] && printf 'node07\\nnode08\\n'\n"
	if err := os.WriteFile(scontrol, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(scontrol)+":"+os.Getenv("PATH"))
	for _, c := range []struct {
		env     string
		perNode int
		want    string
	}{
		{"", 1, "1 of 1 on 0 at 127.0.0.1:*"},
		{"", 4, "4 of 4 on 0 at 127.0.0.1:*"},
		{"CUDA_VISIBLE_DEVICES=0", 4, "1 of 1 on 0 at 127.0.0.1:*"},
		{"CUDA_VISIBLE_DEVICES=0,2,5", 1, "3 of 3 on 0 at 127.0.0.1:*"},
		{"CUDA_VISIBLE_DEVICES=GPU-8932f937-d72c,MIG-41b3", 1, "2 of 2 on 0 at 127.0.0.1:*"},
		{"CUDA_VISIBLE_DEVICES=NoDevFiles", 2, "2 of 2 on 0 at 127.0.0.1:*"},
		{"CUDA_VISIBLE_DEVICES=0,-1,1", 2, "1 of 1 on 0 at 127.0.0.1:*"},
		{"SLURM_NNODES=2 SLURM_NODEID=1 SLURM_JOB_ID=4242 SLURM_JOB_NODELIST=node[07-08] CUDA_VISIBLE_DEVICES=0,1", 1, "2 of 4 on 1 at node07:14242"},
		{"SLURM_JOB_NUM_NODES=3 SLURM_NODEID=2 SLURM_JOB_ID=20007 SLURM_NODELIST=a,b,c", 2, "2 of 6 on 2 at a:10007"},
		{"SLURM_NNODES=2 SLURM_NODEID=0 SLURM_JOB_NODELIST=node[07-08] MASTER_ADDR=10.0.0.7 MASTER_PORT=29500", 1, "1 of 2 on 0 at 10.0.0.7:29500"},
		{"SLURM_NNODES=2 SLURM_JOB_NODELIST=other[1-2]", 1, "other[1-2] failed; set MASTER_ADDR under `env`"},
		{"SLURM_NNODES=2 SLURM_NODEID=2", 1, "SLURM_NODEID is 2, but the job has 2 nodes"},
	} {
		env := map[string]string{}
		for _, kv := range strings.Fields(c.env) {
			name, value, _ := strings.Cut(kv, "=")
			env[name] = value
		}
		local, world, node, addr, port, err := agent.Ranks(func(name string) string { return env[name] }, c.perNode)
		if strings.HasSuffix(c.want, "*") {
			if n, err := strconv.Atoi(port); err != nil || n < 1024 {
				t.Errorf("%s: the port is %q", c.env, port)
			}
			port = "*"
		}
		got := fmt.Sprintf("%d of %d on %d at %s:%s", local, world, node, addr, port)
		if err != nil {
			got = err.Error()
		}
		if got != c.want && (err == nil || !strings.Contains(got, c.want)) {
			t.Errorf("%s: got %s, want %s", c.env, got, c.want)
		}
	}
}

func host(t *testing.T) string {
	t.Helper()
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	return name
}
