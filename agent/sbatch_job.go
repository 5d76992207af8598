package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"potato/api"
)

// slurmJob is what a launcher knows of one job. All of it can be found again from the job directory and the scheduler,
// so another agent begins with nothing.
type slurmJob struct {
	s      *Sbatch
	dir    string
	marker string
	name   string

	mu       sync.Mutex
	looking  bool // a look is under way
	nextLook time.Time
	says     []api.Event // not heard yet
	text     string      // the state that was said last

	id, cluster string
	since       time.Time // answers that were asked for before say nothing of the job
	refused     error     // why sbatch gave no clear answer

	attempt     attemptNote
	attemptSeen time.Time
	exit        Exit
	exitSeen    time.Time // zero: there is none of this attempt

	answered    time.Time // the last answer taken into account
	row         queueRow
	missing     int       // answers in a row without it
	gone        time.Time // since when the scheduler does not have it any more
	last        slurmEnd  // what the scheduler says of its end
	pending     time.Time // since when it waits
	expected    string    // start that was told
	held, never int
	explained   string
	stopping    time.Time // since when we are ending it
	killed      time.Time
	given       *api.Error // why we gave it up
	cause       *api.Error
	ended       bool
	unstarted   bool
}

// attemptNote is what job.sh writes when it begins.
type attemptNote struct {
	job     string
	restart int
	number  int
	nodes   string
}

func newSlurmJob(s *Sbatch, h api.Handle) *slurmJob {
	j := &slurmJob{s: s, dir: h.Dir, marker: h.Marker, id: h.SlurmJob, cluster: h.SlurmCluster, since: time.Now()}
	var note submittedNote
	if readJSON(filepath.Join(h.Dir, submitFile), &note) {
		j.name = note.Name
	}
	return j
}

func (j *slurmJob) say(level, format string, args ...any) {
	j.says = append(j.says, logEvent(level, fmt.Sprintf(format, args...)))
}

// step says how the job stands. Time in which it is pending is not the run's own (C3).
func (j *slurmJob) step(state, text string) {
	if text == j.text {
		return
	}
	j.text = text
	j.says = append(j.says, api.Event{V: 1, Event: api.EventStatus, T: now(), State: state, Step: text})
}

func (j *slurmJob) submitted(s submission) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.id, j.cluster, j.since, j.pending = s.id, s.cluster, time.Now(), time.Now()
	j.say("info", "Submitted SLURM job %s: %s", s.id, strings.Join(append([]string{"sbatch"}, s.flags...), " "))
	if s.notes != "" {
		j.say("info", "sbatch says: %s", s.notes)
	}
	j.step(api.StatePending, fmt.Sprintf("SLURM job %s: submitted", s.id))
}

func (j *slurmJob) unclear(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.refused = err
	j.say("warning", "It is not clear whether SLURM has the job, so it is looked for by its name, %s: %v", j.name, err)
	j.step(api.StatePending, "waiting for the scheduler to say whether it has the job")
}

// readFiles takes in what the job itself has written.
func (j *slurmJob) readFiles() {
	if won, err := os.Readlink(filepath.Join(j.dir, claimFile)); err == nil && isJobID(won) && won != j.id {
		if j.id != "" {
			j.say("warning", "SLURM job %s has the run, and not %s", won, j.id)
		} else {
			j.say("info", "Submitted SLURM job %s, which was found by what it has written", won)
		}
		j.id, j.since = won, time.Now()
	}
	if j.id == "" {
		return
	}
	if n, ok := readAttempt(filepath.Join(j.dir, attemptFile)); ok && n.job == j.id && n != j.attempt {
		j.attempt, j.attemptSeen = n, time.Now()
		j.exit, j.exitSeen, j.pending = Exit{}, time.Time{}, time.Time{}
		j.step("running", j.stateText("RUNNING", "", n.nodes))
	}
	if e, ok := readExit(j.dir); ok && j.exitSeen.IsZero() && e.SlurmJob == j.id && e.Restart == j.attempt.restart {
		j.exit, j.exitSeen = e, time.Now()
	}
}

