package runners

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"potato/agent"
	"potato/api"
	"potato/project"
	"potato/trainers"
)

// Python is the interpreter of local runs (R7): model_training.python, or the environment that was made of it with
// model_training.packages. It is safe for concurrent use.
type Python struct {
	config *project.Config
	dir    string        // the training folder
	base   string        // as configured: a path or a name on PATH
	gate   chan struct{} // held while the interpreter is asked

	said   api.Environment // of the last time it was asked
	failed error           // and why it did not answer, when that took long
	asked  time.Time
	saidOf string // the interpreter and the trainers' files then
}

// saidFor is how long an answer of the interpreter is good: packages are installed meanwhile.
const saidFor = 10 * time.Second

// slow is an interpreter's answer, or silence, that nobody should have to wait for again at once.
const slow = 2 * time.Second

// NewPython finds nothing out yet.
func NewPython(c *project.Config) *Python {
	dir, err := filepath.Abs(c.TrainingPath())
	if err != nil {
		dir = c.TrainingPath() // the working directory is gone; whatever uses the path will say so
	}
	return &Python{config: c, dir: dir, base: c.PythonPath(), gate: make(chan struct{}, 1)}
}

// Environment is what the interpreter says of itself and its trainers, not older than a few seconds. A failure has code
// python_missing, python_too_old or start_failed.
func (p *Python) Environment(ctx context.Context) (api.Environment, error) {
	return p.environment(ctx, saidFor)
}

// Trainers are the trainers as their files are now. Whether their packages are there may be long out of date.
func (p *Python) Trainers(ctx context.Context) ([]api.Trainer, error) {
	env, err := p.environment(ctx, 24*time.Hour)
	return env.Trainers, err
}

func (p *Python) environment(ctx context.Context, notOlder time.Duration) (api.Environment, error) {
	select {
	case p.gate <- struct{}{}:
		defer func() { <-p.gate }()
	case <-ctx.Done():
		return api.Environment{}, ctx.Err()
	}
	python := p.current()
	of := python + p.trainerFiles()
	if p.saidOf == of && p.failed != nil && time.Since(p.asked) < saidFor {
		return api.Environment{}, p.failed // all who waited for it meanwhile are told the same
	}
	if p.saidOf == of && p.failed == nil && time.Since(p.asked) < notOlder {
		return p.said, nil
	}
	began := time.Now()
	said, err := p.ask(ctx, python, "")
	if err != nil && (ctx.Err() != nil || time.Since(began) < slow) {
		return said, err
	}
	p.said, p.failed, p.asked, p.saidOf = said, err, time.Now(), of
	return said, err
}

// trainerFiles changes with every file of the study's own trainers.
func (p *Python) trainerFiles() string {
	text := ""
	entries, _ := os.ReadDir(p.config.TrainersPath()) // of a folder that cannot be read asking will tell
	for _, e := range entries {
		if st, err := e.Info(); err == nil {
			text += fmt.Sprintf("\x00%s %d %d", e.Name(), st.Size(), st.ModTime().UnixNano())
		}
	}
	return text
}

// WithDevice is Environment with the device that a run gets now. It may import torch, so it takes a while.
func (p *Python) WithDevice(ctx context.Context) (api.Environment, error) {
	return p.ask(ctx, p.current(), p.config.ModelTraining.Device)
}

func (p *Python) ask(ctx context.Context, python, device string) (api.Environment, error) {
	if err := p.checkTrainersDir(); err != nil {
		return api.Environment{}, err
	}
	timeout := time.Duration(0)
	if device != "" {
		timeout = time.Minute
	}
	said, err := trainers.Describe(ctx, trainers.DescribeOptions{
		Python: python, Dir: p.code(), TrainersDir: p.config.TrainersPath(), Device: device, Env: p.env(), Timeout: timeout,
	})
	if err != nil {
		return said, err
	}
	if venv := p.venv(); venv != nil && python == p.base {
		willHave(said.Trainers, venv.packages)
	}
	return said, nil
}

// current is the interpreter that a run would get: the environment's, once it is made.
func (p *Python) current() string {
	if v := p.venv(); v != nil && v.ready() {
		return v.python()
	}
	return p.base
}

func (p *Python) checkTrainersDir() error {
	if dir := p.config.TrainersPath(); dir != "" {
		return trainers.CheckDir(dir, p.config.OutputPath())
	}
	return nil
}

// prepare makes ready what a run needs: the worker's files and, when packages are listed, their environment.
func (p *Python) prepare(ctx context.Context, say func(step string), line func(string)) (python, worker string, err error) {
	if err := p.checkTrainersDir(); err != nil {
		return "", "", err
	}
	worker, err = trainers.Materialise(p.code())
	if err != nil {
		return "", "", err
	}
	base, err := trainers.FindPython(p.base, p.env())
	if err != nil {
		return "", "", err
	}
	v := p.venv()
	if v == nil {
		return base, worker, nil
	}
	if err := v.make(ctx, base, p.env(), say, line); err != nil {
		return "", "", err
	}
	return v.python(), worker, nil
}

// prepared is what prepare returned to whoever launched a worker, without making anything but the worker's files.
func (p *Python) prepared(context.Context, func(string), func(string)) (python, worker string, err error) {
	worker, err = trainers.Materialise(p.code())
	if v := p.venv(); v != nil {
		return v.python(), worker, err
	}
	return p.base, worker, err
}

// code is the folder of the worker's files.
func (p *Python) code() string { return filepath.Join(p.dir, "code") }

// env is the environment of workers, with the limit of threads that they get.
func (p *Python) env() []string {
	return agent.ThreadEnv(agent.WorkerEnv(), p.config.ModelTraining.NumThreads)
}

// willHave marks trainers as available whose missing packages the first run installs.
func willHave(all []api.Trainer, packages []string) {
	listed := map[string]bool{}
	for _, p := range packages {
		listed[packageName(p)] = true
	}
	for i := range all {
		t := &all[i]
		missing := slices.DeleteFunc(slices.Clone(t.MissingPackages), func(p string) bool { return listed[packageName(p)] })
		if len(t.MissingPackages) > 0 && len(missing) == 0 {
			t.MissingPackages, t.Available, t.UnavailableReason = []string{}, true, ""
		}
	}
}

// packageName is a requirement's name as package indexes compare it.
func packageName(requirement string) string {
	end := strings.IndexFunc(requirement, func(r rune) bool { return strings.ContainsRune("<>=!~;[ @", r) })
	if end < 0 {
		end = len(requirement)
	}
	return strings.NewReplacer("_", "-", ".", "-").Replace(strings.ToLower(strings.TrimSpace(requirement[:end])))
}
