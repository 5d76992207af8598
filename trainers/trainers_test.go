package trainers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"potato/api"
	"potato/trainers"
)

// python is the interpreter that tests train with; it has scikit-learn under `make`.
func python(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("POTATO_TEST_PYTHON"), "python3"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("neither POTATO_TEST_PYTHON nor python3 on PATH is an interpreter")
	return ""
}

// olderPython looks for an interpreter that is too old to train.
func olderPython(t *testing.T) string {
	t.Helper()
	home, _ := os.UserHomeDir()
	for _, version := range []string{"2.7", "3.7", "3.6"} {
		if path, err := exec.LookPath("python" + version); err == nil && exec.Command(path, "-c", "0").Run() == nil {
			return path
		}
		if found, _ := filepath.Glob(filepath.Join(home, ".pyenv/versions", version+".*", "bin/python")); len(found) > 0 {
			return found[0]
		}
	}
	return ""
}

func TestDescribe(t *testing.T) {
	study := t.TempDir()
	write(t, filepath.Join(study, "mine.py"), "TRAINER = {'name': 'mine', 'description': 'd', 'kinds': ['span']}\ndef train(job):\n    yield\n", 0o600)
	write(t, filepath.Join(study, "bad.py"), "def train(:\n", 0o600)
	said, err := trainers.Describe(t.Context(), trainers.DescribeOptions{
		Python: python(t), Dir: t.TempDir(), TrainersDir: study, Device: "cpu", Env: []string{"OMP_NUM_THREADS=8"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(said.Python, "3.") || said.Executable == "" {
		t.Errorf("python %q, executable %q", said.Python, said.Executable)
	}
	if said.Device == nil || said.Device.Name != "cpu" || said.Device.Text != "CPU (8 threads)" {
		t.Errorf("device %+v", said.Device)
	}
	byName := map[string]api.Trainer{}
	for _, each := range said.Trainers {
		byName[each.Name] = each
	}
	text := byName["sklearn-text"]
	if text.Source != "built-in" || len(text.Kinds) != 3 || text.Params["additionalProperties"] != false || text.Available != (len(text.MissingPackages) == 0) {
		t.Errorf("sklearn-text: %+v", text)
	}
	if mine := byName["mine"]; mine.Source != "study" || !mine.Available || mine.Kinds[0] != api.KindSpan {
		t.Errorf("mine: %+v", mine)
	}
	if bad := byName["bad.py"]; bad.Available || !strings.Contains(bad.UnavailableReason, "line 1 is not valid Python") {
		t.Errorf("bad.py: %+v", bad)
	}
}

// TestTrainerHasNoKeyUnsaid holds api.Trainer and what Python says of a trainer together.
func TestTrainerHasNoKeyUnsaid(t *testing.T) {
	path, err := trainers.Materialise(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(python(t), path, "--describe", "--devices", "cpu").Output()
	if err != nil {
		t.Fatal(err)
	}
	var said, known map[string]any
	if err := json.Unmarshal(out, &said); err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(api.Environment{Device: &api.Device{}, Trainers: []api.Trainer{{}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(encoded, &known); err != nil {
		t.Fatal(err)
	}
	same(t, "environment", said, known)
	same(t, "device", said["device"].(map[string]any), known["device"].(map[string]any))
	same(t, "trainer", said["trainers"].([]any)[0].(map[string]any), known["trainers"].([]any)[0].(map[string]any))
}

func same(t *testing.T, what string, said, known map[string]any) {
	t.Helper()
	for key := range said {
		if _, ok := known[key]; !ok {
			t.Errorf("%s: Python says %q, which api does not know", what, key)
		}
	}
	for key := range known {
		if _, ok := said[key]; !ok {
			t.Errorf("%s: api has %q, which Python does not say", what, key)
		}
	}
}

func TestDescribeRefusals(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "plain"), "#!/bin/sh\n", 0o600)
	fails := write(t, filepath.Join(dir, "fails"), "#!/bin/sh\necho 'no module named encodings' >&2\nexit 1\n", 0o700)
	talks := write(t, filepath.Join(dir, "talks"), "#!/bin/sh\necho hello\n", 0o700)
	hangs := write(t, filepath.Join(dir, "hangs"), "#!/bin/sh\nexec sleep 600\n", 0o700)
	for _, c := range []struct{ python, code, message string }{
		{"/x/python", "python_missing", "/x/python was not found on this machine"},
		{"no-such-python", "python_missing", "no-such-python was not found on this machine"},
		{file, "python_missing", file + " may not be executed on this machine"},
		{dir, "python_missing", dir + " is a folder on this machine, not an interpreter"},
		{file + "/python", "python_missing", file + "/python was not found on this machine"},
		{fails, "start_failed", fails + " could not run the worker: no module named encodings"},
		{talks, "start_failed", talks + " could not run the worker: its answer is not JSON"},
		{hangs, "start_failed", hangs + " did not answer within 300ms"},
	} {
		began := time.Now()
		_, err := trainers.Describe(t.Context(), trainers.DescribeOptions{Python: c.python, Dir: t.TempDir(), Timeout: 300 * time.Millisecond})
		e := api.AsError(err)
		if e == nil || e.Code != c.code || e.Message != c.message || e.Hint == "" {
			t.Errorf("%s: %+v", c.python, e)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s took %v", c.python, took)
		}
	}
}

func TestDescribeSaysThatPythonIsTooOld(t *testing.T) {
	old := olderPython(t)
	if old == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("no Python before 3.8 on this machine")
		}
		t.Skip("no Python before 3.8 on this machine")
	}
	_, err := trainers.Describe(t.Context(), trainers.DescribeOptions{Python: old, Dir: t.TempDir()})
	e := api.AsError(err)
	if e == nil || e.Code != "python_too_old" || !strings.HasSuffix(e.Message, "; Python 3.8 or newer is needed") || !strings.Contains(e.Hint, "model_training.python") {
		t.Errorf("%+v", e)
	}
}

func TestDescribeCanBeCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := trainers.Describe(ctx, trainers.DescribeOptions{Python: python(t), Dir: t.TempDir()})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestDescribeBoundsWhatAnInterpreterSays: one that prints without end is ended, with all that it started, and what it
// printed does not pile up in memory.
func TestDescribeBoundsWhatAnInterpreterSays(t *testing.T) {
	dir := t.TempDir()
	wild := filepath.Join(dir, "wild")
	write(t, wild, "#!/bin/sh\n(while :; do sleep 1; done) & echo $! >"+dir+"/child\nyes a line that is repeated for ever\n", 0o700)
	most, stop := watchHeap(t)
	_, err := trainers.Describe(t.Context(), trainers.DescribeOptions{Python: wild, Dir: t.TempDir(), Timeout: time.Second})
	stop()
	var refusal *api.Error
	if !errors.As(err, &refusal) || !strings.Contains(refusal.Message, "did not answer within 1s") {
		t.Errorf("got %v", err)
	}
	if got, want := *most, uint64(64<<20); got > want {
		t.Errorf("the answer filled %d bytes of memory, more than %d", got, want)
	}
	text, err := os.ReadFile(filepath.Join(dir, "child"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); runs(pid); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatalf("process %d, which the interpreter started, is still there", pid)
		}
	}
}

// runs reports whether a process is there; one that ended and that nobody reaped is not.
func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err == nil && strings.Contains(string(stat), ") Z ") {
		return false
	}
	return syscall.Kill(pid, 0) == nil
}

// watchHeap notes the largest heap until it is stopped.
func watchHeap(t *testing.T) (most *uint64, stop func()) {
	t.Helper()
	most = new(uint64)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			*most = max(*most, m.HeapAlloc)
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return most, func() { close(done); <-ended }
}

func TestMaterialise(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "code")
	var callers sync.WaitGroup
	paths := make([]string, 8)
	for i := range paths {
		callers.Go(func() {
			var err error
			if paths[i], err = trainers.Materialise(dir); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	want := filepath.Join(dir, trainers.Hash(), "potato_trainers", "worker.py")
	for _, path := range paths {
		if path != want {
			t.Errorf("%s, want %s", path, want)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		about, err := d.Info()
		if perm := about.Mode().Perm(); d.IsDir() && perm != 0o700 || !d.IsDir() && perm != 0o600 {
			t.Errorf("%s has mode %o", path, perm)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(want)
	if err != nil {
		t.Fatal(err)
	}
	// What a cleaner of old files took is put back; what is there is left alone.
	gone := filepath.Join(filepath.Dir(want), "builtin", "sklearn_text.py")
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	if _, err := trainers.Materialise(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(gone); err != nil {
		t.Error(err)
	}
	if after, err := os.Stat(want); err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("worker.py was written again: %v", err)
	}
}

// TestEveryFileIsEmbedded fails when a folder is added to the package and not to the embed patterns.
func TestEveryFileIsEmbedded(t *testing.T) {
	var there, in []string
	collect := func(list *[]string) fs.WalkDirFunc {
		return func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && strings.HasSuffix(path, ".py") {
				*list = append(*list, path)
			}
			return err
		}
	}
	if err := fs.WalkDir(os.DirFS("."), "potato_trainers", collect(&there)); err != nil {
		t.Fatal(err)
	}
	if err := fs.WalkDir(trainers.Files(), ".", collect(&in)); err != nil {
		t.Fatal(err)
	}
	if strings.Join(there, "\n") != strings.Join(in, "\n") {
		t.Errorf("in the folder: %v\nembedded: %v", there, in)
	}
}

func TestValidateParams(t *testing.T) {
	content, err := os.ReadFile("testdata/params.json")
	if err != nil {
		t.Fatal(err)
	}
	var table []struct {
		About  string         `json:"about"`
		Schema map[string]any `json:"schema"`
		Cases  []struct {
			Params   map[string]any `json:"params"`
			Problems []api.Problem  `json:"problems"`
		} `json:"cases"`
	}
	if err := json.Unmarshal(content, &table); err != nil {
		t.Fatal(err)
	}
	for _, group := range table {
		for _, c := range group.Cases {
			got, want := encode(t, trainers.ValidateParams(group.Schema, c.Params)), encode(t, c.Problems)
			if got != want {
				t.Errorf("%s: %s:\n got %s\nwant %s", group.About, encode(t, c.Params), got, want)
			}
		}
	}
	yaml := map[string]any{"n": uint64(3), "m": int64(-1)}
	schema := map[string]any{"properties": map[string]any{"n": map[string]any{"type": "integer"}, "m": map[string]any{"minimum": 0}}}
	if got := encode(t, trainers.ValidateParams(schema, yaml)); got != `[{"path":"params.m","message":"m must be at least 0"}]` {
		t.Error(got)
	}
}

func encode(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestCheckDir(t *testing.T) {
	study := t.TempDir()
	output := filepath.Join(study, "annotation_output")
	folder := func(name string, mode os.FileMode) string {
		path := filepath.Join(study, name)
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil { // the umask does not let MkdirAll give it
			t.Fatal(err)
		}
		return path
	}
	good := folder("trainers", 0o755)
	write(t, filepath.Join(good, "mine.py"), "", 0o644)
	write(t, filepath.Join(good, "notes.txt"), "", 0o666)
	open := folder("open", 0o777)
	sticky := folder("sticky", 0o777|os.ModeSticky)
	loose := folder("loose", 0o700)
	write(t, filepath.Join(loose, "mine.py"), "", 0o666)
	inside := folder("annotation_output/trainers", 0o700)
	linked := filepath.Join(study, "linked")
	if err := os.Symlink(inside, linked); err != nil {
		t.Fatal(err)
	}
	links := folder("links", 0o700)
	target := write(t, filepath.Join(output, "planted.py"), "", 0o600)
	if err := os.Symlink(target, filepath.Join(links, "mine.py")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ dir, said string }{
		{good, ""},
		{folder("annotation_output-2", 0o700), ""},
		{folder("sticky/mine", 0o700), ""},
		{filepath.Join(study, "nope"), "does not exist"},
		{filepath.Join(good, "mine.py"), "cannot be read"},
		{open, "can be written by every user"},
		{sticky, "can be written by every user"},
		{folder("open/mine", 0o700), open + " can be written by every user"},
		{loose, "mine.py can be written by every user"},
		{output, "below the annotation output"},
		{inside, "below the annotation output"},
		{linked, "below the annotation output"},
		{links, "mine.py of trainers_dir lies below the annotation output"},
	} {
		err := trainers.CheckDir(c.dir, output)
		if c.said == "" && err != nil {
			t.Errorf("%s: %v", c.dir, err)
		}
		if c.said != "" && (err == nil || !strings.Contains(err.Error(), c.said) || !api.HasCode(err, "trainers_dir")) {
			t.Errorf("%s: %v, want %q", c.dir, err, c.said)
		}
	}
}

func write(t *testing.T, path, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // the umask does not let WriteFile give it
		t.Fatal(err)
	}
	return path
}
