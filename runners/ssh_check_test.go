package runners_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"potato/agent/agenttest"
	"potato/api"
	"potato/runners"
	"potato/runners/hosts"
	"potato/runners/hosts/hoststest"
	"potato/runners/runnertest"
)

// sshBackends are a study's backends on the rig: one for each transport, with lines of its own.
func sshBackends(t *testing.T, host string, lines ...string) string {
	t.Helper()
	text := "  backends:\n"
	for _, transport := range []string{hosts.TransportNative, hosts.TransportOpenSSH} {
		text += fmt.Sprintf("    %s:\n      type: ssh\n      host: %s\n      transport: %s\n", transport, host, transport)
		for _, l := range lines {
			text += "      " + l + "\n"
		}
	}
	return text
}

// bin is a folder of programs that ordinary accounts of this machine may run: stand-ins for what a host has.
func bin(t *testing.T, programs map[string]string) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "potato-bin-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for name, text := range programs {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func sshRunner(t *testing.T, training string) *runners.SSH {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return runners.NewSSH(runners.SSHOptions{Config: runnertest.Study(t, training), Hosts: hosts.Options{ConfigFile: hoststest.Get(t).Config}, Self: self})
}

// checked runs a check over both transports, which have to find the same.
func checked(t *testing.T, host, trainer string, lines []string, look func(t *testing.T, r api.CheckReport, took time.Duration)) {
	t.Helper()
	s := sshRunner(t, sshBackends(t, host, lines...))
	for _, transport := range []string{hosts.TransportNative, hosts.TransportOpenSSH} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			r := s.Check(t.Context(), runners.CheckOptions{Backend: transport, Trainer: trainer})
			look(t, r, time.Since(began))
		})
	}
}

func texts(r api.CheckReport) string {
	var b strings.Builder
	for _, i := range r.Items {
		fmt.Fprintf(&b, "%s %s: %s\n", i.Level, i.Topic, i.Text)
	}
	return b.String()
}

const smiScript = `#!/bin/sh
case $* in *compute_cap*) printf '%s' "$SMI_OUT"; exit ${SMI_CODE:-0};; *) exit 3;; esac`

// A check finds interpreter, GPUs, packages, room and clock whatever the login shell is (H5, N5, T22, T23).
func TestSSHCheckFinds(t *testing.T) {
	t.Parallel()
	dir := bin(t, map[string]string{
		"nvidia-smi": smiScript,
		"lib/torch.py": "__version__ = '2.9'\nclass cuda:\n    @staticmethod\n    def get_arch_list(): return ['sm_80', 'sm_90']\n" +
			"    @staticmethod\n    def is_available(): return False\n",
	})
	out := "0, NVIDIA A100, GPU-a, 81920, 5000, 7, 8.0, 535.1\\n1, Tesla K80, GPU-b, 11441, 11000, 0, 3.7, 535.1\\n"
	lines := []string{"python: /usr/bin/python3", fmt.Sprintf(`env: {PATH: "%s:/usr/bin:/bin", PYTHONPATH: %s/lib, SMI_OUT: "%s"}`, dir, dir, out), "min_free_gpu_mb: 4000"}
	for _, host := range []string{"target", "target-tcsh", "target-fish", "jumped"} {
		t.Run(host, func(t *testing.T) {
			// A folder of its own, in which no run has left code yet.
			fresh := append(slices.Clone(lines), "remote_dir: ~/.cache/potato-check-"+rand.Text())
			checked(t, host, runnertest.Trainer, fresh, func(t *testing.T, r api.CheckReport, _ time.Duration) {
				all := texts(r)
				for _, want := range []string{
					"ok ssh: logged in as potato", "ok python: Python 3.", "ok trainer: steered can train there", "ok gpu: GPU 0: NVIDIA A100, 5000 of 81920 MB free, 7 % busy\n",
					"warn gpu: GPU 1: Tesla K80, 11000 of 11441 MB free, 0 % busy (torch there has no kernels for it)", "ok driver: NVIDIA driver 535.1",
					"ok device: a run would get GPU 0 (NVIDIA A100)", "ok disk: ", "ok clock: the clocks agree", "are copied by the first run",
				} {
					if !strings.Contains(all, want) {
						t.Errorf("%q is missing in\n%s", want, all)
					}
				}
				if !r.OK || !strings.HasPrefix(r.Python, "3.") || len(r.GPUs) != 2 || !r.GPUs[0].Chosen || r.GPUs[1].Supported {
					t.Errorf("got %+v", r)
				}
			})
		})
	}
}

