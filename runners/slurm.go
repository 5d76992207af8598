package runners

import (
	"context"
	_ "embed"
	"strings"

	"potato/agent"
	"potato/api"
	"potato/project"
	"potato/runners/hosts"
)

//go:embed slurm_probe.sh
var slurmProbe string

// slurmFacts are what a login node says of its scheduler's commands.
type slurmFacts struct {
	path      map[string]string // of each command; empty: it is not there
	jobPython string            // its path, when the login node has it too
}

// neededCommands are those without which no job can be submitted, followed and cancelled (Q1).
var neededCommands = []string{"sbatch", "squeue", "scancel"}

// askSlurm looks for the scheduler's commands, with what env sets (C8).
func (s *SSH) askSlurm(ctx context.Context, c *hosts.Conn, b project.Backend) (slurmFacts, error) {
	f := slurmFacts{path: map[string]string{}}
	env := s.env(b)
	env["probe_job_python"] = jobPython(b)
	a, err := c.Run(ctx, hosts.Script{Text: hostPaths + slurmProbe, Env: env})
	if err != nil {
		return f, err
	}
	for line := range strings.Lines(string(a.Out)) {
		name, path, _ := strings.Cut(strings.TrimSpace(line), "=")
		if name == "job_python" {
			f.jobPython = path
		} else {
			f.path[name] = path
		}
	}
	return f, nil
}

// missing says that jobs cannot be submitted from the host; nil when they can.
func (f slurmFacts) missing(host string) *api.Error {
	for _, name := range neededCommands {
		if f.path[name] == "" {
			return WithHint(api.Unavailablef("slurm_missing", "%s has no %s on PATH, so it cannot submit jobs", host, name))
		}
	}
	return nil
}

// jobPython is the interpreter of the compute nodes, as the config names it.
func jobPython(b project.Backend) string {
	if b.JobPython != "" {
		return b.JobPython
	}
	return b.Python
}

// slurmConfig are the backend's settings of the job, for the agent (C5). It chooses no GPU: the scheduler does (Q2).
func (s *SSH) slurmConfig(b project.Backend) *agent.SlurmConfig {
	return &agent.SlurmConfig{
		JobPython: b.JobPython, Prelude: b.Prelude, PollIntervalS: b.PollIntervalS, QueueTimeoutS: b.QueueTimeoutS, Detach: b.Detach, Env: s.env(b),
		Partition: string(b.Partition), Account: string(b.Account), QOS: string(b.QOS), GRES: string(b.GRES), GPUsPerNode: string(b.GPUsPerNode),
		Nodes: string(b.Nodes), NTasksPerNode: b.NTasksPerNode, CPUsPerTask: b.CPUsPerTask, Mem: string(b.Mem), MemPerGPU: string(b.MemPerGPU),
		Time: string(b.Time), Constraint: string(b.Constraint), NodeList: string(b.NodeList), Exclude: string(b.Exclude), Reservation: string(b.Reservation),
		Exclusive: b.Exclusive, Nice: b.Nice, Licenses: string(b.Licenses), Deadline: string(b.Deadline), Requeue: b.Requeue, Signal: string(b.Signal),
		MailUser: string(b.MailUser), MailType: string(b.MailType), SbatchArgs: b.SbatchArgs,
	}
}
