package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"potato/agent"
	"potato/agent/agenttest"
	"potato/api"
)

// counted are the wrappers' notes: one line a call.
func (b *slurmBench) counted(name string) int {
	note, _ := os.ReadFile(filepath.Join(b.bin, name+".calls")) // none: never called
	return strings.Count(string(note), "\n")
}

// once has the job leave a mark for every job that gets past the claim.
func once(dir string) func(c *agent.SlurmConfig) {
	return func(c *agent.SlurmConfig) { c.Prelude = []string{"touch " + dir + "/$SLURM_JOB_ID"} }
}

func (b *slurmBench) succeeds(f api.Finish) {
	b.Helper()
	if f.ErrorCode != "" || f.Cancelled || len(b.desk.Stored()) == 0 {
		b.Fatalf("%+v\n%s\n%s", f, strings.Join(b.log(), "\n"), b.queue("%i %T %r"))
	}
}

// T01: a cluster's name after the id, and every later call with it, where the scheduler knows clusters by name.
func TestSlurmClusterIsNamed(t *testing.T) {
	b := newSlurmBench(t, nil, sleeper...)
	b.wrap("sbatch", `echo "$($real "$@");alpha"`)
	only := `[ "$1 $2" = "-M alpha" ] || { echo "not for this cluster: $*" >&2; exit 1; }; shift 2
echo call >>` + b.bin + `/$(basename $0).calls; exec $real "$@"`
	b.wrap("squeue", only)
	b.wrap("scancel", only)
	done := b.start()
	b.says("ready")
	if h := b.handle(); h.SlurmCluster != "alpha" || !strings.HasPrefix(b.queue("%i"), h.SlurmJob) {
		t.Errorf("%+v", h)
	}
	b.desk.Cancel(time.Minute)
	if f := b.ends(done); !f.Cancelled {
		t.Errorf("%+v", f)
	}
	if b.counted("squeue") == 0 || b.counted("scancel") == 0 {
		t.Error("squeue or scancel was not called for the cluster")
	}
}

// Q3: without a database the scheduler does not know clusters by name, its own neither.
func TestSlurmClusterIsNamedAndUnknown(t *testing.T) {
	b := newSlurmBench(t, func(c *agent.SlurmConfig) { c.SbatchArgs = []string{"--begin=now+600"} }, agenttest.Good(1)...)
	b.wrap("sbatch", `echo "$($real "$@");rig"`)
	done := b.start()
	b.says("SLURM job " + b.id() + ": PENDING (BeginTime)")
	b.desk.Cancel(time.Minute)
	if f := b.ends(done); !f.Cancelled || b.queue("%T") != "CANCELLED" {
		t.Errorf("%+v, the job is %s", f, b.queue("%T"))
	}
}

// T02: notices around the id.
func TestSlurmBannersAroundTheID(t *testing.T) {
	for name, script := range map[string]string{
		"before": `echo 'no partition specified, using default'; echo; $real "$@"; echo 'sbatch: note: long jobs wait longer' >&2`,
		"dos":    `printf '%s\r\n' "$($real "$@")"`,
		"words":  `echo "Submitted batch job $($real "$@") on cluster rig"`,
		"alone":  `$real "$@" >/dev/null; echo 'Welcome to the cluster'`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newSlurmBench(t, nil, agenttest.Good(1)...)
			b.wrap("sbatch", script)
			b.succeeds(b.ends(b.start()))
			if ids := strings.Fields(b.queue("%i")); len(ids) != 1 {
				t.Errorf("jobs %v", ids)
			}
			if name == "alone" && !strings.Contains(strings.Join(b.log(), "\n"), "sbatch printed no job id") {
				t.Errorf("the log does not say what was wrong:\n%s", strings.Join(b.log(), "\n"))
			}
			if name == "before" && !strings.Contains(strings.Join(b.log(), "\n"), "sbatch says: note: long jobs wait longer") {
				t.Errorf("the site's note is not in the log:\n%s", strings.Join(b.log(), "\n"))
			}
		})
	}
}

