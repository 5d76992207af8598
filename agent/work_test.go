package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"potato/agent/agenttest"
	"potato/api"
)

func TestWorkerSucceeds(t *testing.T) {
	steps := append([]agenttest.Step{{"status", "fitting"}, {"print", "hello\nworld\n"}, {"stderr", "half"}}, agenttest.Good(3)...)
	b := newBench(t, steps...)
	f := b.finish()

	if f.ErrorCode != "" || f.Cancelled || f.ExitCode == nil || *f.ExitCode != 0 {
		t.Errorf("finish = %+v, want a success", f)
	}
	if got, want := f.Host, b.handle().Host; got != want || got == "" {
		t.Errorf("host = %q, want %q", got, want)
	}
	if got := strings.Count(string(b.desk.Stored()), "\n"); got != 3 {
		t.Errorf("%d predictions stored, want 3", got)
	}
	var worker []string
	output := map[string]string{}
	for _, e := range b.desk.Events() {
		if e.Source != "" {
			output[e.Source] += e.Msg
		} else {
			worker = append(worker, string(e.Event)+":"+e.StepText()+e.Path)
		}
	}
	want := "status:fetching the bundle status:starting the worker status:fitting artifact:predictions.jsonl result:"
	if got := strings.Join(worker, " "); got != want {
		t.Errorf("events: %s, want %s", got, want)
	}
	if output["stdout"] != "hello\nworld" || output["stderr"] != "half" {
		t.Errorf("output: %q", output)
	}
	for i, e := range b.desk.Events() {
		if e.Seq != int64(i+1) || e.Attempt != 1 {
			t.Errorf("event %d has seq %d and attempt %d", i, e.Seq, e.Attempt)
		}
	}
	b.gone()
}

func TestSpecHasTheFoldersOfThisMachine(t *testing.T) {
	b := newBench(t, agenttest.Good(1)...)
	b.work()
	var s api.Spec
	readJSON(t, filepath.Join(b.o.Dir, "spec.json"), &s)
	if s.V != 1 || s.RunID != b.job.RunID || s.BundleDir != b.desk.BundleDir || s.Workdir != filepath.Join(b.o.Dir, "artifacts") ||
		s.EventsFile != filepath.Join(b.o.Dir, "events.jsonl") || s.CheckpointDir != filepath.Join(b.o.Dir, "checkpoints") || s.Limits.Device != "auto" {
		t.Errorf("spec = %+v", s)
	}
}

func TestEverythingIsPrivate(t *testing.T) {
	b := newBench(t, agenttest.Good(1)...)
	b.work()
	err := filepath.WalkDir(b.o.Dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode().Perm())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
