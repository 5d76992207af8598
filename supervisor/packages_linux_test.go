package supervisor_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"potato/agent/agenttest"
	"potato/runners/runnertest"
)

// TestServerKilledWhileItInstalls kills the server while an environment is made: the next one makes it alone.
func TestServerKilledWhileItInstalls(t *testing.T) {
	t.Parallel()
	c := runnertest.Study(t, "  packages: [potato-probe]\n")
	begun := filepath.Join(c.Dir, "begun")
	python := filepath.Join(c.Dir, "python")
	script := fmt.Sprintf("#!/bin/sh\ncase \"$*\" in *venv*) echo $$ >>%s; exec sleep 600;; esac\nexec %s \"$@\"\n", begun, runnertest.Python(t))
	must(t, os.WriteFile(python, []byte(script), 0o700))
	config, err := os.ReadFile(c.File)
	must(t, err)
	must(t, os.WriteFile(c.File, []byte(strings.ReplaceAll(string(config), runnertest.Python(t), python)), 0o600))
	self, err := os.Executable()
	must(t, err)
	makers := func() (pids []int) {
		text, _ := os.ReadFile(begun)
		for _, line := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(line)
			must(t, err)
			pids = append(pids, pid)
		}
		return pids
	}
	for round := 1; round <= 2; round++ {
		server := exec.Command(self, serveArg, c.File)
		server.Stderr = testWriter{t}
		must(t, server.Start())
		agenttest.Wait(t, "the environment to be made", func() (bool, string) { return len(makers()) == round, fmt.Sprint(makers()) })
		must(t, server.Process.Kill())
		_ = server.Wait() // killed, as it should be
	}
	for _, pid := range makers() {
		agenttest.Wait(t, "its maker to be gone", func() (bool, string) { return syscall.Kill(pid, 0) != nil, strconv.Itoa(pid) })
	}
}
