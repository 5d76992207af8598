package agent

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"potato/api"
	"potato/trainers"
)

// inSlurm starts the worker of a SLURM job, whose script has made sure that no other job does. The exit status is the
// worker's, so that the scheduler's records show it.
func (s *shim) inSlurm(start shimStart) int {
	s.job = start.Job
	s.fence = &fence{dir: s.job.Dir, job: os.Getenv("SLURM_JOB_ID"), restart: number(os.Getenv("SLURM_RESTART_COUNT")), node: nodeName()}
	s.reserve()
	env := setEnv(os.Environ(), start.Env...)
	python, err := trainers.FindPython(belowHome(start.Argv[0]), env)
	if err != nil {
		return s.statusOf(Exit{Reason: ReasonNoPython, Message: strings.ReplaceAll(err.Error(), "this machine", s.fence.node)})
	}
	start.Argv[0] = python
	if start.Argv, err = ranked(start, s.job.GraceS); err != nil {
		return s.statusOf(Exit{Reason: ReasonNoSrun, Message: err.Error()})
	}
	outputs, err := openOutputs(s.job.Dir)
	if err == nil {
		err = s.start(start.Argv, env, s.job.Dir, outputs)
	}
	if err != nil {
		return s.statusOf(Exit{Reason: ReasonStartFailed, Message: err.Error()})
	}
	return s.statusOf(s.supervise())
}

// ranked puts the launcher of ranks before the worker of a job on several GPUs or nodes: once a node, by srun, which is
// not needed on one.
func ranked(start shimStart, graceS float64) ([]string, error) {
	nodes := number(os.Getenv("SLURM_JOB_NUM_NODES"))
	if nodes <= 1 && countGPUs(os.Getenv("CUDA_VISIBLE_DEVICES")) <= 1 && start.Ranks <= 1 {
		return start.Argv, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	argv := append([]string{self, "rank", "--ranks", strconv.Itoa(max(1, start.Ranks)), "--grace", seconds(graceS).String()}, start.Argv...)
	if nodes <= 1 {
		return argv, nil
	}
	srun, err := exec.LookPath("srun")
	if err != nil {
		return nil, api.Unavailablef("slurm_missing", "%s has no srun on PATH, which starts the workers of a job on %d nodes", nodeName(), nodes)
	}
	n := strconv.Itoa(nodes)
	return append([]string{srun, "--nodes=" + n, "--ntasks=" + n, "--ntasks-per-node=1", "--cpu-bind=none", "--mem=0", "--kill-on-bad-exit=1"}, argv...), nil
}

func (s *shim) statusOf(exit Exit) int {
	if s.fence.passed(time.Time{}) {
		return 0 // the exit_code is another attempt's to write
	}
	if code := s.finish(exit); code != 0 {
		return code
	}
	switch {
	case exit.Code != nil:
		return *exit.Code
	case s.status.Signaled():
		return exitStatus(s.status)
	}
	return 1
}

func nodeName() string {
	if name := os.Getenv("SLURMD_NODENAME"); name != "" {
		return name
	}
	return hostname()
}

const fenceEvery = 2 * time.Second

// fence tells an attempt that the scheduler has started a later one. A node that was taken for dead may live on, and what
// runs there must neither train on nor write the end of the run.
type fence struct {
	dir, job string
	restart  int
	node     string
	looked   time.Time
}

// passed reports whether a later attempt has begun. It looks every now and then, and at once when now is zero.
func (f *fence) passed(now time.Time) bool {
	if f == nil || !now.IsZero() && now.Sub(f.looked) < fenceEvery {
		return false
	}
	f.looked = now
	n, ok := readAttempt(filepath.Join(f.dir, attemptFile))
	return ok && n.job == f.job && n.restart > f.restart
}

func (f *fence) sign(exit *Exit) {
	if f != nil {
		exit.SlurmJob, exit.Restart, exit.Node = f.job, f.restart, f.node
	}
}

// belowHome is an interpreter's path as the config means it: one with a slash that is not absolute is below the home.
func belowHome(path string) string {
	rest, home := strings.CutPrefix(path, "~/")
	if !home && (filepath.IsAbs(path) || !strings.Contains(path, "/")) {
		return path
	}
	return filepath.Join(os.Getenv("HOME"), rest)
}
