// Package agentcmd is the command that makes a machine train for a server: the flags of `potato training agent` and of
// the program potato-agent, which are the same, and what happens before the agent asks for work.
package agentcmd

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"potato/agent"
	"potato/api"
	"potato/trainers"
)

// Command are the flags (K4).
type Command struct {
	Server       string `required:"" placeholder:"URL" help:"The training server, e.g. https://annotate.example.org."`
	Backend      string `required:"" placeholder:"NAME" help:"The backend whose runs to train."`
	TokenFile    string `placeholder:"FILE" help:"Read the token from this file instead of POTATO_TRAINING_TOKEN."`
	Python       string `placeholder:"PYTHON" help:"The worker's interpreter (default: the active environment's, else python3)."`
	Once         bool   `help:"Leave after one run."`
	Workdir      string `placeholder:"DIR" help:"Where jobs and models lie (default: ~/.cache/potato-training)."`
	Keep         bool   `help:"Keep each job's directory with its bundle."`
	SlurmConfig  string `placeholder:"FILE" help:"Submit runs to SLURM, with the settings in this JSON file; --workdir is then on storage that the compute nodes share."`
	CA           string `name:"ca" placeholder:"FILE" help:"Certificate of an authority to trust beside the system's, as PEM."`
	PrintSystemd bool   `help:"Print a service file for these flags, and leave."`

	ServerLoss time.Duration `hidden:"" default:"300s" help:"Silence of the server after which a run is cancelled."`
	Lease      time.Duration `hidden:"" help:"Silence of the agent after which a worker ends itself; default the job's."`
}

// Help is the longer text of --help for the command as it is typed.
func Help(command string) string {
	return `It asks the server for runs of the backend and trains them one after another, until it is interrupted. It opens
every connection itself. The token is the one that "potato training register NAME config.yaml" printed on the server.

Example:

  export POTATO_TRAINING_TOKEN=...
  ` + command + ` --server https://annotate.example.org --backend lab-workstation

One interrupt cancels the run under way, tells the server and leaves; a second one ends everything at once.
HTTPS_PROXY, NO_PROXY and SSL_CERT_FILE are heeded.

Exit codes: 0 it was stopped or --once is done, 1 it cannot go on, 2 wrong usage.`
}

// Program is the program that the command is a part of.
type Program struct {
	Args    []string // what to type for the command after the program's path, e.g. training agent
	Version string
	Out     io.Writer
	Err     io.Writer // a terminal gets a line that says what the agent is doing
}

// Start does what the command line says.
func (c *Command) Start(ctx context.Context, p Program) error {
	token, err := takeToken()
	if err != nil {
		return err
	}
	if c.Server, err = api.ParseServerURL(c.Server); err != nil {
		return err
	}
	if c.Workdir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return api.Invalidf("workdir", "there is no home directory to work in").WithHint("give a folder with --workdir").WithCause(err)
		}
		c.Workdir = filepath.Join(home, ".cache", "potato-training")
	}
	if c.Python == "" {
		c.Python = activePython()
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	if c.PrintSystemd {
		return c.printUnit(p, self)
	}
	if c.TokenFile != "" {
		token, err = readToken(c.TokenFile)
	} else if token == "" {
		err = noToken(c.Backend)
	} else {
		err = checkToken(token, "POTATO_TRAINING_TOKEN")
	}
	if err != nil {
		return err
	}
	hc, err := api.NewHTTPClient(c.CA)
	if err != nil {
		return err
	}
	defer hc.CloseIdleConnections()
	screen := newScreen(p.Err)
	defer screen.close()
	log := slog.New(slog.NewTextHandler(screen, nil))
	slurm, err := c.slurm(log)
	if err != nil {
		return err
	}
	defer slurm.close()
	worker, err := c.prepare(ctx, p, slurm, log)
	if err != nil {
		return err
	}
	job := agent.Options{
		Backend: c.Backend, Python: c.Python, PythonKey: "--python", WorkerPath: worker, Shim: []string{self, "exec"},
		ServerLossTimeout: c.ServerLoss, LeaseTimeout: c.Lease,
	}
	if err := slurm.adapt(&job); err != nil {
		return err
	}
	return attended(ctx, log, func(ctx context.Context, stop <-chan struct{}) error {
		return agent.Poll(ctx, agent.PollOptions{
			Client:  &api.Client{BaseURL: c.Server, Token: token, HTTP: hc},
			Workdir: c.Workdir, Version: p.Version + " " + runtime.GOOS + "/" + runtime.GOARCH, Once: c.Once, Keep: c.Keep,
			Job:  job,
			Stop: stop, Report: screen.report, Log: log,
		})
	})
}

// prepare writes the trainers, asks the interpreter what it can train, and says what there is. It returns worker.py.
func (c *Command) prepare(ctx context.Context, p Program, slurm *slurm, log *slog.Logger) (worker string, err error) {
	code := filepath.Join(c.Workdir, "code")
	if worker, err = trainers.Materialise(code); err != nil {
		return "", err
	}
	log.Info("agent", "backend", c.Backend, "server", c.Server, "workdir", c.Workdir, "version", p.Version)
	if api.InTheClear(c.Server) {
		log.Warn("plain http to another machine: whoever sees the traffic can read the token and the data; use https, or a tunnel")
	}
	python := slurm.python(c.Python)
	env, err := trainers.Describe(ctx, trainers.DescribeOptions{Python: python, Dir: code, Env: agent.WorkerEnv()})
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		e := api.AsError(err)
		if slurm == nil && (e.Code == "python_missing" || e.Code == "python_too_old") {
			return "", e.WithHint("give another interpreter with --python")
		}
		log.Warn("the worker's interpreter could not be asked what it can train", "python", python, "err", err)
		return worker, nil
	}
	log.Info("interpreter of the worker", "python", env.Executable, "version", env.Python)
	for _, t := range env.Trainers {
		switch {
		case t.LocalOnly:
		case t.Available:
			log.Info("trainer", "name", t.Name, "available", true)
		default:
			log.Info("trainer", "name", t.Name, "available", false, "missing", strings.Join(t.MissingPackages, " "), "hint", t.InstallHint)
		}
	}
	return worker, nil
}

// activePython is the interpreter of the environment that is active, as the shell's prompt says.
func activePython() string {
	for _, name := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if dir := os.Getenv(name); dir != "" {
			python := filepath.Join(dir, "bin", "python")
			if _, err := os.Stat(python); err == nil {
				return python
			}
		}
	}
	return "python3"
}
