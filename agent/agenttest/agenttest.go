// Package agenttest has what tests of agents and runners share: a server in memory that can fail in all the ways a real
// one does, and a worker that does what a test's script says.
package agenttest

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"potato/agent"
	"potato/api"
)

//go:embed worker.py
var workerSource []byte

// Main is a test program's TestMain: it is the shim when it is started as one, and runs the tests otherwise. Shim is the
// argv that starts it so.
func Main(run func() int) {
	if len(os.Args) > 1 && os.Args[1] == "rank" {
		os.Exit(agent.Rank(os.Args[2:], os.Stderr))
	}
	if len(os.Args) == 2 {
		switch os.Args[1] {
		case shimArg:
			os.Exit(agent.Exec(os.Stdin))
		case "hosted":
			os.Exit(agent.Hosted(os.Stdin, os.Stdout))
		case "stop":
			os.Exit(agent.Stop(os.Stdin))
		}
	}
	os.Exit(run())
}

const shimArg = "exec"

// Shim is the argv of the test program as a shim; its TestMain must call Main.
func Shim(tb testing.TB) []string {
	tb.Helper()
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	// A program built with -race lingers for a second when it ends, unless it is told not to.
	return []string{"/usr/bin/env", "GORACE=atexit_sleep_ms=0", self, shimArg}
}

// Worker writes the test worker into a folder and returns its path.
func Worker(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "worker.py")
	if err := os.WriteFile(path, workerSource, 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

// Python is a Python 3 on PATH.
func Python(tb testing.TB) string {
	tb.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		tb.Fatal("these tests need python3 on PATH")
	}
	// Not a wrapper script, which would add its own start-up and processes to each run.
	real, err := exec.Command(path, "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		tb.Fatalf("python3: %v", err)
	}
	return strings.TrimSpace(string(real))
}

// Step is one step of the test worker: its name and arguments, see worker.py.
type Step []any

// Job is a job whose worker does the steps.
func Job(steps ...Step) api.Job {
	return api.Job{
		RunID: api.NewRunID(time.Now()), Lease: "lease-1", GraceSeconds: 5, HeartbeatTimeoutS: 120, NextSeq: 1,
		Spec: api.Spec{Trainer: "test", Attempt: 1, Params: map[string]any{"script": steps}},
	}
}

// Good are the last steps of a worker that succeeds with n predictions.
func Good(n int) []Step { return []Step{{"predictions", n}, {"result"}} }

// Wait calls done until it reports true, and fails with the last state after a bounded time.
func Wait(tb testing.TB, what string, done func() (bool, string)) {
	tb.Helper()
	var state string
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		var ok bool
		if ok, state = done(); ok {
			return
		}
	}
	tb.Fatalf("waited for %s; the last state was: %s", what, state)
}
