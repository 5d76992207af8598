package agent_test

import (
	"strings"
	"testing"
	"time"

	"potato/agent"
	"potato/agent/agenttest"
)

// sleeper is a worker that is just training.
var sleeper = []agenttest.Step{{"on_term", "report"}, {"status", "ready"}, {"sleep", 600}}

func TestSlurmTimeLimit(t *testing.T) {
	b := newSlurmBench(t, nil, sleeper...)
	done := b.start()
	b.says("ready")
	// As root, or the scheduler would have us wait for a minute.
	b.scontrol("update", "jobid="+b.id(), "EndTime="+time.Now().Add(2*time.Second).Format("2006-01-02T15:04:05"))
	b.blames(b.ends(done), "slurm_time_limit", "SLURM job "+b.id()+" ended before the worker finished: it reached its time limit", "raise `time`")
	b.gone()
}

func TestSlurmNodeFailure(t *testing.T) {
	no := false
	b := newSlurmBench(t, func(c *agent.SlurmConfig) { c.Exclude, c.NodeList, c.Requeue = "", failingNode, &no }, sleeper...)
	done := b.start()
	b.says("ready")
	b.scontrol("update", "nodename="+failingNode, "state=down", "reason=pulled")
	b.blames(b.ends(done), "slurm_node_failure", "SLURM job "+b.id()+" ended before the worker finished: its node "+failingNode+" failed", "requeue: true")
}

// preempt starts a job that takes the shared node.
func (b *slurmBench) preempt(node string) {
	b.Helper()
	if _, err := b.cluster.Command("sbatch", "-p", "short", "-w", node, "-c", "4", "-t", "1", "-o", "/dev/null", "--wrap", "sleep 1"); err != nil {
		b.Fatal(err)
	}
}

func TestSlurmPreempted(t *testing.T) {
	b := newSlurmBench(t, func(c *agent.SlurmConfig) {
		c.Exclude, c.NodeList, c.Partition, c.CPUsPerTask = "", lostNode, "lowc", 4
	}, sleeper...)
	done := b.start()
	b.says("ready")
	b.preempt(lostNode)
	b.blames(b.ends(done), "slurm_preempted", "SLURM job "+b.id()+" ended before the worker finished: it was preempted by a job of higher priority", "requeue: true")
}

func TestSlurmOutOfMemory(t *testing.T) {
	b := newSlurmBench(t, func(c *agent.SlurmConfig) { c.Mem = "60M" }, agenttest.Step{"alloc", 300}, agenttest.Step{"sleep", 600})
	b.blames(b.ends(b.start()), "out_of_memory", "SLURM job "+b.id()+" ended before the worker finished: it ran out of memory", "`mem`")
}

func TestSlurmCancelledOutside(t *testing.T) {
	b := newSlurmBench(t, nil, sleeper...)
	done := b.start()
	b.says("ready")
	b.command("scancel", b.id())
	b.blames(b.ends(done), "slurm_cancelled", "SLURM job "+b.id()+" ended before the worker finished: it was cancelled outside of this program", "scancel")
}

// Q1: scontrol is used where it exists; squeue tells enough without it.
func TestSlurmWithoutScontrol(t *testing.T) {
	b := newSlurmBench(t, nil, sleeper...)
	b.wrap("scontrol", "echo 'scontrol: command not found' >&2; exit 127")
	done := b.start()
	b.says("ready")
	b.command("scancel", b.id())
	b.blames(b.ends(done), "slurm_cancelled", "SLURM job "+b.id()+" ended before the worker finished: it was cancelled outside of this program", "scancel")
}

func TestSlurmCancelledOutsideWhilePending(t *testing.T) {
	b := newSlurmBench(t, func(c *agent.SlurmConfig) { c.SbatchArgs = []string{"--begin=now+600"} }, sleeper...)
	done := b.start()
	b.says("PENDING")
	b.command("scancel", b.id())
	b.blames(b.ends(done), "slurm_cancelled", "SLURM job "+b.id()+" ended before the worker finished: it was cancelled outside of this program", "scancel")
}

// T16: a signal for the batch shell alone reaches the worker; before the time limit it is what `signal` asks for.
func TestSlurmSignalForTheShell(t *testing.T) {
	for name, c := range map[string]struct{ signal, code string }{
		"from outside":          {"", "slurm_cancelled"},
		"before the time limit": {"B:TERM@60", "slurm_time_limit"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newSlurmBench(t, func(s *agent.SlurmConfig) { s.Signal = c.signal }, sleeper...)
			done := b.start()
			b.says("ready")
			b.command("scancel", "--batch", "--signal=TERM", b.id())
			f := b.ends(done)
			b.blames(f, c.code, "SLURM job "+b.id()+" ended before the worker finished", "")
			if f.ExitCode == nil || *f.ExitCode != 4 {
				t.Errorf("exit code %v, want the worker's own after TERM", f.ExitCode)
			}
		})
	}
}

// T11: held is not waiting; who may release it is told how.
func TestSlurmHeld(t *testing.T) {
	b := newSlurmBench(t, func(c *agent.SlurmConfig) { c.SbatchArgs = []string{"--hold"} }, sleeper...)
	b.settings.HeldLooks = 2
	b.launch(b.settings)
	f := b.ends(b.start())
	b.blames(f, "slurm_held", "SLURM job "+b.id()+" ended before the worker finished: it was held (JobHeldUser)", "scontrol release "+b.id())
	if log := strings.Join(b.log(), "\n"); !strings.Contains(log, "SLURM job "+b.id()+": PENDING (JobHeldUser)") || !strings.Contains(log, "scontrol release "+b.id()) {
		t.Errorf("the log:\n%s", log)
	}
	b.until("CANCELLED")
}

