package runners_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"potato/api"
	"potato/project"
	"potato/runners"
	"potato/runners/hosts"
	"potato/runners/hosts/hoststest"
	"potato/runners/runnertest"
)

// hostRun is a run up to where its agent would begin, with what it says on its way.
type hostRun struct {
	mu    sync.Mutex
	steps []string
	said  []string
}

func (h *hostRun) add(to *[]string, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	*to = append(*to, text)
}

func (h *hostRun) text() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(append(append([]string{}, h.steps...), h.said...), "\n")
}

func startOn(t *testing.T, c *project.Config) (*hostRun, api.Handle, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := runners.NewSSH(runners.SSHOptions{Config: c, Hosts: hosts.Options{ConfigFile: hoststest.Get(t).Config}, Agent: self})
	defer r.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	h := &hostRun{}
	handle, err := r.Start(ctx, runners.Job{
		Job: api.Job{RunID: api.NewRunID(time.Now()), GraceSeconds: 1}, Backend: "box", Save: func(api.Handle) error { return nil },
		Step: func(text string) { h.add(&h.steps, text) }, Say: func(text string) { h.add(&h.said, text) },
	})
	return h, handle, err
}

// H2: the listed packages are installed once into an environment that shows the host's own, also for runs that begin at the
// same moment; code is copied once.
func TestSSHPackagesAreInstalledOnce(t *testing.T) {
	t.Parallel()
	hoststest.Get(t)
	dir := bin(t, nil)
	home, err := hoststest.Home(hoststest.Bash)
	if err != nil {
		t.Fatal(err)
	}
	package1 := filepath.Join(dir, filepath.Base(runnertest.Wheel(t)))
	if out, err := exec.Command("cp", runnertest.Wheel(t), package1).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	remote := "potato-" + filepath.Base(dir)
	t.Cleanup(func() { _ = os.RemoveAll(filepath.Join(home, remote)) })
	c := runnertest.Study(t, fmt.Sprintf("  backends:\n    box: {type: ssh, host: target, python: /usr/bin/python3, gpus: none, remote_dir: %s, packages: [%q]}\n", remote, package1))
	var both sync.WaitGroup
	texts := make([]string, 2)
	for i := range texts {
		both.Go(func() {
			h, _, err := startOn(t, c)
			if err != nil {
				t.Errorf("start: %v", err)
			}
			texts[i] = h.text()
		})
	}
	both.Wait()
	if n := strings.Count(strings.Join(texts, "\n"), "installing "); n != 1 {
		t.Errorf("the packages were installed %d times: %s", n, texts)
	}
	h, handle, err := startOn(t, c)
	if err != nil {
		t.Fatal(err)
	}
	if text := h.text(); strings.Contains(text, "copying") || strings.Contains(text, "installing") || strings.Contains(text, "environment") {
		t.Errorf("the third run did it again: %s", text)
	}
	plan, err := os.ReadFile(filepath.Join(handle.Dir, "plan.json"))
	if err != nil || !strings.Contains(string(plan), "/venv-") {
		t.Errorf("the plan is %s, %v", plan, err)
	}
	venvs, _ := filepath.Glob(filepath.Join(home, remote, "venv-*", "bin", "python"))
	if len(venvs) != 1 {
		t.Fatalf("environments: %q", venvs)
	}
	if out, err := exec.Command(venvs[0], "-c", "import potato_probe").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// The reasons for which no run can start on a host, with their codes (H3, H12, T27, section 11).
func TestSSHStartRefuses(t *testing.T) {
	t.Parallel()
	hoststest.Get(t)
	dir, mounted, full := bin(t, map[string]string{"nvidia-smi": smiScript}), noexec(t), smallDisk(t)
	env := func(more string) string { return fmt.Sprintf(`env: {PATH: "%s:/usr/bin:/bin"%s}`, dir, more) }
	for name, c := range map[string]struct{ line, code, text string }{
		"python_missing":   {"python: /opt/conda/bin/python3", "python_missing", "/opt/conda/bin/python3 was not found on target"},
		"no_gpu_free":      {"min_free_gpu_mb: 4000, " + env(`, SMI_OUT: "0, NVIDIA L4, GPU-a, 23034, 900, 3, 8.9, 470.1"`), "no_gpu_free", "No GPU has 4000 MB free"},
		"gpu_probe_failed": {env(`, SMI_CODE: 9, SMI_OUT: "NVIDIA-SMI has failed"`), "gpu_probe_failed", "nvidia-smi on target failed: NVIDIA-SMI has failed"},
		"gpu_missing":      {`gpus: "7"`, "gpu_missing", "GPU 7 is not on target (it has none)"},
		"host_noexec":      {"remote_dir: " + mounted, "host_noexec", "programs may not run from " + mounted + " on target (it is mounted noexec)"},
		"disk_full":        {"remote_dir: " + full, "disk_full", "only"},
		"packages":         {"gpus: none, packages: [/nowhere/nothing-1.0-py3-none-any.whl]", "missing_dependency", "the environment for `packages` could not be made on target"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := startOn(t, runnertest.Study(t, "  backends:\n    box: {type: ssh, host: target, "+c.line+"}\n"))
			if e := api.AsError(runners.WithHint(api.AsError(err))); e == nil || e.Code != c.code || !strings.HasPrefix(e.Message, c.text) || e.Hint == "" {
				t.Errorf("got %v, want %s: %s", err, c.code, c.text)
			}
		})
	}
}