// T03, T04: a scheduler that fails, or says nothing, is not one that says that the job is gone.
func TestSlurmNoAnswerIsNotGone(t *testing.T) {
	for name, script := range map[string]string{
		"timeout": "echo 'slurm_load_jobs error: Socket timed out on send/recv operation' >&2; exit 1",
		"munge":   "echo 'slurm_load_jobs error: Protocol authentication error' >&2; exit 1",
		"empty":   "exit 0",
		"killed":  "kill -9 $$",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "go")
			b := newSlurmBench(t, once(filepath.Dir(path)), append([]agenttest.Step{{"status", "ready"}, {"wait", path}}, agenttest.Good(1)...)...)
			done := b.start()
			b.says("ready")
			b.wrap("squeue", "echo call >>"+b.bin+"/squeue.calls\n"+script)
			wait(t, "some failed looks", func() (bool, string) { return b.counted("squeue") >= 4, fmt.Sprint(b.counted("squeue")) })
			if b.desk.Finished() != nil {
				t.Fatalf("the run ended: %+v", b.desk.Finished())
			}
			if name != "empty" {
				b.says("SLURM job " + b.id() + ": the scheduler has not answered since ")
			}
			touch(t, path)
			b.succeeds(b.ends(done))
			if jobs := glob(t, filepath.Join(filepath.Dir(path), "[0-9]*")); len(jobs) != 1 {
				t.Errorf("%v trained", jobs)
			}
		})
	}
}

// T05: the answer of sbatch is lost and the job is there. It is found by its name, and there is no second one.
func TestSlurmSubmissionWhoseAnswerIsLost(t *testing.T) {
	for name, script := range map[string]string{
		"times out": `$real "$@" >/dev/null; echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2; exit 1`,
		"hangs":     `$real "$@" >/dev/null; sleep 600`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			b := newSlurmBench(t, once(dir), agenttest.Good(1)...)
			b.settings.CommandTimeout = 2 * time.Second
			b.launch(b.settings)
			b.wrap("sbatch", script)
			b.succeeds(b.ends(b.start()))
			if ids := strings.Fields(b.queue("%i")); len(ids) != 1 || !strings.Contains(strings.Join(b.log(), "\n"), "Submitted SLURM job "+ids[0]+", which was found by ") {
				t.Errorf("jobs %v\n%s", ids, strings.Join(b.log(), "\n"))
			}
		})
	}
}

// An sbatch that lands twice trains once: the second job ends itself.
func TestSlurmSubmissionThatLandsTwice(t *testing.T) {
	for name, script := range map[string]string{
		"and answers":         `$real "$@" >/dev/null; $real "$@"`,
		"with the first's id": `$real "$@"; $real "$@" >/dev/null`,
		"without an answer":   `$real "$@" >/dev/null; $real "$@" >/dev/null; echo 'sbatch: error: Zero Bytes were transmitted or received' >&2; exit 1`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			b := newSlurmBench(t, once(dir), agenttest.Good(1)...)
			b.wrap("sbatch", script)
			b.succeeds(b.ends(b.start()))
			b.until("COMPLETED")
			ids, trained := strings.Fields(b.queue("%i")), glob(t, filepath.Join(dir, "[0-9]*"))
			if len(ids) != 2 || len(trained) != 1 {
				t.Errorf("jobs %v, of which trained %v", ids, trained)
			}
			if out, err := os.ReadFile(filepath.Join(b.o.Dir, "slurm.out")); err != nil || strings.Count(string(out), "potato: duplicate") != 1 {
				t.Errorf("slurm.out: %s, %v", out, err)
			}
		})
	}
}

// A scheduler that is down when the job is submitted is asked again, once it says that it has no such job.
func TestSlurmSchedulerIsDownAtFirst(t *testing.T) {
	b := newSlurmBench(t, nil, agenttest.Good(1)...)
	b.wrap("sbatch", `echo call >>`+b.bin+`/sbatch.calls
[ $(wc -l <`+b.bin+`/sbatch.calls) -gt 1 ] || { echo 'sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)' >&2; exit 1; }
exec $real "$@"`)
	b.succeeds(b.ends(b.start()))
	if ids := strings.Fields(b.queue("%i")); len(ids) != 1 || b.counted("sbatch") != 2 {
		t.Errorf("jobs %v after %d submissions", ids, b.counted("sbatch"))
	}
}

