package agent_test

import (
	"strings"
	"syscall"
	"testing"

	"potato/agent"
	"potato/agent/agenttest"
	"potato/agent/slurmtest"
)

// What stops a whole cluster, or asks for one of another kind, has its own.
func TestSlurmOnAClusterOfItsOwn(t *testing.T) {
	t.Parallel()
	slurmtest.Require(t)
	lines := "MessageTimeout=2\nTCPTimeout=1\n"
	if slurmtest.HasCgroups() {
		lines += slurmtest.Cgroups
	}
	own, err := slurmtest.Start(1, lines)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.Stop)
	anyNode := func(c *agent.SlurmConfig) { c.Exclude = "" }

	// T05: the controller hangs while the job is submitted, and takes it all the same once it goes on.
	t.Run("controller hangs", func(t *testing.T) {
		b := newSlurmBenchOn(t, own, anyNode, agenttest.Good(1)...)
		must(t, own.Signal("slurmctld", syscall.SIGSTOP))
		done := b.start()
		b.says("Socket timed out")
		must(t, own.Signal("slurmctld", syscall.SIGCONT))
		b.succeeds(b.ends(done))
		if ids := strings.Fields(b.queue("%i")); len(ids) != 1 {
			t.Errorf("jobs %v", ids)
		}
	})

	// T03: the controller is away while the job runs, and comes back without having forgotten it.
	t.Run("controller restarts", func(t *testing.T) {
		path := t.TempDir() + "/go"
		b := newSlurmBenchOn(t, own, anyNode, append([]agenttest.Step{{"status", "ready"}, {"wait", path}}, agenttest.Good(1)...)...)
		done := b.start()
		b.says("ready")
		must(t, own.Signal("slurmctld", syscall.SIGTERM))
		b.says("SLURM job " + b.id() + ": the scheduler has not answered since ")
		must(t, own.StartController())
		b.says("SLURM job " + b.id() + ": RUNNING")
		touch(t, path)
		b.succeeds(b.ends(done))
	})

	t.Run("out of memory", func(t *testing.T) {
		b := newSlurmBenchOn(t, own, func(c *agent.SlurmConfig) { anyNode(c); c.Mem = "60M" }, agenttest.Step{"alloc", 300}, agenttest.Step{"sleep", 600})
		b.blames(b.ends(b.start()), "out_of_memory", "SLURM job "+b.id()+" ended before the worker finished: it ran out of memory", "`mem`")
	})
}
