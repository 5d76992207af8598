package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"potato/api"
	"potato/project"
	"potato/runners/hosts/hoststest"
)

// A host of the benchmarks is this machine behind a real sshd, an account without noisy login files.
const (
	sshHost    = "target-quiet"
	hostPython = "/usr/bin/python3" // every account can run it
)

// sshStudy writes a study with the backend "box" on that host.
func (b *bench) sshStudy(name string) (study string, config *project.Config, err error) {
	study, err = b.writeStudy(name, smallStudy)
	if err != nil {
		return "", nil, err
	}
	path := filepath.Join(study, "config.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		return "", nil, err
	}
	// Both sides train with the interpreter that accounts without rights on this folder can run as well.
	lines := fmt.Sprintf("  trainers_dir: trainers\n  backends:\n    box: {type: ssh, host: %s, transport: native, python: %s, gpus: none, remote_dir: ~/bench}\n", sshHost, hostPython)
	whole := strings.Replace(string(text), fmt.Sprintf("python: %q", b.python()), fmt.Sprintf("python: %q", hostPython), 1) + lines
	if err := errors.Join(os.WriteFile(path, []byte(whole), 0o600), os.Mkdir(filepath.Join(study, "trainers"), 0o700),
		os.WriteFile(filepath.Join(study, "trainers", "at_once.py"), []byte(atOnce), 0o600)); err != nil {
		return "", nil, err
	}
	config, report := project.Load(path)
	if config == nil || len(report.Errors) > 0 {
		return "", nil, fmt.Errorf("%s: %+v", path, report.Errors)
	}
	return study, config, nil
}

// atOnce is a trainer that needs no package and has next to nothing to do.
const atOnce = `
from potato_trainers import done, log

TRAINER = {"name": "at-once", "description": "Predicts the first label.", "kinds": ["nominal"]}


def train(job):
    yield log("at work")
    schema = job.schemas[0]
    label = next(iter(job.bundle.rows("train"))).targets[schema.name]
    with job.predictions() as out:
        for split in job.bundle.predicted():
            for row in job.bundle.rows(split.name):
                out.write(row.instance_id, schema.name, {"label": label, "confidence": 0.75, "scores": {label: 0.75}})
    yield done()
`

// client runs a program of the OpenSSH client with the rig's configuration.
func client(ctx context.Context, rig *hoststest.Rig, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, append([]string{"-F", rig.Config}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, out)
	}
	return nil
}

func timed(what func() error) (time.Duration, error) {
	begin := time.Now()
	err := what()
	return time.Since(begin), err
}

// measureSSHStart measures how much later than a run on this machine a run's worker is at work on a host to which code was
// copied before, in times of one `ssh HOST true`. The worker is started anew on both sides.
func measureSSHStart(ctx context.Context, b *bench) (rows []row, err error) {
	rig, err := hoststest.Start()
	if err != nil {
		return nil, err
	}
	defer rig.Close()
	study, _, err := b.sshStudy("ssh-start")
	if err != nil {
		return nil, err
	}
	s, err := start(ctx, b.potato, study, "--ssh-config", rig.Config)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	later := row{Name: "ssh-start", What: "worker at work on a host, later than on this machine", Unit: "s", Against: "ssh HOST true", Bar: atMost(3, "issue: ssh")}
	for i := range b.repeats + 1 {
		login, err := timed(func() error { return client(ctx, rig, "ssh", sshHost, "true") })
		if err != nil {
			return nil, err
		}
		here, err := s.untilAtWork(ctx, "local")
		if err != nil {
			return nil, err
		}
		there, err := s.untilAtWork(ctx, "box")
		if err != nil {
			return nil, err
		}
		if i == 0 {
			continue // the code goes there
		}
		later.Peer, later.Ours = append(later.Peer, login.Seconds()), append(later.Ours, (there-here).Seconds())
		b.say("ssh true %s, POST to work: here %s, there %s", login, here, there)
	}
	return []row{later}, nil
}

// untilAtWork posts a run and tells how long after that its trainer was at work.
func (s *server) untilAtWork(ctx context.Context, backend string) (time.Duration, error) {
	if err := s.settle(ctx, false); err != nil {
		return 0, err
	}
	var posted trained
	begin := time.Now()
	body := fmt.Sprintf(`{"trainer":"at-once","schemas":["sentiment"],"backend":%q}`, backend)
	if err := s.call(ctx, http.MethodPost, "runs", body, &posted); err != nil {
		return 0, err
	}
	r, err := s.await(ctx, posted, begin, time.Minute)
	if err != nil {
		return 0, err
	}
	var events struct {
		Events []api.Event `json:"events"`
	}
	if err := s.call(ctx, http.MethodGet, "runs/"+r.RunID+"/events", "", &events); err != nil {
		return 0, err
	}
	for _, e := range events.Events {
		if e.Event == api.EventLog && e.Msg == "at work" {
			return time.UnixMicro(int64(e.T * 1e6)).Sub(begin), nil
		}
	}
	return 0, fmt.Errorf("run %s does not say that its worker was at work; its folder is %s", r.RunID, s.runFolder(r))
}
