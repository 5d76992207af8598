package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"potato/agent"
	"potato/api"
	"potato/handlers"
	"potato/project"
	"potato/runners"
	"potato/runners/hosts"
	"potato/store"
	"potato/supervisor"
)

// openedStudy is what a server works on.
type openedStudy struct {
	supervisor *supervisor.Supervisor
	db         *store.DB
	data       *project.Study
	warm       *agent.WarmPool
	ssh        *runners.SSH
	routes     http.Handler // of agents on machines that the server has logged in to
}

// openStudy puts the parts together. None of them does anything yet. closed says why agents cannot reach the server, when
// they cannot; sshConfig is read in place of the account's own.
func openStudy(ctx context.Context, config *project.Config, closed, sshConfig string, log *slog.Logger) (*openedStudy, error) {
	db, err := store.Open(ctx, config.TrainingPath(), time.Now)
	if err != nil {
		return nil, err
	}
	s := &openedStudy{db: db, data: project.OpenStudy(config), warm: &agent.WarmPool{}}
	python := runners.NewPython(config)
	ssh := runners.SSHOptions{Config: config, Hosts: hosts.Options{ConfigFile: sshConfig, Log: log}, Home: s.home, Log: log}
	places, err := backendRunners(config, python, s.warm, log, runners.PollOptions{DB: db, Closed: closed}, ssh)
	if err == nil {
		s.ssh, _ = places[api.BackendSSH].(*runners.SSH)
		s.supervisor, err = supervisor.New(supervisor.Options{
			Config: config, Study: s.data, DB: db, Python: python, Log: log, Version: version, Runners: places,
		})
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.routes = handlers.NewAgentRoutes(handlers.Options{Supervisor: s.supervisor, Log: log})
	return s, nil
}

// home is where the agent of a run reports that the server has started on another machine.
func (s *openedStudy) home(j runners.Job) (runners.Home, error) {
	token, release := s.supervisor.RunToken(j.RunID, j.Backend)
	return runners.Home{Handler: s.routes, Token: token, Release: release}, nil
}

func (s *openedStudy) close() error {
	var err error
	if s.ssh != nil {
		err = s.ssh.Close()
	}
	return errors.Join(err, s.warm.Close(), s.data.Close(), s.db.Close())
}

// backendRunners lists the types of backends that this program can start runs on, with the runner of each.
func backendRunners(config *project.Config, python *runners.Python, warm *agent.WarmPool, log *slog.Logger, poll runners.PollOptions, ssh runners.SSHOptions) (map[api.BackendType]runners.Runner, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	ssh.Self = self
	elsewhere := runners.NewSSH(ssh)
	return map[api.BackendType]runners.Runner{
		api.BackendLocal: runners.NewLocal(runners.LocalOptions{Config: config, Python: python, Shim: []string{self, "exec"}, Warm: warm, Log: log}),
		api.BackendAgent: runners.NewPoll(poll),
		api.BackendSSH:   elsewhere,
		api.BackendSlurm: elsewhere,
	}, nil
}

// check asks the backend's runner, whether or not a server runs on the study.
func (c *checkCommand) check(ctx context.Context, config *project.Config) (_ api.CheckReport, err error) {
	poll := runners.PollOptions{Config: c.Config, Closed: closedToAgents(config)}
	// A check makes nothing: where there is no database no token was issued.
	if _, missing := os.Stat(filepath.Join(config.TrainingPath(), store.FileName)); missing == nil && usesAgents(config) {
		if poll.DB, err = store.Open(ctx, config.TrainingPath(), time.Now); err != nil {
			return api.CheckReport{}, err
		}
		defer func() { err = errors.Join(err, poll.DB.Close()) }()
	}
	places, err := backendRunners(config, runners.NewPython(config), nil, slog.New(slog.DiscardHandler), poll,
		runners.SSHOptions{Config: config, Hosts: hosts.Options{ConfigFile: c.SSHConfig}})
	if err != nil {
		return api.CheckReport{}, err
	}
	return supervisor.CheckBackend(ctx, supervisor.Options{Config: config, Runners: places}, c.Name, api.CheckRequest{Trainer: c.Trainer, Probe: c.Probe})
}
