package agent_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"potato/agent"
	"potato/agent/agenttest"
	"potato/api"
)

// A run ends with its worker, and says truly how the worker ended.
func TestEnds(t *testing.T) {
	stderr := make([]string, 30)
	for i := range stderr {
		stderr[i] = fmt.Sprintf("line %d", i)
	}
	tests := map[string]struct {
		steps []agenttest.Step
		code  string
		text  string
		hint  string
	}{
		"exit 0 without a result":       {[]agenttest.Step{{"status", "x"}}, "worker_failed", "ended without a result", "must end with a result"},
		"exit 3 without a word":         {[]agenttest.Step{{"exit", 3}}, "worker_failed", "exit code 3", "stderr.log"},
		"exit 3 with a last word":       {[]agenttest.Step{{"stderr", "a\nValueError: b\n"}, {"exit", 3}}, "worker_failed", "exit code 3: ValueError: b", "stderr.log"},
		"its own error beats all":       {[]agenttest.Step{{"stderr", "CUDA out of memory\n"}, {"error", "validation_failed", "too few", "label more"}, {"exit", 2}}, "validation_failed", "too few", "label more"},
		"an error code of its own":      {[]agenttest.Step{{"error", "fit_failed", "no luck"}, {"exit", 1}}, "worker_failed", "no luck", ""},
		"result and then an error":      {[]agenttest.Step{{"predictions", 1}, {"result"}, {"error", "disk_full", "no space"}, {"exit", 1}}, "disk_full", "no space", ""},
		"a result without predictions":  {[]agenttest.Step{{"result", map[string]any{"predictions_file": ""}}}, "worker_failed", "no predictions", "predictions.jsonl"},
		"predictions that are missing":  {[]agenttest.Step{{"result"}}, "worker_failed", "predictions file predictions.jsonl cannot be read", ""},
		"predictions somewhere else":    {[]agenttest.Step{{"result", map[string]any{"predictions_file": "../owner"}}}, "worker_failed", "cannot be read", ""},
		"predictions that are a folder": {[]agenttest.Step{{"result", map[string]any{"predictions_file": "."}}}, "worker_failed", "not a file", ""},
		"a package is missing":          {[]agenttest.Step{{"import", "no_such_package"}}, "missing_dependency", "Trainer 'test' could not be imported by ", "install the package"},
		"gpu memory":                    {[]agenttest.Step{{"stderr", "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried\n"}, {"exit", 1}}, "gpu_out_of_memory", "Tried", "batch size"},
		"gpu kernels":                   {[]agenttest.Step{{"stderr", "RuntimeError: no kernel image is available for execution\n"}, {"exit", 1}}, "gpu_unsupported", "no kernels", "torch"},
		"disk":                          {[]agenttest.Step{{"stderr", "OSError: [Errno 28] No space left on device: '/x'\n"}, {"exit", 1}}, "disk_full", "/x", "free some space"},
		"nvrtc":                         {[]agenttest.Step{{"stderr", "nvrtc: error: failed to open libnvrtc-builtins.so.13.0\n"}, {"exit", 1}}, "worker_failed", "libnvrtc-builtins.so.13.0", "nvidia-cuda-nvrtc that matches"},
		"killed":                        {[]agenttest.Step{{"predictions", 1}, {"kill", int(syscall.SIGKILL)}}, "killed", "SIGKILL", "dmesg"},
		"told to stop by a stranger":    {[]agenttest.Step{{"kill", int(syscall.SIGTERM)}}, "killed", "SIGTERM", ""},
		"stops politely for a stranger": {[]agenttest.Step{{"on_term", "cancelled"}, {"kill", int(syscall.SIGTERM)}}, "killed", "outside of this program", ""},
		"a crash":                       {[]agenttest.Step{{"kill", int(syscall.SIGSEGV)}}, "worker_failed", "SIGSEGV", "compiled code"},
		"the last lines (T30)":          {[]agenttest.Step{{"stderr", strings.Join(stderr, "\n") + "\n"}, {"exit", 1}}, "worker_failed", "line 29", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, test.steps...)
			f := b.finish()
			if f.ErrorCode != test.code || !strings.Contains(f.Error, test.text) || !strings.Contains(f.Hint, test.hint) {
				t.Errorf("code %q, error %q, hint %q; want %q, %q, %q", f.ErrorCode, f.Error, f.Hint, test.code, test.text, test.hint)
			}
			if b.desk.Stored() != nil {
				t.Error("predictions were stored")
			}
			if name == "the last lines (T30)" && (len(f.Stderr) != 20 || f.Stderr[0] != "line 10") {
				t.Errorf("stderr = %q, want its last 20 lines", f.Stderr)
			}
			b.gone()
		})
	}
}

