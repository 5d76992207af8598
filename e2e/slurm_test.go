package e2e_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"potato/runners/hosts/hoststest"
)

// Q1-Q5: a run through the scheduler, from both kinds of login shells; what it leaves is here and nothing is left there.
func TestSlurmRun(t *testing.T) {
	t.Parallel()
	home, err := hoststest.Home(hoststest.Bash)
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(home, "python of "+t.Name()) // below the home, as the login shell would find it
	_ = os.Remove(link)
	if err := os.Symlink("/usr/bin/python3", link); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(link) })
	st := newSlurmStudy(t, map[string][]string{"gpus": {"job_python: \"~/" + filepath.Base(link) + "\"", "gres: gpu:1", "prelude: [\"export GREETING='it works'\"]"}, "cpus": {"host: target-fish"}})
	s := st.start()
	for _, backend := range []string{"gpus", "cpus"} {
		id := st.submit(s, backend, map[string]any{"steps": 3})
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("the events: %s\nthe agent's log: %s", st.text(id, "events.jsonl"), st.text(id, "agent.log"))
			}
		})
		r := s.finished(id, "success")
		if n := len(st.text(id, "artifacts/model/weights.bin")); n != 1_000_000 || len(r.Warnings) > 0 || !strings.HasPrefix(r.ArtifactURI, st.dir) {
			t.Errorf("%s: %d bytes of model, warnings %q, artifacts at %s", backend, n, r.Warnings, r.ArtifactURI)
		}
		events := st.text(id, "events.jsonl")
		want := []string{"Submitted SLURM job ", "sbatch --", ": PENDING", ": RUNNING on node0", "Python 3.", "GPUs []"}
		if backend == "gpus" {
			want = append(want[:5:5], "--gres=gpu:1", "GPUs [0]")
		}
		for _, w := range want {
			if !strings.Contains(events, w) {
				t.Errorf("%s: the log does not say %q", backend, w)
			}
		}
		st.nothingLeft(id)
	}
}

// Q7: a cancel ends the job whatever it is doing, and within the specification's time (F2).
func TestSlurmCancel(t *testing.T) {
	t.Parallel()
	st := newSlurmStudy(t, map[string][]string{"waits": {"sbatch_args: [\"--begin=now+600\"]"}, "runs": nil})
	s := st.start()
	for name, c := range map[string]struct {
		backend, state string
		params         map[string]any
		within         time.Duration
	}{
		"pending":  {"waits", "PENDING", nil, 10 * time.Second},
		"running":  {"runs", "RUNNING", map[string]any{"gate": st.gate}, 10 * time.Second},
		"stubborn": {"runs", "RUNNING", map[string]any{"gate": st.gate, "stubborn": true}, 2*time.Second + 2*time.Second + 6*time.Second}, // grace, KillWait
	} {
		id := st.submit(s, c.backend, c.params)
		job := st.job(s, id, c.state)
		if c.state == "RUNNING" {
			s.wait(id, "fitting", func(run) bool { return strings.Contains(st.text(id, "events.jsonl"), "begins at step") })
		}
		began := time.Now()
		s.api("POST", "/runs/"+id+"/cancel", nil, nil)
		s.finished(id, "cancelled")
		st.noJob(job)
		if took := time.Since(began); took > c.within {
			t.Errorf("%s: it took %v, want at most %v", name, took, c.within)
		}
		st.nothingLeft(id)
	}
}

