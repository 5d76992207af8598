package agentcmd

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"potato/agent"
	"potato/api"
)

// slurm is what --slurm-config makes of the agent; nil without it (Q9).
type slurm struct {
	config   agent.SlurmConfig
	launcher *agent.Sbatch
	workdir  string
}

func (c *Command) slurm(log *slog.Logger) (*slurm, error) {
	if c.SlurmConfig == "" {
		return nil, nil //nolint:nilnil // an agent without SLURM
	}
	config, err := agent.ReadSlurmConfig(c.SlurmConfig)
	if err != nil {
		return nil, err
	}
	if c.Workdir, err = filepath.Abs(c.Workdir); err != nil {
		return nil, err
	}
	s := &slurm{config: config, workdir: c.Workdir, launcher: agent.NewSbatch(agent.SbatchOptions{Config: config, Dir: c.Workdir, Log: log})}
	if err := s.launcher.Ready(); err != nil {
		s.close()
		return nil, api.AsError(err).WithHint("start the agent on a login node, or set PATH under `env` in %s", c.SlurmConfig)
	}
	return s, nil
}

// adapt makes jobs of this machine into jobs of the scheduler's.
func (s *slurm) adapt(job *agent.Options) error {
	if s == nil {
		return nil
	}
	self, err := shareProgram(job.Shim[0], filepath.Join(s.workdir, "code"))
	if err != nil {
		return fmt.Errorf("copy this program for the compute nodes: %w", err)
	}
	job.Shim[0] = self
	job.Launcher, job.Poll, job.Detach, job.PythonKey = s.launcher, agent.SlurmPoll, s.config.Detach, "job_python"
	return nil
}

// python is the worker's interpreter, which on compute nodes may be one that this machine has not.
func (s *slurm) python(mine string) string {
	if s == nil || s.config.JobPython == "" {
		return mine
	}
	return s.config.JobPython
}

func (s *slurm) close() {
	if s != nil {
		s.launcher.Close()
	}
}

// shareProgram copies a program to where compute nodes find it, under the name of its content.
func shareProgram(path, dir string) (shared string, err error) {
	from, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer from.Close() //nolint:errcheck // only read from
	to, err := os.CreateTemp(dir, ".agent-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(to.Name()) //nolint:errcheck // renamed, when all went well
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(to, sum), from)
	shared = filepath.Join(dir, "agent-"+hex.EncodeToString(sum.Sum(nil)[:8]))
	if err = errors.Join(err, to.Chmod(0o700), to.Sync(), to.Close()); err != nil {
		return "", err
	}
	if _, err := os.Stat(shared); err == nil { // a job may be running it
		return shared, nil
	}
	return shared, os.Rename(to.Name(), shared)
}
