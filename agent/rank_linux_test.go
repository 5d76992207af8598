package agent_test

import (
	"fmt"
	"testing"

	"potato/agent/agenttest"
)

// Nothing is left to hold a GPU when the launcher itself is killed.
func TestRanksEndWithTheirLauncher(t *testing.T) {
	t.Parallel()
	r := newRanks(t, true, stays)
	l := r.start(nil, "--ranks", "2")
	pid := r.rank1()
	if err := l.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	r.end(l)
	agenttest.Wait(t, "the end of rank 1", func() (bool, string) {
		p, ok := stat(pid)
		return !ok || p.state == "Z", fmt.Sprint(pid, p)
	})
}