// Q8: every way in which a scheduler ends a job ends the run with its own words and code.
func TestSlurmEnds(t *testing.T) {
	t.Parallel()
	st := newSlurmStudy(t, map[string][]string{
		"plain": nil, "fails": {"nodelist: " + failing, "exclude: \"" + crowded + "\"", "requeue: false"},
		"crowded": {"nodelist: " + crowded, "exclude: \"" + failing + "\"", "partition: lowc", "cpus_per_task: 4"}, "small": {"mem: 60M"},
		"held": {"sbatch_args: [--hold]"}, "deadline": {"deadline: now+1"}, "never": {"time: \"2:00:00\""}, "patient": {"sbatch_args: [\"--begin=now+600\"]", "queue_timeout_s: 2"},
		"nosuch": {"partition: nosuch"}, "manygpus": {"gres: gpu:5"}, "prelude": {"prelude: [module load cuda/99]"}, "nopython": {"job_python: /no/python3.9"},
	})
	s := st.start()
	gated := map[string]any{"gate": st.gate}
	ends := map[string]struct {
		backend string
		params  map[string]any
		then    func(job string) // once the job trains
		code    string
		text    string // JOB stands for the job's id
		hint    string
	}{
		"time limit": {"plain", gated, func(job string) {
			st.command("scontrol", "update", "jobid="+job, "EndTime="+time.Now().Add(2*time.Second).Format("2006-01-02T15:04:05"))
		}, "slurm_time_limit", "SLURM job JOB ended before the worker finished: it reached its time limit", "raise `time`"},
		"node failure": {"fails", gated, func(string) { st.command("scontrol", "update", "nodename="+failing, "state=down", "reason=pulled") },
			"slurm_node_failure", "SLURM job JOB ended before the worker finished: its node " + failing + " failed", "requeue: true"},
		"preempted": {"crowded", gated, func(string) {
			st.command("sbatch", "-p", "short", "-w", crowded, "-c", "4", "-t", "1", "-o", "/dev/null", "--wrap", "sleep 1")
		}, "slurm_preempted", "SLURM job JOB ended before the worker finished: it was preempted by a job of higher priority", "requeue: true"},
		"out of memory":         {"small", map[string]any{"memory_mb": 300, "gate": st.gate}, nil, "out_of_memory", "SLURM job JOB ended before the worker finished: it ran out of memory", "`mem`"},
		"cancelled outside":     {"plain", gated, func(job string) { st.command("scancel", job) }, "slurm_cancelled", "SLURM job JOB ended before the worker finished: it was cancelled outside of this program", "scancel"},
		"held":                  {"held", nil, nil, "slurm_held", "SLURM job JOB ended before the worker finished: it was held (JobHeldUser)", "scontrol release JOB"},
		"deadline":              {"deadline", gated, nil, "slurm_deadline", "SLURM job JOB ended before the worker finished: its deadline passed", "`deadline`"},
		"never as asked":        {"never", nil, nil, "slurm_refused", "SLURM job JOB ended before the worker finished: it can never start as it was asked for (PartitionTimeLimit)", "`time`"},
		"queue":                 {"patient", nil, nil, "queue_timeout", "SLURM job JOB has waited for ", "queue_timeout_s"},
		"no such partition":     {"nosuch", nil, nil, "slurm_refused", "SLURM refused the job: invalid partition specified: nosuch; Invalid partition name specified", "sinfo -s"},
		"too many GPUs":         {"manygpus", nil, nil, "slurm_refused", "Requested node configuration is not available", "gres"},
		"prelude":               {"prelude", nil, nil, "prelude_failed", "The prelude line `module load cuda/99` failed with exit code 127", "`prelude`"},
		"no python on the node": {"nopython", nil, nil, "python_missing", "/no/python3.9 was not found on node0", "job_python"},
	}
	ids := map[string]string{} // all at once: each waits for the scheduler
	for name, c := range ends {
		ids[name] = st.submit(s, c.backend, c.params)
	}
	for name, c := range ends {
		id := ids[name]
		if c.then != nil {
			job := st.job(s, id, "RUNNING")
			s.wait(id, "training", func(run) bool { return strings.Contains(st.text(id, "events.jsonl"), "begins at step") })
			c.then(job)
		}
		r := s.wait(id, "over", run.final)
		job := ""
		if m := jobID.FindStringSubmatch(st.text(id, "events.jsonl")); m != nil {
			job = m[1]
			st.noJob(job)
		}
		text, hint := strings.ReplaceAll(c.text, "JOB", job), strings.ReplaceAll(c.hint, "JOB", job)
		if r.Status != "error" || r.ErrorCode != c.code || !strings.Contains(r.Error, text) || !strings.Contains(r.Hint, hint) {
			t.Errorf("%s: got %s %s: %s (%s)\nwant %s: %s (%s)\n%s", name, r.Status, r.ErrorCode, r.Error, r.Hint, c.code, text, hint, st.text(id, "events.jsonl"))
		}
		st.nothingLeft(id)
	}
}