func readAttempt(path string) (n attemptNote, ok bool) {
	b, err := os.ReadFile(path)
	f := strings.Fields(string(b))
	if err != nil || len(f) != 4 {
		return n, false
	}
	n.job, n.nodes = f[0], f[3]
	n.restart, err = strconv.Atoi(f[1])
	if err == nil {
		n.number, err = strconv.Atoi(f[2])
	}
	return n, err == nil
}

// running reports whether the worker may run now, as far as is known.
func (j *slurmJob) running() bool {
	return j.attempt.job != "" && (!isWaiting(j.row.State) || j.attemptSeen.After(j.answered))
}

// exitOfThis is the exit of the present attempt. One that the scheduler may have brought about is not the last word: a
// time limit, a preemption and a requeue look the same from inside.
func (j *slurmJob) exitOfThis() (Exit, bool) {
	return j.exit, !j.exitSeen.IsZero() && !(isWaiting(j.row.State) && j.answered.After(j.exitSeen))
}

func askScheduler(e Exit) bool {
	return e.Signal != "" || e.Code != nil && *e.Code >= 128 && e.Reason == "" || e.Reason == ReasonOutOfMemory || wasTold(e)
}

const exitCancelled = 4 // of a worker that was told to stop, in the worker protocol

// wasTold reports whether the worker was told to stop. A scheduler signals all processes of a job, and the worker may have
// left before its shim has heard of it.
func wasTold(e Exit) bool {
	return e.Reason == ReasonTerminated || e.Reason == "" && e.Code != nil && *e.Code == exitCancelled
}

func (j *slurmJob) over() bool { return j.ended || j.unstarted }

// state is what State answers. What is new is said once.
func (j *slurmJob) state() State {
	if e, ok := j.exitOfThis(); ok && !j.over() && (!askScheduler(e) || !j.stopping.IsZero()) {
		j.ended = true
	}
	if j.id == "" && j.isVoid() {
		j.unstarted = true
	}
	st := State{Phase: StateRunning, Says: j.says}
	j.says = nil
	switch {
	case j.unstarted:
		st.Phase = StateUnstarted
		st.Cause = notSubmitted(j.refused)
	case j.ended:
		st.Phase, st.Exit, st.Cause, st.Late = StateEnded, j.exit, j.cause, j.s.o.LateFiles
	}
	return st
}

// isVoid reports that no job can have the run any more.
func (j *slurmJob) isVoid() bool {
	won, err := os.Readlink(filepath.Join(j.dir, claimFile))
	return err == nil && won == claimCancelled
}

func notSubmitted(err error) *api.Error {
	e := api.Unavailablef("start_failed", "SLURM did not take the job")
	if err != nil {
		e = api.Unavailablef("start_failed", "SLURM did not take the job: %v", err)
	}
	return e.WithHint("see with `sinfo` and `squeue` on the login node whether the scheduler answers, and start the run again")
}

// askCluster is the cluster that is asked: the one that sbatch named, else those that it was told.
func (j *slurmJob) askCluster() string {
	if j.cluster != "" {
		return j.cluster
	}
	args := j.s.o.Config.SbatchArgs
	for i, arg := range args {
		for _, flag := range []string{"--clusters=", "--cluster=", "-M="} {
			if value, ok := strings.CutPrefix(arg, flag); ok {
				return value
			}
		}
		if slices.Contains([]string{"-M", "--clusters", "--cluster"}, arg) && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}

// named are the jobs of this run, by their name and folder.
func (j *slurmJob) named(a queueAnswer) (rows []queueRow) {
	for _, r := range a.Rows {
		if j.name != "" && r.Name == j.name && r.Dir == j.dir {
			rows = append(rows, r)
		}
	}
	return rows
}

// stateText is how a job stands in one line.
func (j *slurmJob) stateText(state, reason, nodes string) string {
	text := "SLURM job " + j.id + ":"
	if j.id == "" {
		text = "SLURM:"
	}
	if state != "" {
		text += " " + state
	}
	switch {
	case state == "":
		text += " " + reason
	case reason != "" && reason != "None":
		text += " (" + reason + ")"
	case nodes != "":
		text += " on " + nodes
	}
	return text
}
