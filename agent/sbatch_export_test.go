package agent

import (
	"time"

	"potato/api"
)

// ParseSubmitted is what the standard output of sbatch says.
var ParseSubmitted = parseSubmitted

// WhyEnded is why a job with the id 4242 ended, by what scontrol prints, the end of slurm.out in dir and its exit; code is
// empty when the exit says it all.
func WhyEnded(scontrol, dir string, exit *Exit, c SlurmConfig) (code, text, hint string) {
	j := newSlurmJob(&Sbatch{o: SbatchOptions{Config: c}}, api.Handle{Dir: dir, SlurmJob: "4242"})
	j.last = parseJob(scontrol)
	j.attempt = attemptNote{job: "4242", number: 1}
	if exit != nil {
		j.exit, j.exitSeen = *exit, j.since
	}
	e := j.why()
	if e == nil {
		return "", "", ""
	}
	return e.Code, e.Message, e.Hint
}

// QueueStates are the ids and states that lines of squeue list.
func QueueStates(text string) (found []string) {
	for _, r := range parseQueue(text) {
		found = append(found, r.ID+" "+r.State+" "+r.Reason+" "+r.Nodes+" "+r.Dir)
	}
	return found
}

// Tick is the time between two questions of squeue after one that took so long.
func Tick(interval, took time.Duration) time.Duration {
	return newSqueue("", slurmCommands{}, interval, time.Second).tick(took)
}

// ParseJob is the state that scontrol -o show job prints; empty: none.
func ParseJob(text string) string { return parseJob(text).state }

// Refusal is what an sbatch that said no becomes.
func Refusal(stderr string) error { return refusal(slurmAnswer{stderr: stderr, code: 1}) }
