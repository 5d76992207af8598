package agent

import (
	"context"
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

const (
	lookEvery  = 250 * time.Millisecond // how often the last answer of the queue is looked at
	settleTime = 5 * time.Second        // an sbatch of an agent that died may still be on its way for so long
	absences   = 3                      // answers in a row without the job before it is taken for gone (T04)
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

// step says how the job stands. A state of "pending" means that it waits and nothing runs: that time is not the run's (C3).
func (j *slurmJob) step(state, text string) {
	if text == j.text {
		return
	}
	j.text = text
	j.says = append(j.says, api.Event{V: 1, Event: api.EventStatus, T: now(), State: state, Step: text})
}

func (j *slurmJob) submitted(id, cluster string, flags []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.id, j.cluster, j.since, j.pending = id, cluster, time.Now(), time.Now()
	j.say("info", "Submitted SLURM job %s: %s", id, strings.Join(append([]string{"sbatch"}, flags...), " "))
	j.step("pending", fmt.Sprintf("SLURM job %s: submitted", id))
}

func (j *slurmJob) unclear(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.refused = err
	j.say("warning", "It is not clear whether SLURM has the job, so it is looked for by its name, %s: %v", j.name, err)
	j.step("pending", "waiting for the scheduler to say whether it has the job")
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

// look asks the scheduler, when it is time to, and takes in what it says.
func (j *slurmJob) look(ctx context.Context) {
	j.mu.Lock()
	var after time.Time
	if j.hurried() {
		after = time.Now()
	}
	cluster, id := j.askCluster(), j.id
	j.mu.Unlock()
	a := j.s.queue.ask(ctx, cluster, after, id)

	j.mu.Lock()
	j.judge(a)
	gone, give := !j.gone.IsZero(), j.given != nil && j.killed.IsZero()
	id = j.id
	j.mu.Unlock()

	if give {
		err := j.s.scancel(ctx, cluster, id)
		j.mu.Lock()
		if err == nil {
			j.killed = time.Now()
		}
		j.mu.Unlock()
	}
	var end slurmEnd
	if gone {
		end = j.s.inspect(ctx, cluster, id)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if gone && j.id == id && ctx.Err() == nil {
		j.settle(end)
	}
	if _, exited := j.exitOfThis(); exited && j.answered.Before(j.exitSeen) && time.Since(j.exitSeen) > j.s.o.LateFiles && !j.over() {
		// The worker has ended, and nobody says why.
		j.ended, j.cause = true, j.why()
	}
	j.looking, j.nextLook = false, time.Now().Add(min(lookEvery, j.s.o.Quick))
}

// hurried reports whether the next tick is too long to wait for.
func (j *slurmJob) hurried() bool {
	_, exited := j.exitOfThis()
	return j.id == "" || !j.stopping.IsZero() || exited || !j.gone.IsZero() || j.missing > 0 || j.row.ID == "" || j.given != nil
}

// judge takes an answer of the queue into account. No answer changes nothing (T03).
func (j *slurmJob) judge(a queueAnswer) {
	if !a.Silent.IsZero() && time.Since(a.Silent) > 2*j.s.o.Config.pollInterval() {
		state := "running"
		if !j.running() {
			state = "pending"
		}
		j.step(state, j.stateText("", "the scheduler has not answered since "+a.Silent.Format("15:04:05"), ""))
	}
	if a.Answered.Before(j.since) || !a.Answered.After(j.answered) {
		return
	}
	j.answered = a.Answered
	if j.id == "" {
		j.find(a)
		return
	}
	row, listed := a.row(j.id)
	switch {
	case !listed:
		if j.missing++; j.missing >= absences && j.gone.IsZero() {
			j.gone = time.Now()
		}
	case isOverState(row.State):
		j.row, j.missing = row, 0
		if j.gone.IsZero() {
			j.gone = time.Now()
		}
	default:
		j.row, j.missing, j.gone = row, 0, time.Time{}
		j.live(a.Answered)
	}
}

// find looks for a job whose id is not known. That there is none is believed only when the scheduler says so twice, and
// no sbatch can be on its way any more.
func (j *slurmJob) find(a queueAnswer) {
	rows := j.named(a)
	if len(rows) == 0 {
		if a.Answered.Sub(j.since) > min(settleTime, 5*j.s.o.Quick) {
			if j.missing++; j.missing > 1 {
				j.unstarted = true
			}
		}
		return
	}
	best := rows[0]
	for _, r := range rows[1:] {
		if isOverState(best.State) && !isOverState(r.State) || isOverState(best.State) == isOverState(r.State) && older(r.ID, best.ID) {
			best = r
		}
	}
	j.id, j.missing = best.ID, 0
	if best.Cluster != "" {
		j.cluster = best.Cluster
	}
	j.say("info", "Submitted SLURM job %s, which was found by its name, %s", j.id, j.name)
	if len(rows) > 1 {
		j.say("warning", "%d SLURM jobs have that name; the one that starts first trains, and the others end themselves", len(rows))
	}
	j.answered = time.Time{} // the same answer tells its state
	j.judge(a)
}

func older(a, b string) bool { return len(a) < len(b) || len(a) == len(b) && a < b }

// live is a job that waits or runs.
func (j *slurmJob) live(answered time.Time) {
	r := j.row
	if !isWaiting(r.State) {
		j.pending, j.held, j.never = time.Time{}, 0, 0
		j.step("running", j.stateText(r.State, "", r.Nodes))
		return
	}
	if j.attemptSeen.After(answered) { // it has started meanwhile
		return
	}
	if j.pending.IsZero() {
		j.pending = time.Now()
	}
	j.step("pending", j.stateText(r.State, r.Reason, ""))
	why := explainPending(r.Reason, j.id)
	if j.explained != r.Reason && r.Reason != "" && r.Reason != "None" {
		j.explained = r.Reason
		level := "info"
		if why.Verdict != pendingWait {
			level = "warning"
		}
		j.say(level, "%s: %s", why.Words, why.Hint)
	}
	if r.Start != "" && j.expected == "" {
		j.expected = r.Start
		j.say("info", "The scheduler expects to start SLURM job %s at %s", j.id, strings.Replace(r.Start, "T", " ", 1))
	}
	j.patience(r, why)
}

// patience gives up a job that will not start.
func (j *slurmJob) patience(r queueRow, why pendingReason) {
	j.held, j.never = next(j.held, why.Verdict == pendingAct), next(j.never, why.Verdict == pendingNever)
	waited := time.Since(j.pending)
	switch limit := seconds(j.s.o.Config.QueueTimeoutS); {
	case j.given != nil || !j.stopping.IsZero():
	case j.held >= j.s.o.HeldLooks:
		j.giveUp(endedBefore("slurm_held", j.id, "it was held (%s)", r.Reason).WithHint("%s: %s", why.Words, why.Hint))
	case j.never >= j.s.o.NeverLooks:
		j.giveUp(endedBefore("slurm_refused", j.id, "it can never start as it was asked for (%s)", r.Reason).WithHint("%s: %s", why.Words, why.Hint))
	case limit > 0 && waited > limit:
		j.giveUp(api.Unavailablef("queue_timeout", "SLURM job %s has waited for %.0f s in the scheduler's queue (%s)", j.id, waited.Seconds(), r.Reason).
			WithHint("raise `queue_timeout_s`, or ask for less: a shorter `time` often starts sooner"))
	}
}

func next(n int, again bool) int {
	if again {
		return n + 1
	}
	return 0
}

func (j *slurmJob) giveUp(why *api.Error) { j.given, j.nextLook = why, time.Time{} }

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

// settle decides whether a job that the scheduler does not have any more is over. Its files may come late (T08), and it
// may be requeued (T10).
func (j *slurmJob) settle(end slurmEnd) {
	switch {
	case end.known && !isOverState(end.state): // squeue was mistaken
		j.gone, j.missing = time.Time{}, 0
		return
	case end.known || end.purged:
		j.last = end
	case j.last.state == "" && j.row.ID == j.id && isOverState(j.row.State): // no scontrol here: squeue has said enough
		j.last = slurmEnd{known: true, state: j.row.State, reason: j.row.Reason, nodes: j.row.Nodes}
	}
	if j.gone.IsZero() || !j.last.known && !j.last.purged && j.exitSeen.IsZero() {
		return // nobody has said that it ended
	}
	_, exited := j.exitOfThis()
	grace := j.s.o.LateFiles
	switch state := j.last.state; {
	case j.given != nil:
		grace = 0
	case !j.stopping.IsZero():
		grace = 0
	case mayRequeue(state):
		grace = j.s.o.EndGrace
	case exited:
		grace = 0
	case state != "COMPLETED" && state != "FAILED" && j.last.known, state == "FAILED" && j.attempt.job == "":
		grace = j.s.o.EndGrace
	}
	if time.Since(j.gone) < grace {
		if j.last.known && grace == j.s.o.LateFiles {
			j.step("running", j.stateText(j.last.state, "waiting for its files", ""))
		}
		return
	}
	j.ended = true
	j.cause = j.given
	if j.cause == nil {
		j.cause = j.why()
	}
}
