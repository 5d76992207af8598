package agent

import (
	"context"
	"strings"
	"time"

	"potato/api"
)

const (
	lookEvery  = 250 * time.Millisecond // how often the last answer of the queue is looked at
	settleTime = 5 * time.Second        // an sbatch of an agent that died may still be on its way for so long
	absences   = 3                      // answers in a row without the job before it is taken for gone (T04)
)

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
			state = api.StatePending
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
	j.step(api.StatePending, j.stateText(r.State, r.Reason, ""))
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
	case j.last.signal != 0: // job.sh was killed, with whoever could have written a file
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