// forgets makes the scheduler one that does not know its jobs any more (MinJobAge), and has no accounting.
func (b *slurmBench) forgets() {
	b.wrap("squeue", "exit 0")
	b.wrap("scontrol", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1")
}

// T07: the scheduler has forgotten the job, and its exit_code tells.
func TestSlurmForgottenJobWithAnExit(t *testing.T) {
	b := newSlurmBench(t, nil, append([]agenttest.Step{{"status", "ready"}}, agenttest.Good(1)...)...)
	leave := b.startUntil()
	b.id()
	leave()
	b.until("COMPLETED")
	b.forgets()
	b.job.NextSeq = b.desk.NextSeq()
	b.launch(b.settings)
	b.succeeds(b.ends(b.start()))
}

// And when nothing tells, the run ends all the same, with the reason.
func TestSlurmForgottenJobWithoutAnExit(t *testing.T) {
	b := newSlurmBench(t, nil, sleeper...)
	b.settings.LateFiles = time.Second
	b.launch(b.settings)
	done := b.start()
	b.says("ready")
	b.forgets()
	b.blames(b.ends(done), "killed", "SLURM job "+b.id()+" ended before the worker finished: the scheduler does not know it any more", "MinJobAge")
}

// T08: on network storage the exit comes late, the result after it, and the predictions last.
func TestSlurmFilesComeLate(t *testing.T) {
	b := newSlurmBench(t, nil)
	// There is no worker, and half of an exit: we write what is missing.
	b.o.Shim = []string{"/bin/sh", "-c", `printf '{"code":' >exit_code`}
	done := b.start()
	b.says("SLURM job " + b.id() + ": COMPLETED (waiting for its files)")
	must(t, os.WriteFile(filepath.Join(b.o.Dir, "exit_code"), []byte(`{"code":0,"slurm_job":"`+b.id()+`"}`+"\n"), 0o600))
	looks := b.desk.Calls(agenttest.CallHeartbeat)
	b.quiet(looks)
	line := `{"v":1,"event":"result","status":"success","predictions_file":"predictions.jsonl"}` + "\n"
	events := filepath.Join(b.o.Dir, "events.jsonl")
	must(t, os.WriteFile(events, []byte(line[:20]), 0o600))
	b.quiet(looks + 1)
	must(t, os.WriteFile(events, []byte(line), 0o600))
	b.quiet(looks + 2)
	must(t, os.WriteFile(filepath.Join(b.o.Dir, "artifacts", "predictions.jsonl"), []byte(`{"instance_id":"i","schema_name":"s","payload":{"label":"a"}}`+"\n"), 0o600))
	b.succeeds(b.ends(done))
}

// quiet sees that the run does not end while the server is spoken to once more.
func (b *slurmBench) quiet(calls int) {
	b.Helper()
	wait(b, "another heartbeat", func() (bool, string) { return b.desk.Calls(agenttest.CallHeartbeat) > calls, "" })
	if f := b.desk.Finished(); f != nil {
		b.Fatalf("the run ended: %+v", f)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// T18: a squeue that does not know our options.
func TestSlurmOldSqueue(t *testing.T) {
	b := newSlurmBench(t, nil, sleeper...)
	b.wrap("squeue", `[ "$1 $2 $4" = "-h -j -o" ] || { echo "squeue: unrecognized option '$2'" >&2; exit 1; }
exec $real -h -j $3 -o "$5"`)
	b.wrap("scancel", `for a in "$@"; do [ "$a" != --full ] || { echo "scancel: unrecognized option '--full'" >&2; exit 1; }; done; exec $real "$@"`)
	done := b.start()
	b.says("ready")
	b.desk.Cancel(20 * time.Second)
	if f := b.ends(done); !f.Cancelled || f.ExitCode == nil || *f.ExitCode != 4 {
		t.Errorf("%+v", f)
	}
}

// T19: fifty jobs of fifty agents cost one squeue a tick.
func TestSlurmOneSqueueForAll(t *testing.T) {
	b := newSlurmBench(t, nil)
	// It counts, and lists what nobody has submitted.
	b.wrap("squeue", "echo call >>"+b.bin+"/squeue.calls\nfor i in $(seq 1001 1050); do echo \"$i|PENDING|Priority||N/A|potato-x|/x\"; done; for i in $(seq 1 3000); do echo \"$i|PENDING|Priority||N/A|other|/x\"; done")
	type one struct {
		launcher *agent.Sbatch
		handle   api.Handle
		text     string
	}
	var all []*one
	for i := range 50 {
		dir := filepath.Join(t.TempDir(), "jobs", fmt.Sprint(i))
		must(t, os.MkdirAll(dir, 0o700))
		l := agent.NewSbatch(b.settings)
		t.Cleanup(l.Close)
		all = append(all, &one{launcher: l, handle: api.Handle{Dir: dir, Marker: "m", SlurmJob: fmt.Sprint(1001 + i)}})
	}
	began := time.Now()
	wait(t, "all to hear of their jobs", func() (bool, string) {
		heard := 0
		for _, o := range all {
			st, err := o.launcher.State(t.Context(), o.handle)
			must(t, err)
			for _, e := range st.Says {
				o.text += e.StepText()
			}
			if strings.Contains(o.text, "SLURM job "+o.handle.SlurmJob+": PENDING (Priority)") {
				heard++
			}
		}
		return heard == len(all) && time.Since(began) > 4*time.Second, fmt.Sprint(heard)
	})
	ticks := int(time.Since(began)/time.Second) + 2 // what they first ask for may be a tick of its own
	if n := b.counted("squeue"); n < 3 || n > ticks {
		t.Errorf("%d calls of squeue in %v", n, time.Since(began))
	}
}
