package agent

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"potato/api"
)

// unclearError means that sbatch did not say whether there is a job now.
type unclearError struct{ said string }

func (e unclearError) Error() string { return e.said }

// submission is a job that sbatch has named.
type submission struct {
	id, cluster string
	flags       []string
	notes       string // of the site's, for the user
}

// submit calls sbatch once.
func (s *Sbatch) submit(ctx context.Context, l Launch) (job submission, err error) {
	flags := s.o.Config.Flags()
	args := append(slices.Clone(flags), "--parsable", "--job-name="+jobName(l.RunID), "--chdir="+l.Dir,
		"--output="+strings.ReplaceAll(filepath.Join(l.Dir, slurmOut), "%", "%%"), "--open-mode=append", "--export=NONE", filepath.Join(l.Dir, jobScript))
	s.log.Info("submitting", "sbatch", strings.Join(flags, " "))
	a, err := s.cmd.run(ctx, "sbatch", args...)
	if err != nil {
		return job, unclearError{err.Error()}
	}
	id, cluster, ok := parseSubmitted(a.stdout)
	switch {
	case ok && a.code == 0:
		return submission{id, cluster, flags, cut(words(a), 1000)}, nil
	case a.code == 0:
		return job, unclearError{"sbatch printed no job id"}
	case isSchedulerDown(a.stderr):
		return job, unclearError{"sbatch: " + cut(words(a), 300)}
	}
	return job, refusal(a)
}

const namePrefix = "potato-"

func jobName(id api.RunID) string { return namePrefix + string(id) }

// submittedLine is what sbatch prints with --parsable, and what site wrappers make of it.
var submittedLine = regexp.MustCompile(`^(?:Submitted batch job )?([1-9][0-9]*)(?:;(\S+)| on cluster (\S+))?$`)

// parseSubmitted finds the job id in the standard output of sbatch, whatever banners stand around it (T01, T02).
func parseSubmitted(stdout string) (id, cluster string, ok bool) {
	for line := range strings.Lines(stdout) {
		if m := submittedLine.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			id, cluster, ok = m[1], m[2]+m[3], true
		}
	}
	return id, cluster, ok
}

func isSchedulerDown(stderr string) bool {
	return containsAny(stderr, "Unable to contact slurm controller", "Socket timed out", "munge", "Munge", "Zero Bytes were transmitted", "Connection refused",
		"temporarily un", "Communication connection failure", "Message receive failure", "Slurm backup controller")
}

// refusals are what sbatch says when it does not take a job, and what to do about it.
var refusals = []struct{ text, code, hint string }{
	{"Invalid account or account/partition combination", "slurm_refused", "name another `account`, or a `partition` that it may use; `sacctmgr show assoc user=$USER` lists yours"},
	{"nvalid partition", "slurm_refused", "`sinfo -s` lists the partitions: set `partition` to one of them"},
	{"Requested node configuration is not available", "slurm_refused", "no node of the partition has all that was asked for: lower `gres`, `gpus_per_node`, `cpus_per_task` or `mem`; `sinfo -o '%P %G %c %m %f'` shows what there is"},
	{"Memory specification can not be satisfied", "slurm_refused", "lower `mem`; `sinfo -o '%P %m'` shows what the nodes have"},
	{"Requested time limit is invalid", "slurm_refused", "set `time` within the limit of the partition, which `sinfo -o '%P %l'` shows"},
	{"Invalid --time specification", "slurm_refused", "write `time` as MM, HH:MM:SS or D-HH:MM:SS"},
	{"Job violates accounting/QOS policy", "slurm_refused", "a limit of the account or `qos` is reached: on jobs submitted, `time`, GPUs or nodes; `sacctmgr show qos` lists the limits"},
	{"nvalid qos", "slurm_refused", "`sacctmgr show qos` lists what may be named under `qos`"},
	{"Invalid feature specification", "slurm_refused", "`sinfo -o '%P %f'` lists the features that `constraint` may name"},
	{"generic resource (gres) specification", "slurm_refused", "`sinfo -o '%P %G'` lists what `gres` may name"},
	{"Node count specification invalid", "slurm_refused", "lower `nodes`; `sinfo -s` shows how many the partition has"},
	{"Invalid node name", "slurm_refused", "`sinfo -N` lists the nodes that `nodelist` and `exclude` may name"},
	{"More processors requested than permitted", "slurm_refused", "lower `cpus_per_task`, `ntasks_per_node` or `nodes`"},
	{"reservation is invalid", "slurm_refused", "`scontrol show reservation` lists what `reservation` may name"},
	{"Invalid license", "slurm_refused", "`scontrol show licenses` lists what `licenses` may name"},
	{"group not permitted", "slurm_refused", "the account on the cluster may not use this partition: name another `partition`, or ask for access"},
	{"partition not available", "slurm_refused", "the partition is drained or inactive: name another `partition`, or wait"},
	{"unrecognized option", "slurm_refused", "this sbatch does not know an option of `sbatch_args`"},
	{"Disk quota exceeded", "disk_full", "free some space there and train again"},
	{"No space left", "disk_full", "free some space there and train again"},
}

// refusal is an sbatch that said no, in its own words.
func refusal(a slurmAnswer) *api.Error {
	said := words(a)
	if said == "" {
		said = fmt.Sprintf("sbatch ended with exit code %d and said nothing", a.code)
	}
	for _, r := range refusals {
		if strings.Contains(a.stderr, r.text) {
			return api.Unavailablef(r.code, "SLURM refused the job: %s", cut(said, 1000)).WithHint("%s", r.hint)
		}
	}
	return api.Unavailablef("slurm_refused", "SLURM refused the job: %s", cut(said, 1000)).
		WithHint("the message is the cluster's own; the flags stand in the run's log, and `sbatch --test-only` with them shows the same")
}