func TestSlurmHeldAndReleased(t *testing.T) {
	b := newSlurmBench(t, func(c *agent.SlurmConfig) { c.SbatchArgs = []string{"--hold"} }, agenttest.Good(1)...)
	done := b.start()
	b.says("JobHeldUser")
	b.scontrol("release", b.id())
	if f := b.ends(done); f.ErrorCode != "" {
		t.Errorf("%+v", f)
	}
}

func TestSlurmDeadline(t *testing.T) {
	b := newSlurmBench(t, func(c *agent.SlurmConfig) { c.Deadline = "now+1" }, sleeper...)
	b.blames(b.ends(b.start()), "slurm_deadline", "SLURM job "+b.id()+" ended before the worker finished: its deadline passed", "`deadline`")
}

// T12: a request that never starts is not waited for.
func TestSlurmNeverAsAsked(t *testing.T) {
	b := newSlurmBench(t, func(c *agent.SlurmConfig) { c.Time = "2:00:00" }, sleeper...)
	b.settings.NeverLooks = 2
	b.launch(b.settings)
	b.blames(b.ends(b.start()), "slurm_refused", "SLURM job "+b.id()+" ended before the worker finished: it can never start as it was asked for (PartitionTimeLimit)", "`time`")
	b.until("CANCELLED")
}

func TestSlurmQueueTimeout(t *testing.T) {
	b := newSlurmBench(t, func(c *agent.SlurmConfig) { c.SbatchArgs, c.QueueTimeoutS = []string{"--begin=now+600"}, 1 }, sleeper...)
	b.blames(b.ends(b.start()), "queue_timeout", "SLURM job "+b.id()+" has waited for", "queue_timeout_s")
	b.until("CANCELLED")
}

// Every refusal has the scheduler's own words and what to do.
func TestSlurmRefusesTheJob(t *testing.T) {
	for name, c := range map[string]struct {
		change     func(c *agent.SlurmConfig)
		text, hint string
	}{
		"partition":  {func(c *agent.SlurmConfig) { c.Partition = "nosuch" }, "SLURM refused the job: invalid partition specified: nosuch; Invalid partition name specified", "sinfo -s"},
		"constraint": {func(c *agent.SlurmConfig) { c.Constraint = "v100" }, "Invalid feature specification", "constraint"},
		"gres":       {func(c *agent.SlurmConfig) { c.GRES = "gpu:5" }, "Requested node configuration is not available", "gres"},
		"time":       {func(c *agent.SlurmConfig) { c.Time = "nonsense" }, "Invalid --time specification", "`time`"},
		"nodelist":   {func(c *agent.SlurmConfig) { c.NodeList = "node77" }, "Invalid node name specified", "`nodelist`"},
		"option":     {func(c *agent.SlurmConfig) { c.SbatchArgs = []string{"--bogus"} }, "unrecognized option '--bogus'", "sbatch_args"},
		"site":       {func(c *agent.SlurmConfig) {}, "SLURM refused the job: You have no hours left on account bad; ask help@hpc.example; Unspecified error", "the cluster's own"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newSlurmBench(t, c.change, sleeper...)
			if name == "site" {
				b.wrap("sbatch", "echo 'sbatch: error: You have no hours left on account bad; ask help@hpc.example\nsbatch: error: Batch job submission failed: Unspecified error' >&2; exit 1")
			}
			if name == "silent" {
				b.wrap("sbatch", "exit 1")
			}
			b.blames(b.ends(b.start()), "slurm_refused", c.text, c.hint)
			if left := b.queue("%T"); left != "" && left != "FAILED" {
				t.Errorf("a job is %s", left)
			}
		})
	}
}

func TestSlurmIsMissing(t *testing.T) {
	b := newSlurmBench(t, func(c *agent.SlurmConfig) { c.Env["PATH"] = "/nowhere" }, sleeper...)
	b.blames(b.ends(b.start()), "slurm_missing", "has no sbatch on PATH, so it cannot submit jobs", "set PATH under `env`")
}

// T15, Q8: the line that failed is quoted.
func TestSlurmPreludeFails(t *testing.T) {
	for line, code := range map[string]string{
		`module load "cuda/99"`: "127", `false`: "1", `exit 3`: "1", `echo "it's" (`: "2", `test "$(echo '"')" = x`: "1",
	} {
		t.Run(line, func(t *testing.T) {
			b := newSlurmBench(t, func(c *agent.SlurmConfig) { c.Prelude = []string{"true", line, "touch never"} }, sleeper...)
			b.blames(b.ends(b.start()), "prelude_failed", "The prelude line `"+line+"` failed with exit code "+code, "`prelude`")
			if exists(b.o.Dir + "/never") {
				t.Error("the lines after it ran")
			}
		})
	}
}

func TestSlurmPythonIsMissing(t *testing.T) {
	b := newSlurmBench(t, func(c *agent.SlurmConfig) { c.JobPython = "/no/python3.9" }, sleeper...)
	b.blames(b.ends(b.start()), "python_missing", "/no/python3.9 was not found on node0", "job_python")
}
