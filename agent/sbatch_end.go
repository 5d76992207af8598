package agent

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"potato/api"
)

// slurmEnd is what scontrol says of a job.
type slurmEnd struct {
	known   bool // there was an answer
	purged  bool // and it was that the scheduler does not know the job any more
	state   string
	reason  string
	nodes   string
	signal  int // of ExitCode=code:signal
	runTime string
	fields  map[string]string
}

var (
	waitingStates = []string{"PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
	overStates    = []string{"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "BOOT_FAIL", "PREEMPTED", "OUT_OF_MEMORY", "DEADLINE", "LAUNCH_FAILED", "RECONFIG_FAIL"}
)

func isWaiting(state string) bool   { return slices.Contains(waitingStates, state) }
func isOverState(state string) bool { return slices.Contains(overStates, state) }

// mayRequeue reports ends after which the scheduler may start the job again under its id.
func mayRequeue(state string) bool {
	return slices.Contains([]string{"PREEMPTED", "NODE_FAIL", "BOOT_FAIL", "LAUNCH_FAILED", "RECONFIG_FAIL"}, state)
}

// inspect asks scontrol for one job.
func (s *Sbatch) inspect(ctx context.Context, cluster, id string) slurmEnd {
	if id == "" {
		return slurmEnd{}
	}
	a, err := s.cmd.runOn(ctx, cluster, "scontrol", "-o", "show", "job", id)
	if err != nil {
		return slurmEnd{}
	}
	if a.code != 0 {
		return slurmEnd{purged: strings.Contains(a.stderr, "Invalid job id")}
	}
	return parseJob(a.stdout)
}

// parseJob reads the line of scontrol -o show job. Values may hold blanks; those that are looked for do not.
func parseJob(text string) slurmEnd {
	fields := map[string]string{}
	for _, word := range strings.Fields(text) {
		if name, value, ok := strings.Cut(word, "="); ok {
			if _, seen := fields[name]; !seen {
				fields[name] = value
			}
		}
	}
	e := slurmEnd{known: fields["JobState"] != "", state: fields["JobState"], reason: fields["Reason"], nodes: known(fields["NodeList"]), runTime: fields["RunTime"], fields: fields}
	_, signal, _ := strings.Cut(fields["ExitCode"], ":")
	e.signal, _ = strconv.Atoi(signal)
	return e
}

func endedBefore(code, id, format string, args ...any) *api.Error {
	return api.Unavailablef(code, "SLURM job "+id+" ended before the worker finished: "+format, args...)
}

// why says why the scheduler, or somebody through it, ended the job; nil when the worker's own end says it.
func (j *slurmJob) why() *api.Error {
	out := slurmTail(j.dir)
	e, state := j.last, j.last.state
	exit, exited := j.exitOfThis()
	told := exited && wasTold(exit)
	switch {
	case state == "TIMEOUT", strings.Contains(out, "DUE TO TIME LIMIT"):
		return j.timeLimit()
	case state == "DEADLINE":
		return endedBefore("slurm_deadline", j.id, "its deadline passed").WithHint("set a later `deadline`, or lower `time` so that it fits before it")
	case state == "OUT_OF_MEMORY", containsAny(out, "oom-kill event", "oom_kill event", "exceeded memory limit", "Exceeded job memory limit") && killedBy(e, exit, exited):
		return endedBefore("out_of_memory", j.id, "it ran out of memory").WithHint("ask for more memory with `mem`, or train on fewer items")
	case state == "NODE_FAIL", state == "BOOT_FAIL", state == "LAUNCH_FAILED", state == "RECONFIG_FAIL", strings.Contains(out, "DUE TO NODE FAILURE"):
		node := "its node"
		if e.nodes != "" {
			node = "its node " + e.nodes
		}
		return endedBefore("slurm_node_failure", j.id, "%s failed", node).
			WithHint("start the run again; with `requeue: true` the scheduler does that by itself, and the run goes on from its last checkpoint")
	case state == "PREEMPTED", strings.Contains(out, "DUE TO PREEMPTION"):
		return endedBefore("slurm_preempted", j.id, "it was preempted by a job of higher priority").
			WithHint("start the run again; `requeue: true` lets it go on later, where the partition allows that; another `partition` or `qos` may not be preempted")
	case state == "CANCELLED":
		return endedBefore("slurm_cancelled", j.id, "it was cancelled outside of this program").
			WithHint("somebody ran scancel, or the cluster's admins ended it; ask them if it was not you")
	case told && j.s.o.Config.Signal != "":
		return j.timeLimit()
	case told || e.signal != 0 && strings.Contains(out, "CANCELLED AT"):
		return endedBefore("slurm_cancelled", j.id, "it was told to stop by a signal from outside of this program").
			WithHint("somebody ran scancel with a signal, or the cluster's admins ended it; ask them if it was not you")
	case exited:
		return nil
	case e.purged:
		return endedBefore("killed", j.id, "the scheduler does not know it any more, and it left no exit_code").
			WithHint("the scheduler forgets jobs after a while (MinJobAge); `keep_remote: true` keeps slurm.out, which may tell")
	case state == "FAILED" && j.attempt.job == "":
		return endedBefore("start_failed", j.id, "the compute node could not start it").
			WithHint("see that `remote_dir` is on storage that the compute nodes share%s", quoted(out))
	case e.signal != 0:
		return endedBefore("killed", j.id, "it was killed by signal %d", e.signal).WithHint("see slurm.out%s", quoted(out))
	}
	return endedBefore("killed", j.id, "it left no exit_code (%s)", e.state).WithHint("`keep_remote: true` keeps slurm.out%s", quoted(out))
}

func (j *slurmJob) timeLimit() *api.Error {
	hint := "raise `time`, or train on fewer items; `keep_remote: true` keeps `slurm.out`"
	if limit := j.last.fields["TimeLimit"]; limit != "" {
		hint = "it was " + limit + ": " + hint
	}
	return endedBefore("slurm_time_limit", j.id, "it reached its time limit").WithHint("%s", hint)
}

func killedBy(e slurmEnd, exit Exit, exited bool) bool {
	return e.signal == 9 || exited && (exit.Signal == "KILL" || exit.Code != nil && *exit.Code == 137)
}

func quoted(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return ": " + cut(last, 300)
	}
	return ""
}

// slurmTail is the end of slurm.out, which the scheduler and job.sh write. What an earlier attempt left is cut off.
func slurmTail(dir string) string {
	f, err := os.Open(filepath.Join(dir, slurmOut))
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // only read from
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	at := max(0, info.Size()-tailBytes)
	buf := make([]byte, info.Size()-at)
	n, err := readAt(f, buf, at)
	if err != nil {
		return ""
	}
	buf = buf[:n]
	if i := bytes.LastIndex(buf, []byte(attemptLine)); i >= 0 {
		buf = buf[i:]
	}
	return clean(buf)
}

// attemptLine begins the output of an attempt that goes on after another.
const attemptLine = "potato: attempt "
