package runners_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"potato/runners"
	"potato/runners/runnertest"
)

// An interpreter that takes its time to fail, on a network folder that hangs for instance, is asked once for all who wait.
func TestSlowPythonIsAskedOnce(t *testing.T) {
	t.Parallel()
	c := runnertest.Study(t, "")
	asked := filepath.Join(c.Dir, "asked")
	python := filepath.Join(c.Dir, "python")
	must(t, os.WriteFile(python, []byte("#!/bin/sh\necho x >>"+asked+"\nsleep 2.2\necho it hangs >&2\nexit 1\n"), 0o700))
	c.ModelTraining.Python = python
	p := runners.NewPython(c)
	failed := make(chan error)
	for range 4 {
		go func() {
			_, err := p.Environment(t.Context())
			failed <- err
		}()
	}
	for range 4 {
		wantCode(t, <-failed, "start_failed")
	}
	text, err := os.ReadFile(asked)
	must(t, err)
	if n := strings.Count(string(text), "x"); n != 1 {
		t.Errorf("the interpreter was asked %d times, want once", n)
	}

	// What fails at once is mended at once, and asked again.
	must(t, os.Remove(python))
	c.ModelTraining.Python = filepath.Join(c.Dir, "venv/bin/python")
	p = runners.NewPython(c)
	_, err = p.Environment(t.Context())
	wantCode(t, err, "python_missing")
	must(t, os.MkdirAll(filepath.Dir(c.ModelTraining.Python), 0o700))
	must(t, os.Symlink(runnertest.Python(t), c.ModelTraining.Python))
	_, err = p.Environment(t.Context())
	must(t, err)
}