// A worker that has brought everything is a success, whatever its interpreter does while it shuts down.
func TestCrashAfterTheResult(t *testing.T) {
	b := newBench(t, append(agenttest.Good(2), agenttest.Step{"kill", int(syscall.SIGSEGV)})...)
	f := b.finish()
	if f.ErrorCode != "" || b.desk.Stored() == nil {
		t.Errorf("finish = %+v, want a success", f)
	}
	if !b.desk.Has("The worker ended with an error after it had written its result") {
		t.Error("nothing warns of the crash")
	}
}

// A worker that hangs after it has brought everything gets its grace and no more (T29).
func TestHangsAfterTheResult(t *testing.T) {
	for _, term := range []string{"ignore", "cancelled", ""} {
		t.Run("TERM "+term, func(t *testing.T) {
			t.Parallel()
			steps := append(agenttest.Good(2), agenttest.Step{"sleep", 600})
			if term != "" {
				steps = append([]agenttest.Step{{"on_term", term}}, steps...)
			}
			b := newBench(t, steps...)
			b.job.GraceSeconds = 0.3
			if f := b.finish(); f.ErrorCode != "" || b.desk.Stored() == nil {
				t.Errorf("finish = %+v, want a success", f)
			}
			b.gone()
		})
	}
}

// Somebody tidies up and removes the job directory while the worker trains.
func TestDirectoryIsRemoved(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "gate")
	b := newBench(t, append([]agenttest.Step{{"status", "training"}, {"wait", gate}}, agenttest.Good(1)...)...)
	wait := b.begin(t.Context())
	b.until("training")
	marker := b.handle().Marker
	if err := errors.Join(os.RemoveAll(b.o.Dir), os.WriteFile(gate, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	if f := b.desk.Finished(); f == nil || f.ErrorCode != "worker_failed" || !strings.Contains(f.Error, "was removed") || f.Hint == "" {
		t.Errorf("finish = %+v, want a sentence on the folder", f)
	}
	agenttest.Wait(b, "the end of every process of the job", func() (bool, string) {
		left := agenttest.Marked(marker)
		return len(left) == 0, join(left)
	})
}

func TestMemoryLimit(t *testing.T) {
	b := newBench(t, agenttest.Step{"child"}, agenttest.Step{"alloc", 400}, agenttest.Step{"sleep", 60})
	limit := int64(200)
	b.job.Spec.Limits.MaxRAMMB = &limit
	f := b.finish()
	if f.ErrorCode != "out_of_memory" || !strings.Contains(f.Error, "(200)") || !strings.Contains(f.Error, "MB") {
		t.Errorf("finish = %+v, want out_of_memory with the figures", f)
	}
	b.gone()

	// A model that is mapped from its file is not held in memory.
	b = newBench(t, append([]agenttest.Step{{"map", filepath.Join(t.TempDir(), "model"), 400}, {"sleep", 1}}, agenttest.Good(1)...)...)
	b.job.Spec.Limits.MaxRAMMB = &limit
	if f := b.finish(); f.ErrorCode != "" {
		t.Errorf("finish = %+v, want a success", f)
	}
}

// What a worker leaves behind does not hold up the end of the run, and does not survive it (T29, P8).
func TestLeftovers(t *testing.T) {
	b := newBench(t, append([]agenttest.Step{{"daemon", "ignores TERM"}, {"child", "ignores TERM"}}, agenttest.Good(1)...)...)
	f := b.finish()
	ended := time.Now()
	if f.ErrorCode != "" || b.desk.Stored() == nil {
		t.Errorf("finish = %+v, want a success", f)
	}
	for _, e := range b.desk.Events() {
		if e.Event != api.EventResult {
			continue
		}
		if after := float64(ended.UnixMicro())/1e6 - e.T; after > 1.5 {
			t.Errorf("the run ended %.2f s after its result", after)
		}
	}
	b.gone()
}

func TestShimIsKilled(t *testing.T) {
	b := newBench(t, append([]agenttest.Step{{"daemon", "ignores TERM"}, {"child", "ignores TERM"}, {"on_term", "ignore"}},
		append(agenttest.Good(1), agenttest.Step{"kill_shim"}, agenttest.Step{"sleep", 60})...)...)
	f := b.finish()
	if f.ErrorCode != "killed" || b.desk.Stored() != nil || f.ExitCode != nil {
		t.Errorf("finish = %+v, want killed and never a success", f)
	}
	b.gone()
}

func TestInterpreters(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	text := filepath.Join(dir, "text")
	for path, mode := range map[string]os.FileMode{plain: 0o600, text: 0o700} {
		if err := os.WriteFile(path, []byte("no program\x00"), mode); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct{ python, code, text string }{
		"missing":        {filepath.Join(dir, "python"), "python_missing", dir + "/python was not found on this machine"},
		"not on PATH":    {"no-such-python", "python_missing", "no-such-python was not found on this machine"},
		"a folder":       {dir, "python_missing", dir + " is a folder on this machine, not an interpreter"},
		"not executable": {plain, "python_missing", plain + " may not be executed on this machine"},
		"no program":     {text, "start_failed", text + " could not be started: exec format error"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, agenttest.Good(1)...)
			b.o.Python = test.python
			f := b.finish()
			if f.ErrorCode != test.code || f.Error != test.text || !strings.Contains(f.Hint, "`model_training.python`") {
				t.Errorf("code %q, error %q, hint %q; want %q, %q", f.ErrorCode, f.Error, f.Hint, test.code, test.text)
			}
		})
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("POTATO_TRAINING_TOKEN", "secret-1")
	t.Setenv("HF_TOKEN", "secret-2")
	t.Setenv("SOMETHING_ELSE", "secret-3")
	t.Setenv("OMP_NUM_THREADS", "64")
	t.Setenv("HF_HOME", "/models")
	file := filepath.Join(t.TempDir(), "env")
	b := newBench(t, append([]agenttest.Step{{"env", file}}, agenttest.Good(1)...)...)
	threads := 3
	b.job.Spec.Limits.NumThreads = &threads
	b.work()
	env := map[string]string{}
	readJSON(t, file, &env)
	for name, want := range map[string]string{
		"OMP_NUM_THREADS": "3", "MKL_NUM_THREADS": "3", "OPENBLAS_NUM_THREADS": "3", "HF_HOME": "/models", "PYTHONUNBUFFERED": "1",
		"POTATO_MARKER": b.handle().Marker, "PATH": os.Getenv("PATH"), "HF_TOKEN": "", "POTATO_TRAINING_TOKEN": "", "SOMETHING_ELSE": "",
	} {
		if env[name] != want {
			t.Errorf("%s = %q, want %q", name, env[name], want)
		}
	}
	for name, value := range env {
		if strings.Contains(value, "secret") {
			t.Errorf("the worker sees it in %s", name)
		}
	}
}

// A shim that dies before it claims its job has started nothing, so another one is started; and one that is only slow
// finds the job taken.
func TestShimThatNeverBegan(t *testing.T) {
	b := newBench(t, agenttest.Good(1)...)
	once := filepath.Join(t.TempDir(), "once")
	b.o.Shim = append([]string{"/bin/sh", "-c", `if [ -e "$0" ]; then exec "$@"; fi; : > "$0"; read -r line; exit 0`, once}, b.o.Shim...)
	if f := b.finish(); f.ErrorCode != "" {
		t.Errorf("finish = %+v, want a success", f)
	}
	if n := len(glob(t, filepath.Join(b.o.Dir, "shim.*.json"))); n != 2 {
		t.Errorf("%d claims, want one by the agent and one by the second shim", n)
	}
	b.o.Dir, b.desk = filepath.Join(t.TempDir(), "again"), &agenttest.Desk{}
	b.o.Desk, b.o.Shim = b.desk, []string{"/bin/true"}
	if f := b.finish(); f.ErrorCode != "start_failed" {
		t.Errorf("finish = %+v, want start_failed", f)
	}
}

func TestSpawnedEndsAreFinal(t *testing.T) {
	b := newBench(t, agenttest.Good(1)...)
	b.work()
	state, err := (agent.Process{}).State(t.Context(), b.handle())
	if err != nil || state.Phase != agent.StateEnded || *state.Exit.Code != 0 || state.Exit.MaxRSSMB <= 0 || state.Exit.FinishedAt == 0 {
		t.Errorf("state = %+v, %v", state, err)
	}
	// Killing what has ended is no error and hurts nobody.
	if err := (agent.Process{}).Signal(t.Context(), b.handle(), agent.SignalTerm); err != nil {
		t.Error(err)
	}
}
