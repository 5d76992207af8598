package agent_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"potato/agent"
)

// T01, T02: what sbatch prints, and what site wrappers make of it.
func TestParseSubmitted(t *testing.T) {
	t.Parallel()
	for stdout, want := range map[string]string{
		"4242\n": "4242", "4242;alpha\n": "4242 alpha", "4242\r\n": "4242", "Submitted batch job 4242\n": "4242",
		"Submitted batch job 4242 on cluster alpha\n": "4242 alpha", "no partition given, using default\n\n4242;alpha\n": "4242 alpha",
		"": "", "Welcome\n": "", "4242 jobs wait\n": "", "0\n": "", "-1\n": "", "4242;\n": "",
	} {
		id, cluster, ok := agent.ParseSubmitted(stdout)
		if got := strings.TrimSpace(id + " " + cluster); got != want || ok != (want != "") {
			t.Errorf("%q: %q %v, want %q", stdout, got, ok, want)
		}
	}
}

// Lines of a real squeue: reasons with commas and blanks, folders with bars, other people's job arrays, clusters' names.
func TestParseQueue(t *testing.T) {
	t.Parallel()
	got := agent.QueueStates(`CLUSTER: alpha
16|PENDING|ReqNodeNotAvail, UnavailableNodes:node04||N/A|x|/home/a|b
9|RUNNING|None|node[01-02]|2026-11-29T19:22:58|x|/home/a
17_3|RUNNING|None|node01|N/A|x|/home/a
slurm_load_jobs error: Socket timed out
7|COMPLETED|None
`)
	want := []string{"16 PENDING ReqNodeNotAvail, UnavailableNodes:node04  /home/a|b", "9 RUNNING None node[01-02] /home/a", "7 COMPLETED None  "}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// T13 and RIG's table of ends, those that the cluster of the tests cannot bring about with them.
func TestWhySlurmJobsEnd(t *testing.T) {
	t.Parallel()
	code := func(n int) *agent.Exit { return &agent.Exit{Code: &n} }
	for name, c := range map[string]struct {
		scontrol, out string
		exit          *agent.Exit
		signal        string
		code, text    string
	}{
		"OUT_OF_MEMORY and 0:0":   {scontrol: "JobState=OUT_OF_MEMORY ExitCode=0:0", code: "out_of_memory", text: "ran out of memory"},
		"OUT_OF_MEMORY and 0:125": {scontrol: "JobState=OUT_OF_MEMORY ExitCode=0:125", exit: &agent.Exit{Signal: "KILL"}, code: "out_of_memory"},
		"FAILED 0:9 and a line":   {scontrol: "JobState=FAILED ExitCode=0:9", out: "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=1.batch.", code: "out_of_memory"},
		"FAILED 137 and a line":   {scontrol: "JobState=FAILED ExitCode=137:0", exit: code(137), out: "slurmstepd: error: Detected 1 oom_kill event in StepId=1.batch.", code: "out_of_memory"},
		"a crash beside the line": {scontrol: "JobState=FAILED ExitCode=139:0", exit: &agent.Exit{Signal: "SEGV"}, out: "Detected 1 oom_kill event in StepId=1.batch."},
		"TIMEOUT":                 {scontrol: "JobState=TIMEOUT ExitCode=0:15 TimeLimit=04:00:00", exit: &agent.Exit{Reason: agent.ReasonTerminated}, code: "slurm_time_limit", text: "SLURM job 4242 ended before the worker finished: it reached its time limit"},
		"no scontrol, slurm.out":  {out: "slurmstepd-node02: error: *** JOB 48 ON node02 CANCELLED AT 2026-11-29T19:25:57 DUE TO TIME LIMIT ***", exit: code(143), code: "slurm_time_limit"},
		"preempted, by slurm.out": {out: "*** JOB 38 ON node02 CANCELLED AT 2026-11-29T19:24:03 DUE TO PREEMPTION ***", code: "slurm_preempted"},
		"node, by slurm.out":      {out: "*** JOB 34 ON node04 CANCELLED AT 1 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***", code: "slurm_node_failure"},
		"an earlier attempt's":    {scontrol: "JobState=FAILED ExitCode=137:0", exit: &agent.Exit{Signal: "KILL"}, out: "DUE TO PREEMPTION\npotato: attempt 2 on node01\nhello\n"},
		"BOOT_FAIL":               {scontrol: "JobState=BOOT_FAIL NodeList=node04", code: "slurm_node_failure", text: "its node node04 failed"},
		"0:15, a signal by hand":  {scontrol: "JobState=FAILED ExitCode=0:15", out: "*** JOB 17 ON node03 CANCELLED AT 2026-11-29T19:25:57 ***", code: "slurm_cancelled", text: "told to stop by a signal"},
		"signal before the limit": {scontrol: "JobState=COMPLETED ExitCode=0:0", exit: code(4), signal: "B:TERM@60", code: "slurm_time_limit"},
		"launch failure":          {scontrol: "JobState=FAILED ExitCode=0:53", code: "killed", text: "signal 53"},
		"not a word":              {scontrol: "JobState=COMPLETED ExitCode=0:0", code: "killed", text: "left no exit_code"},
		"a crash":                 {scontrol: "JobState=FAILED ExitCode=139:0", exit: &agent.Exit{Signal: "SEGV"}},
	} {
		dir := t.TempDir()
		if c.out != "" {
			if err := os.WriteFile(filepath.Join(dir, "slurm.out"), []byte(c.out), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, text, hint := agent.WhyEnded(c.scontrol, dir, c.exit, agent.SlurmConfig{Signal: c.signal})
		if got != c.code || !strings.Contains(text, c.text) || (got != "") != (hint != "") {
			t.Errorf("%s: %s: %s (%s), want %s: %s", name, got, text, hint, c.code, c.text)
		}
	}
}

// T19: a slow scheduler is asked less often, up to once a minute, and not by all in step.
func TestSlowSchedulersAreAskedLess(t *testing.T) {
	t.Parallel()
	for took, want := range map[time.Duration]time.Duration{
		0: 10 * time.Second, 500 * time.Millisecond: 10 * time.Second, 3 * time.Second: 30 * time.Second, time.Minute: time.Minute,
	} {
		if got := agent.Tick(10*time.Second, took); got < want || got > want*11/10 {
			t.Errorf("after %v: %v, want about %v", took, got, want)
		}
	}
	if one, other := agent.Tick(time.Hour, 0), agent.Tick(time.Hour, 0); one == other {
		t.Error("two agents ask in step")
	}
}

func FuzzSlurmAnswers(f *testing.F) {
	f.Add("16|PENDING|Resources||2026-11-29T19:34:00|x|/home/a\n")
	f.Add("CLUSTER: alpha\n4242;alpha\n")
	f.Add("JobId=4 JobName=oom.sh JobState=OUT_OF_MEMORY Reason=OutOfMemory ExitCode=0:125")
	f.Add("sbatch: error: Batch job submission failed: Unspecified error")
	f.Fuzz(func(t *testing.T, text string) {
		for _, row := range agent.QueueStates(text) {
			if row[0] < '0' || row[0] > '9' {
				t.Errorf("a job is %q", row)
			}
		}
		if id, _, ok := agent.ParseSubmitted(text); ok != (id != "") {
			t.Errorf("id %q, %v", id, ok)
		}
		if state := agent.ParseJob(text); strings.ContainsAny(state, " \n") {
			t.Errorf("state %q", state)
		}
		if e := agent.Refusal(text); e.Error() == "" || len(e.Error()) > 5000 {
			t.Errorf("a refusal of %d bytes", len(e.Error()))
		}
	})
}
