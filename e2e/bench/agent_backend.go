package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"potato/api"
)

const (
	agentBackend = "lab-workstation"
	agentVersion = "bench"
)

// writeAgentStudy makes a study whose runs go to an agent backend, and a token of it.
func (b *bench) writeAgentStudy(ctx context.Context, name string, s shape) (study, token string, err error) {
	if study, err = b.writeStudy(name, s); err != nil {
		return "", "", err
	}
	config := filepath.Join(study, "config.yaml")
	f, err := os.OpenFile(config, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return "", "", err
	}
	_, err = fmt.Fprintf(f, "  backends: {%s: {type: agent}}\n", agentBackend)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", "", err
	}
	said, err := exec.CommandContext(ctx, b.potato, "training", "register", agentBackend, config).CombinedOutput()
	found := regexp.MustCompile(`POTATO_TRAINING_TOKEN=(\S+)`).FindSubmatch(said)
	if err != nil || found == nil {
		return "", "", fmt.Errorf("potato training register: %w\n%s", err, said)
	}
	return study, string(found[1]), nil
}

// postToAgent starts a run on the agent backend.
func (s *server) postToAgent(ctx context.Context) (api.RunID, error) {
	var r trained
	err := s.call(ctx, http.MethodPost, "runs", `{"trainer":"sklearn-text","schemas":["sentiment"],"backend":"`+agentBackend+`"}`, &r)
	return api.RunID(r.RunID), err
}

// newAgent is an agent without a worker, with connections of its own.
func (s *server) newAgent(token string) (*api.Client, error) {
	hc, err := api.NewHTTPClient("")
	return &api.Client{BaseURL: s.url, Token: token, HTTP: hc}, err
}

// question is an agent's question for work, the nth.
func question(agent string, n, waitS int) api.ClaimRequest {
	return api.ClaimRequest{AgentID: agent, ClaimID: fmt.Sprintf("question-%d", n), Host: "bench", Version: agentVersion, Backend: agentBackend, WaitS: waitS}
}

// claim waits for a run.
func claim(ctx context.Context, c *api.Client, agent string) (api.Job, error) {
	for n := range 10 {
		job, err := c.Claim(ctx, question(agent, n, 30))
		if err != nil || job != nil {
			return valueOf(job), err
		}
	}
	return api.Job{}, errors.New("no run came in five minutes")
}

func valueOf(job *api.Job) api.Job {
	if job == nil {
		return api.Job{}
	}
	return *job
}

// givenUp ends a job that was only wanted for its claim.
func givenUp(ctx context.Context, c *api.Client, job api.Job) error {
	return c.Finish(ctx, job, api.Finish{ErrorCode: "killed", Error: "The benchmark needs no more of it", Host: "bench"})
}

// running waits until the bundle of a claimed job is built, keeping the lease meanwhile.
func (s *server) running(ctx context.Context, c *api.Client, job api.Job) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	var r trained
	for {
		if err := s.call(ctx, http.MethodGet, "runs/"+string(job.RunID), "", &r); err != nil {
			return err
		}
		switch r.Status {
		case "running":
			return nil
		case "building":
		default:
			return fmt.Errorf("run %s is %s: %s", job.RunID, r.Status, r.Error)
		}
		if _, err := c.Progress(ctx, job, []api.Event{}); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollEvery):
		}
	}
}

// heartbeats keeps a job's lease until stop is called, which waits for the end of it.
func heartbeats(ctx context.Context, c *api.Client, job api.Job) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var beat sync.WaitGroup
	beat.Go(func() {
		for ctx.Err() == nil {
			if _, err := c.Heartbeat(ctx, job); err != nil {
				return // the measurement notices what the server thinks of it
			}
		}
	})
	return func() {
		cancel()
		beat.Wait()
	}
}
