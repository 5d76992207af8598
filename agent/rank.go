package agent

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"potato/api"
)

// rankJob is what a rank launcher is told to start: a worker on a spec.
type rankJob struct {
	argv    []string      // PYTHON WORKER --spec SPEC
	perNode int           // ranks on a node that has no GPU
	grace   time.Duration // between TERM and KILL for the ranks that are left when one has failed
	dir     string        // the job directory
	spec    api.Spec
}

const (
	rankUsage = "usage: rank [--ranks N] [--grace 10s] PYTHON WORKER --spec SPEC"
	rankGrace = 10 * time.Second
)

// Rank is the body of the hidden command "rank", which stands between shim and worker in a job of several GPUs or nodes;
// its result is the exit status. It is started once a node, by srun, or without it on one node, and starts one worker a
// GPU, or N where there is none. Each learns its place by the variables that torch reads. A trainer that does not
// declare to be distributed is started once in the whole job.
//
// One rank that fails ends all: its status is ours. Rank 0 is the one that reports: the others' output is not kept,
// their errors stand in standard error with the rank before them.
func Rank(args []string, stderr io.Writer) int {
	status, err := rankAll(args, stderr)
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "potato: %v\n", err) // nobody is left to be told
	}
	return status
}

func rankAll(args []string, stderr io.Writer) (int, error) {
	job, err := readRankJob(args)
	if err != nil {
		return 2, err
	}
	plan, err := planRanks(os.Getenv, job.perNode)
	if err != nil {
		return 2, err
	}
	// The scheduler's signals before the time limit are ignored until a worker listens to them, for they would end it; what
	// is ignored stays so in a process that is started.
	signal.Ignore(syscall.SIGUSR1, syscall.SIGUSR2)
	if plan.world() > 1 && !job.distributed(stderr) {
		if plan.node > 0 {
			return 0, nil
		}
		return 1, syscall.Exec(job.argv[0], job.argv, os.Environ())
	}
	if err := plan.meet(os.Getenv); err != nil {
		return 1, err
	}
	return newRankGroup(job, plan, stderr).run(), nil
}

func readRankJob(args []string) (job rankJob, err error) {
	flags := flag.NewFlagSet("rank", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.IntVar(&job.perNode, "ranks", 1, "")
	flags.DurationVar(&job.grace, "grace", rankGrace, "")
	err = flags.Parse(args)
	args = flags.Args()
	at := slices.Index(args, "--spec")
	if err != nil || at < 2 || at+1 == len(args) {
		return job, api.Invalidf("usage", rankUsage)
	}
	job.argv = slices.Clone(args)
	if job.argv[0], err = exec.LookPath(args[0]); err != nil {
		return job, api.Unavailablef("python_missing", "%s was not found on %s", args[0], hostname())
	}
	path := args[at+1]
	if !readJSON(path, &job.spec) {
		return job, api.Invalidf("bad_spec", "The spec %s cannot be read on %s", path, hostname())
	}
	job.dir = filepath.Dir(path)
	return job, nil
}

// describeWait is long: the interpreter may lie on network storage that a whole job reads at once.
const describeWait = 2 * time.Minute

// distributed asks the worker whether its trainer may be started several times. One that cannot be asked is started
// once, and says itself what is wrong.
func (j rankJob) distributed(stderr io.Writer) bool {
	ctx, cancel := context.WithTimeout(context.Background(), describeWait)
	defer cancel()
	ask := []string{j.argv[1], "--describe"}
	if j.spec.TrainersDir != nil {
		ask = append(ask, "--trainers-dir", *j.spec.TrainersDir)
	}
	out, err := exec.CommandContext(ctx, j.argv[0], ask...).Output()
	var about api.Environment
	if err == nil {
		err = json.Unmarshal(out, &about)
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "potato: the trainers could not be listed (%v); the worker is started once\n", err)
		return false
	}
	for _, t := range about.Trainers {
		if t.Name == j.spec.Trainer {
			return t.Distributed
		}
	}
	return false
}

// failureNote is where a rank that fails leaves why, for rank 0 to report: it is the one that others listen to. Each
// attempt has its own.
func (j rankJob) failureNote(getenv func(string) string) string {
	name := "rank_failed.json"
	if restart := number(getenv("SLURM_RESTART_COUNT")); restart > 0 {
		name = fmt.Sprintf("rank_failed.%d.json", restart)
	}
	return filepath.Join(j.dir, name)
}

// rankFailure is the content of that note. The worker of the rank writes it; for one that died without a word, we do.
type rankFailure struct {
	Rank    int    `json:"rank"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint"`
}

// note writes why a rank failed, unless that was done.
func (f rankFailure) note(path string) error {
	b, err := json.Marshal(f)
	if err != nil {
		return err
	}
	// Linked and not renamed: the first failure is the one that counts.
	temporary := fmt.Sprintf("%s.%d.%d", path, f.Rank, os.Getpid())
	if err := os.WriteFile(temporary, append(b, '\n'), 0o600); err != nil {
		return err
	}
	err = os.Link(temporary, path)
	if errors.Is(err, os.ErrExist) {
		err = nil
	}
	return errors.Join(err, os.Remove(temporary))
}