// Two login nodes share their storage: the session to one is lost for good in mid-run, and the run is taken up through the
// other (DESIGN §3).
func TestSlurmOtherLoginNode(t *testing.T) {
	t.Parallel()
	st := newSlurmStudy(t, map[string][]string{"cluster": {"host: either"}})
	s := st.start()
	id := st.submit(s, "cluster", map[string]any{"gate": st.gate})
	job := st.job(s, id, "RUNNING")
	s.wait(id, "training", func(run) bool { return strings.Contains(st.text(id, "events.jsonl"), "begins at step") })
	agent := st.agent(id)
	session := st.session(agent)
	if err := st.rig.Lead("login2"); err != nil {
		t.Fatal(err)
	}
	signalTo(t, syscall.SIGKILL, session)
	st.another(id, agent)
	for _, owner := range st.owners(id) {
		if text := read(t, owner); !strings.Contains(text, `"login2"`) {
			t.Errorf("the run is with %s", text)
		}
	}
	st.open()
	s.finished(id, "success")
	if jobs := jobID.FindAllStringSubmatch(st.text(id, "events.jsonl"), -1); len(jobs) != 1 || jobs[0][1] != job {
		t.Errorf("jobs were submitted: %v", jobs)
	}
	steps := strings.Count(st.text(id, "events.jsonl"), `"name":"step"`)
	if begins := strings.Count(st.text(id, "events.jsonl"), "begins at step"); begins != 1 || steps == 0 {
		t.Errorf("the training began %d times, %d steps", begins, steps)
	}
	st.nothingLeft(id)
}

// Q10: a job that the scheduler requeues goes on from its last checkpoint, in the same run.
func TestSlurmRequeue(t *testing.T) {
	t.Parallel()
	st := newSlurmStudy(t, map[string][]string{"cluster": {"requeue: true", "cpus_per_task: 2"}})
	s := st.start()
	id := st.submit(s, "cluster", map[string]any{"gate": st.gate})
	job := st.job(s, id, "RUNNING")
	s.wait(id, "saved steps", func(run) bool { return strings.Contains(st.text(id, "events.jsonl"), `"value":5`) })
	st.command("scontrol", "requeue", job)
	s.wait(id, "the second attempt", func(r run) bool {
		if r.final() {
			t.Fatalf("the run ended: %s", describe(r))
		}
		return strings.Count(st.text(id, "events.jsonl"), "begins at step") == 2
	})
	st.open()
	s.finished(id, "success")
	begins := regexp.MustCompile(`"attempt":(\d),[^\n]*begins at step (\d+)`).FindAllStringSubmatch(st.text(id, "events.jsonl"), -1)
	if len(begins) != 2 || begins[0][1] != "1" || begins[0][2] != "0" || begins[1][1] != "2" {
		t.Fatalf("got %v", begins)
	}
	if step, err := strconv.Atoi(begins[1][2]); err != nil || step < 4 {
		t.Errorf("the second attempt began at step %d, want where the first had saved", step)
	}
	st.nothingLeft(id)
}

// Q10: the signal before the time limit has the worker save, and go on.
func TestSlurmSignalBeforeTheLimit(t *testing.T) {
	t.Parallel()
	st := newSlurmStudy(t, map[string][]string{"cluster": {"signal: \"B:USR1@60\""}})
	s := st.start()
	id := st.submit(s, "cluster", map[string]any{"gate": st.gate})
	job := st.job(s, id, "RUNNING")
	s.wait(id, "training", func(run) bool { return strings.Contains(st.text(id, "events.jsonl"), "begins at step") })
	st.command("scancel", "--batch", "--signal=USR1", job) // as the scheduler does a minute before the end
	const said = "The scheduler says that the job's time runs out"
	s.wait(id, "the worker to hear of it", func(r run) bool {
		if r.final() {
			t.Fatalf("the run ended: %s", describe(r))
		}
		return strings.Contains(st.text(id, "events.jsonl"), said)
	})
	st.open()
	if r := s.finished(id, "success"); !slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, said) }) {
		t.Errorf("got warnings %q", r.Warnings)
	}
}

// §11: a package that the compute nodes lack is missing in the environment of job_python; there is no `packages` on a cluster.
func TestSlurmMissingDependency(t *testing.T) {
	t.Parallel()
	st := newSlurmStudy(t, map[string][]string{"cluster": nil})
	write(t, st.trainers, "needy.py", `
TRAINER = {"name": "needy", "description": "Needs a package.", "kinds": ["nominal", "ordinal"], "packages": ["no-such-package"], "imports": ["no_such_package"]}


def train(job):
    import no_such_package
    yield no_such_package
`)
	s := st.start()
	id := s.post(map[string]any{"trainer": "needy", "schemas": []string{"sentiment"}, "backend": "cluster"})
	r := s.wait(id, "over", run.final)
	if r.ErrorCode != "missing_dependency" || !strings.Contains(r.Error, "Trainer 'needy' could not be imported") || !strings.Contains(r.Hint, "job_python") || strings.Contains(r.Hint, "packages") {
		t.Errorf("got %s: %s (%s)", r.ErrorCode, r.Error, r.Hint)
	}
}
