package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"potato/agent/slurmtest"
	"potato/runners/hosts/hoststest"
)

// The nodes of the cluster: runs go to the first two unless a test says otherwise, so that what happens to the others
// disturbs nobody.
const (
	failing = "node03" // is taken down
	crowded = "node04" // is taken by jobs of higher priority
)

// scheduler is the cluster of all tests, started with the first one that needs it.
var scheduler struct {
	sync.Mutex
	*slurmtest.Cluster
}

func TestMain(m *testing.M) {
	os.Exit(hoststest.Main(func() int {
		code := m.Run()
		if scheduler.Cluster != nil {
			scheduler.Stop()
		}
		return code
	}))
}

func cluster(t *testing.T) *slurmtest.Cluster {
	t.Helper()
	slurmtest.Require(t)
	scheduler.Lock()
	defer scheduler.Unlock()
	if scheduler.Cluster == nil {
		c, err := slurmtest.Start(4, "")
		if err != nil {
			t.Fatal(err)
		}
		scheduler.Cluster = c
	}
	return scheduler.Cluster
}

// slurmStudy is a study whose backends submit to the cluster from the rig's hosts, which are its login nodes.
type slurmStudy struct {
	sshStudy
	cluster *slurmtest.Cluster
}

// newSlurmStudy makes one with a backend for each of these names; its value are lines of the backend's own.
func newSlurmStudy(t *testing.T, backends map[string][]string, lines ...string) slurmStudy {
	t.Helper()
	st := slurmStudy{sshStudy: newSSHStudy(t, append(lines, "max_concurrent_runs: 20")...), cluster: cluster(t)}
	write(t, st.trainers, "job.py", jobTrainer)
	var text strings.Builder
	for name, own := range backends {
		fmt.Fprintf(&text, "    %s:\n      type: slurm\n", name)
		for _, line := range []string{
			"host: target", "python: /usr/bin/python3", "time: 5", "exclude: \"" + failing + "," + crowded + "\"", "poll_interval_s: 1", "heartbeat_timeout_s: 20",
			"remote_dir: " + remoteDir(t), "env: {" + strings.Replace(st.cluster.Env[0], "=", ": ", 1) + "}",
		} {
			key, _, _ := strings.Cut(line, ":")
			if i := slices.IndexFunc(own, func(l string) bool { return strings.HasPrefix(l, key+":") }); i < 0 {
				own = append(own, line)
			}
		}
		for _, line := range own {
			text.WriteString("      " + line + "\n")
		}
	}
	config := read(t, filepath.Join(st.dir, "config.yaml"))
	write(t, st.dir, "config.yaml", strings.Replace(config, "  backends:\n", "  backends:\n"+text.String(), 1))
	return st
}

// jobTrainer is a trainer that does what a job on a cluster may do: it waits, ignores TERM, takes memory, is requeued.
const jobTrainer = `
import os, signal, time
from potato_trainers import done, log, metric, status

TRAINER = {
    "name": "job", "description": "Waits for a file.", "kinds": ["nominal", "ordinal", "multilabel"], "checkpoints": True,
    "params": {"type": "object", "additionalProperties": False, "properties": {
        "gate": {"type": "string", "default": ""}, "stubborn": {"type": "boolean", "default": False},
        "memory_mb": {"type": "integer", "default": 0}, "steps": {"type": "integer", "default": 0}}},
}


def train(job):
    schema = job.schemas[0]
    label = next(iter(job.bundle.rows("train"))).targets[schema.name]
    if job.params["stubborn"]:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    taken = bytearray(b"x") * (job.params["memory_mb"] << 20)
    step, folder = 0, job.checkpoint()
    if folder:
        with open(os.path.join(folder, "step")) as f:
            step = int(f.read())
    yield log("GPUs [%s], begins at step %d" % (os.environ.get("CUDA_VISIBLE_DEVICES"), step))
    yield status("fitting")
    while step < job.params["steps"] or job.params["gate"] and not os.path.exists(job.params["gate"]):
        time.sleep(0.1)
        step += 1
        yield metric("train", "step", step, step)
        with job.saving() as folder:
            with open(os.path.join(folder, "step"), "w") as f:
                f.write(str(step))
    with open(job.path("model", "weights.bin"), "wb") as f:
        f.write(b"0123456789" * 100000)
    with job.predictions() as out:
        for split in job.bundle.predicted():
            for row in job.bundle.rows(split.name):
                out.write(row.instance_id, schema.name, {"label": label, "confidence": 0.75, "scores": {label: 0.75}})
    yield done()
`

// submit posts a run of that trainer; a gated one trains until the gate is opened.
func (st slurmStudy) submit(s *server, backend string, params map[string]any) string {
	st.t.Helper()
	return s.post(map[string]any{"trainer": "job", "schemas": []string{"sentiment"}, "backend": backend, "params": params})
}

var jobID = regexp.MustCompile(`Submitted SLURM job (\d+)`)

// job waits until a run's job is in this state of the scheduler's and returns its id.
func (st slurmStudy) job(s *server, id, state string) string {
	st.t.Helper()
	s.wait(id, "SLURM job "+state, func(r run) bool {
		if r.final() {
			st.t.Fatalf("the run ended before its job was %s: %s", state, describe(r))
		}
		return jobID.MatchString(st.text(id, "events.jsonl")) && strings.Contains(st.text(id, "events.jsonl"), ": "+state)
	})
	return jobID.FindStringSubmatch(st.text(id, "events.jsonl"))[1]
}

// command runs one of the scheduler's commands as root.
func (st slurmStudy) command(name string, args ...string) string {
	st.t.Helper()
	out, err := st.cluster.Command(name, args...)
	if err != nil {
		st.t.Fatalf("%s %s: %v", name, strings.Join(args, " "), err)
	}
	return out
}

// noJob waits until the scheduler has nothing of a run any more.
func (st slurmStudy) noJob(job string) {
	st.t.Helper()
	var state string
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		state = strings.TrimSpace(st.command("squeue", "-h", "-j", job, "-t", "PENDING,RUNNING,COMPLETING", "-o", "%T"))
		if state == "" {
			return
		}
	}
	st.t.Errorf("SLURM job %s is still %s", job, state)
}
