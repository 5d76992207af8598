package e2e_test

import (
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// check runs `potato training check` on a study and returns what it prints and its exit code.
func (st sshStudy) check(args ...string) (string, int) {
	st.t.Helper()
	args = append(append([]string{"training", "check"}, args...), filepath.Join(st.dir, "config.yaml"), "--ssh-config", st.rig.Config)
	out, err := exec.Command(potato(st.t), args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return string(out), exit.ExitCode()
	}
	if err != nil {
		st.t.Fatal(err)
	}
	return string(out), 0
}

// H5, N5: the check of a host, as text and as JSON; no server runs.
func TestSSHCheckCommand(t *testing.T) {
	t.Parallel()
	st := newSSHStudy(t)
	for _, backend := range []string{"native", "openssh", "jumped"} {
		text, code := st.check(backend)
		if code != 0 {
			t.Errorf("%s: exit code %d: %s", backend, code, text)
		}
		for _, want := range []string{`logged in as potato\w+@127\.0\.0\.1:\d+`, `Python 3\.\d+\.\d+ \(/usr/bin/python3\)`, `\d+ MB are free at /home/potato`, `the clocks agree`, `the CPU`} {
			if !regexp.MustCompile(want).MatchString(text) {
				t.Errorf("%s: nothing matches %s in\n%s", backend, want, text)
			}
		}
		if strings.ContainsRune(text, '\x1b') {
			t.Errorf("%s: the host's escapes came through: %q", backend, text)
		}
	}
	text, code := st.check("native", "--json")
	var report struct {
		Backend string `json:"backend"`
		OK      bool   `json:"ok"`
		Python  string `json:"python"`
		Items   []struct {
			Level string `json:"level"`
			Topic string `json:"topic"`
		} `json:"items"`
	}
	if err := json.Unmarshal([]byte(text), &report); err != nil || code != 0 || !report.OK || report.Backend != "native" || report.Python == "" || len(report.Items) < 5 {
		t.Errorf("exit code %d, %v: %s", code, err, text)
	}
	write(t, st.dir, "config.yaml", strings.Replace(read(t, filepath.Join(st.dir, "config.yaml")), "host: target,", "host: passwords,", 1))
	text, code = st.check("native")
	if code != 1 || !strings.Contains(text, "ssh to passwords failed: Permission denied (it accepts no keys, only passwords or codes)") {
		t.Errorf("exit code %d: %s", code, text)
	}
}
