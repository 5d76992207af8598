package agent

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// A scheduler's USR1 may come while the worker's interpreter is only starting, and must not end it (Q10). What ends a worker
// politely is at its default there.
func TestWorkerStartsWithUSR1Ignored(t *testing.T) {
	// In a process of its own: a shim reaps every child.
	if os.Getenv("POTATO_TEST_ALONE") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
		cmd.Env = append(os.Environ(), "POTATO_TEST_ALONE=1")
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		return
	}
	out := filepath.Join(t.TempDir(), "status")
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	s := newShim("test-usr1")
	if err := s.start([]string{"/bin/cp", "/proc/self/status", out}, os.Environ(), "/", []*os.File{null, null, null}); err != nil {
		t.Fatal(err)
	}
	<-s.gone
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "SigIgn:")
	mask, err := strconv.ParseUint(strings.TrimSpace(strings.SplitN(rest, "\n", 2)[0]), 16, 64)
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	ignored := func(sig syscall.Signal) bool { return mask&(1<<(sig-1)) != 0 }
	if !ignored(syscall.SIGUSR1) || ignored(syscall.SIGTERM) || ignored(syscall.SIGINT) || ignored(syscall.SIGHUP) || ignored(syscall.SIGPIPE) {
		t.Errorf("ignored are the signals of %x, want USR1 alone of those the shim knows", mask)
	}
}