// What is wrong on a host, in the words of section 11 (H3, H5, H10, H12).
func TestSSHCheckRefuses(t *testing.T) {
	t.Parallel()
	hoststest.Get(t)
	dir := bin(t, map[string]string{
		"nvidia-smi": smiScript, "loose/python3": "#!/bin/sh\necho 'error while loading shared libraries: libpython3.8.so.1.0' >&2; exit 127\n",
		"old/python3": "#!/bin/sh\necho '{\"too_old\": \"3.6.9\"}'\n", "broken/python3": "#!/bin/sh\necho 'illegal instruction' >&2; exit 132\n",
	})
	env := func(more string) string { return fmt.Sprintf(`env: {PATH: "%s:/usr/bin:/bin"%s}`, dir, more) }
	python, mounted := "python: /usr/bin/python3", noexec(t)
	for name, c := range map[string]struct {
		trainer string
		lines   []string
		want    string
	}{
		"no interpreter":       {"", []string{"python: /opt/conda/bin/python3"}, "fail python: /opt/conda/bin/python3 was not found on target"},
		"no name on PATH":      {"", []string{"python: python2.8"}, "fail python: python2.8 was not found on target"},
		"not executable":       {"", []string{"python: /etc/passwd"}, "fail python: /etc/passwd on target is no program that may be executed"},
		"old interpreter":      {"", []string{"python: " + dir + "/old/python3"}, "is Python 3.6.9; Python 3.8 or newer is needed"},
		"broken interpreter":   {"", []string{"python: " + dir + "/broken/python3"}, "could not run the worker: illegal instruction"},
		"missing library":      {"", []string{"python: " + dir + "/loose/python3"}, "could not run the worker: error while loading shared libraries: libpython3.8.so.1.0"},
		"missing packages":     {"sklearn-text", []string{python}, "fail trainer: Trainer 'sklearn-text' could not be imported"},
		"unknown trainer":      {"nonsense", []string{python}, "fail trainer: there is no trainer 'nonsense'"},
		"driver mismatch":      {"", []string{python, env(`, SMI_CODE: 18, SMI_OUT: "Failed to initialize NVML: Driver/library version mismatch"`)}, "fail gpu: nvidia-smi on target failed: Failed to initialize NVML: Driver/library version mismatch"},
		"no such GPU":          {"", []string{python, `gpus: "7"`, env(`, SMI_OUT: "0, NVIDIA L4, GPU-a, 23034, 9000, 3, 8.9, 470.1"`)}, "fail gpu: GPU 7 is not on target (it has 0)"},
		"too little memory":    {"", []string{python, "min_free_gpu_mb: 10000", env(`, SMI_OUT: "0, NVIDIA L4, GPU-a, 23034, 9000, 3, 8.9, 470.1"`)}, "fail gpu: No GPU has 10000 MB free"},
		"unwritable folder":    {"", []string{python, "remote_dir: /etc/potato"}, "fail disk: /etc/potato on target cannot be written"},
		"a file in its place":  {"", []string{python, "remote_dir: /etc/passwd"}, "fail disk: /etc/passwd on target is no folder"},
		"programs may not run": {"", []string{python, "remote_dir: " + mounted}, "fail disk: programs may not run from " + mounted + " on target"},
	} {
		t.Run(name, func(t *testing.T) {
			checked(t, "target", c.trainer, c.lines, func(t *testing.T, r api.CheckReport, _ time.Duration) {
				if all := texts(r); r.OK || !strings.Contains(all, c.want) {
					t.Errorf("%q is missing in\n%s", c.want, all)
				}
				for _, i := range r.Items {
					if i.Level == api.CheckFail && i.Hint == "" {
						t.Errorf("nothing to do about %q", i.Text)
					}
				}
			})
		})
	}
}

// noexec mounts a file system from which programs may not run.
func noexec(t *testing.T) string { return mounted(t, unix.MS_NOEXEC, "size=300m,mode=1777") }

// smallDisk mounts a file system without room.
func smallDisk(t *testing.T) string { return mounted(t, 0, "size=1m,mode=1777") }

func mounted(t *testing.T, flags uintptr, options string) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "potato-mounted-")
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", flags, options); err != nil {
		t.Fatalf("cannot mount a file system: %v", err)
	}
	t.Cleanup(func() {
		if err := errors.Join(unix.Unmount(dir, 0), os.Remove(dir)); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// A check ends in time on a host where everything hangs, says what did, and leaves nothing running there (H5, T31).
func TestSSHCheckOfAHangingHost(t *testing.T) {
	t.Parallel()
	dir := bin(t, map[string]string{
		"nvidia-smi": "#!/bin/sh\ntrap '' TERM\nexec sleep 601.25\n", "python3": "#!/bin/sh\nexec sleep 601.25\n",
	})
	checked(t, "target", "", []string{"python: python3", fmt.Sprintf(`env: {PATH: "%s:/usr/bin:/bin"}`, dir)}, func(t *testing.T, r api.CheckReport, took time.Duration) {
		all := texts(r)
		for _, want := range []string{"fail python: python3 on target did not answer in time", "fail gpu: nvidia-smi on target failed: it is not answering", "ok disk"} {
			if !strings.Contains(all, want) {
				t.Errorf("%q is missing in\n%s", want, all)
			}
		}
		if took > 20*time.Second {
			t.Errorf("it took %v", took)
		}
		agenttest.Wait(t, "the end of what the check started", func() (bool, string) {
			out, _ := exec.Command("pgrep", "-f", "sleep 601.25").Output()
			return len(out) == 0, string(out)
		})
	})
}

// The report of a host that cannot be reached says why.
func TestSSHCheckOfAnUnreachableHost(t *testing.T) {
	t.Parallel()
	checked(t, "nosuch.invalid", "", nil, func(t *testing.T, r api.CheckReport, _ time.Duration) {
		want := "no run can start there: ssh to nosuch.invalid failed: Could not resolve hostname nosuch.invalid"
		if r.OK || r.Summary != want || len(r.Items) != 1 || r.Items[0].Hint == "" {
			t.Errorf("got %+v, want %s", r, want)
		}
	})
}
