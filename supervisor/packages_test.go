package supervisor_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"potato/api"
	"potato/runners/runnertest"
)

const needy = `
from potato_trainers import done

TRAINER = {
    "name": "needy",
    "description": "Needs a package.",
    "kinds": ["nominal"],
    "packages": ["potato-probe"],
    "imports": ["potato_probe"],
}


def train(job):
    import potato_probe

    name = job.schemas[0].name
    label = next(job.bundle.rows("train")).targets[name]
    with job.predictions() as out:
        for split in job.bundle.predicted():
            for row in job.bundle.rows(split.name):
                out.write(row.instance_id, name, {"label": label, "confidence": None, "scores": {}})
    yield done(metrics={"train_answer": potato_probe.ANSWER})
`

// awaitLong waits for the end of a run that makes an environment, which takes long on a busy machine.
func (s *server) awaitLong(id api.RunID) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 3*time.Minute)
	defer cancel()
	if err := s.Subscribe(ctx, id, 0, func([]api.Event) error { return nil }); err != nil {
		s.t.Fatalf("waiting for run %s: %v\n%s", id, err, s.logText(id))
	}
}

func TestPackagesAreInstalledOnce(t *testing.T) {
	t.Parallel()
	c := runnertest.Study(t, fmt.Sprintf("  packages: [%q]\n", runnertest.Wheel(t)))
	must(t, os.WriteFile(filepath.Join(c.TrainersPath(), "needy.py"), []byte(needy), 0o600))
	s := start(t, c, nil)
	req := api.RunRequest{Trainer: "needy", Schemas: []string{runnertest.Scheme}}
	for i := range 2 {
		started, err := s.CreateRun(t.Context(), req, api.TriggerAPI, "admin")
		must(t, err)
		s.awaitLong(started.RunID)
		r := s.await(started.RunID, api.RunSuccess)
		if v := r.Metrics["train_answer"]; v == nil || *v != 42 {
			t.Errorf("got %v, want what the package says", r.Metrics)
		}
		if installed := strings.Contains(s.logText(r.RunID), "Successfully installed potato-probe"); installed != (i == 0) {
			t.Errorf("run %d: installed %v", i, installed)
		}
	}
	venvs, err := filepath.Glob(filepath.Join(c.TrainingPath(), "venv-*", ".potato-ready"))
	must(t, err)
	if len(venvs) != 1 {
		t.Errorf("got environments %v, want one", venvs)
	}
	report, err := s.Check(t.Context(), "local", api.CheckRequest{Trainer: "needy"})
	must(t, err)
	if !report.OK {
		t.Errorf("got %+v", report)
	}
}

func TestPackagesThatCannotBeInstalled(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "nothing-1.0-py3-none-any.whl")
	s := start(t, runnertest.Study(t, fmt.Sprintf("  packages: [%q]\n", missing)), nil)
	id := s.create(nil)
	s.awaitLong(id)
	r := s.await(id, api.RunError)
	if r.ErrorCode != "missing_dependency" || !strings.Contains(r.Error, "pip could not install") || r.Hint == "" {
		t.Errorf("got %s: %s (%s)", r.ErrorCode, r.Error, r.Hint)
	}
}

func TestMissingPackageIsNamed(t *testing.T) {
	c := runnertest.Study(t, "")
	must(t, os.WriteFile(filepath.Join(c.TrainersPath(), "needy.py"), []byte(needy), 0o600))
	s := start(t, c, nil)
	started, err := s.CreateRun(t.Context(), api.RunRequest{Trainer: "needy", Schemas: []string{runnertest.Scheme}}, api.TriggerAPI, "admin")
	must(t, err)
	r := s.await(started.RunID, api.RunError)
	if r.ErrorCode != "missing_dependency" || !strings.Contains(r.Error, "Trainer 'needy' could not be imported") || !strings.Contains(r.Error, "potato_probe") || r.Hint == "" {
		t.Errorf("got %s: %s (%s)", r.ErrorCode, r.Error, r.Hint)
	}
	report, err := s.Check(t.Context(), "local", api.CheckRequest{Trainer: "needy"})
	must(t, err)
	if report.OK || len(report.MissingPackages) == 0 || report.Python == "" {
		t.Errorf("got %+v, want that needy cannot train", report)
	}
	report, err = s.Check(t.Context(), "local", api.CheckRequest{})
	must(t, err)
	if !report.OK || !strings.HasPrefix(report.Summary, "this machine, CPU (") {
		t.Errorf("got %+v, want that a run could start", report)
	}
	_, err = s.Check(t.Context(), "moon", api.CheckRequest{})
	wantCode(t, err, "unknown_backend")
}
