package agent_test

import (
	"strings"
	"testing"
	"time"

	"potato/agent"
	"potato/agent/agenttest"
	"potato/api"
)

// Q7: a job that waits is cancelled at once.
func TestSlurmCancelWhilePending(t *testing.T) {
	b := newSlurmBench(t, func(c *agent.SlurmConfig) { c.SbatchArgs = []string{"--begin=now+600"} }, agenttest.Good(1)...)
	done := b.start()
	b.says("SLURM job " + b.id() + ": PENDING (BeginTime)")
	if last := last(b.desk.Events(), api.EventStatus); last.State != "pending" {
		t.Errorf("the state while it waits is %q", last.State)
	}
	began := time.Now()
	b.desk.Cancel(time.Minute)
	f := b.ends(done)
	if !f.Cancelled || f.ErrorCode != "" || time.Since(began) > 10*time.Second {
		t.Errorf("%+v after %v", f, time.Since(began))
	}
	if state := b.queue("%T"); state != "CANCELLED" {
		t.Errorf("the job is %s", state)
	}
}

// A cancel comes while it is not known whether sbatch has landed. What lands after it trains nothing.
func TestSlurmCancelBeforeTheJobIsKnown(t *testing.T) {
	dir := t.TempDir()
	b := newSlurmBench(t, once(dir), agenttest.Good(1)...)
	b.wrap("sbatch", `(while [ ! -e `+dir+`/go ]; do sleep 0.1; done; exec "$real" "$@") >/dev/null 2>&1 &
echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2; exit 1`)
	done := b.start()
	b.says("It is not clear whether SLURM has the job")
	b.desk.Cancel(time.Minute)
	if f := b.ends(done); !f.Cancelled {
		t.Errorf("%+v", f)
	}
	touch(t, dir+"/go")
	b.until("COMPLETED")
	if trained := glob(t, dir+"/[0-9]*"); len(trained) != 0 {
		t.Errorf("%v trained", trained)
	}
}

// A worker that heeds TERM has its grace, and the end of the job is not waited for longer than it takes.
func TestSlurmCancelWhileRunning(t *testing.T) {
	b := newSlurmBench(t, nil, agenttest.Step{"on_term", "report"}, agenttest.Step{"child"}, agenttest.Step{"status", "ready"}, agenttest.Step{"sleep", 600})
	done := b.start()
	b.says("ready")
	b.desk.Cancel(20 * time.Second)
	f := b.ends(done)
	if !f.Cancelled || f.ExitCode == nil || *f.ExitCode != 4 {
		t.Errorf("%+v, want a cancel with the worker's own exit", f)
	}
	b.gone()
}

func TestSlurmCancelOfAWorkerThatIgnoresIt(t *testing.T) {
	b := newSlurmBench(t, nil, agenttest.Step{"on_term", "ignore"}, agenttest.Step{"child", "too"}, agenttest.Step{"status", "ready"}, agenttest.Step{"sleep", 600})
	done := b.start()
	b.says("ready")
	began := time.Now()
	b.desk.Cancel(time.Second)
	f := b.ends(done)
	if !f.Cancelled {
		t.Errorf("%+v", f)
	}
	b.gone()
	if took := time.Since(began); took > 12*time.Second { // grace 1 s, KillWait 2 s, and 5 s (F2), on a busy machine
		t.Errorf("it took %v", took)
	}
}

// H11, Q7: a server that is lost ends the job; no GPU is held for nobody.
func TestSlurmServerLost(t *testing.T) {
	b := newSlurmBench(t, nil, agenttest.Step{"status", "ready"}, agenttest.Step{"sleep", 600})
	gone := newSwitch()
	b.desk.Refuse = gone.refuse
	b.o.ServerLossTimeout, b.o.LastWords = 2*time.Second, 200*time.Millisecond
	done := b.start()
	b.says("ready")
	gone.on()
	if err := <-done; !api.HasCode(err, "server_unreachable") {
		t.Errorf("Work: %v", err)
	}
	b.gone()
	b.until("CANCELLED", "FAILED")
}

// With detach the agent leaves and the job goes on; whoever comes next finds it.
func TestSlurmDetachedJobGoesOn(t *testing.T) {
	path := t.TempDir() + "/go"
	b := newSlurmBench(t, func(c *agent.SlurmConfig) { c.Detach = true }, append([]agenttest.Step{{"status", "ready"}, {"wait", path}}, agenttest.Good(2)...)...)
	gone := newSwitch()
	b.desk.Refuse = gone.refuse
	b.settings.LeaseSlack = time.Second // if there were a lease
	b.launch(b.settings)
	b.o.Detach, b.o.ServerLossTimeout, b.o.LastWords, b.o.LeaseTimeout = true, 2*time.Second, 200*time.Millisecond, time.Second
	done := b.start()
	b.says("ready")
	gone.on()
	if err := <-done; !api.HasCode(err, "server_unreachable") || !strings.Contains(err.Error(), "goes on") {
		t.Errorf("Work: %v", err)
	}
	// Longer than any lease.
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if state := b.queue("%T"); state != "RUNNING" {
			t.Fatalf("the job is %s", state)
		}
	}
	gone.off()
	b.launch(b.settings)
	b.o.ServerLossTimeout = time.Minute
	b.job.NextSeq = b.desk.NextSeq()
	touch(t, path)
	if f := b.ends(b.start()); f.ErrorCode != "" || f.Cancelled {
		t.Errorf("%+v", f)
	}
}

// A login node that died says nothing, and nobody is left to cancel: the compute node ends the worker by itself.
func TestSlurmSilentLoginNode(t *testing.T) {
	b := newSlurmBench(t, nil, agenttest.Step{"status", "ready"}, agenttest.Step{"sleep", 600})
	b.settings.LeaseSlack = time.Second
	b.launch(b.settings)
	b.o.LeaseTimeout = time.Second
	leave := b.startUntil()
	b.says("ready")
	leave()
	b.gone()
	b.job.NextSeq = b.desk.NextSeq()
	b.launch(b.settings)
	b.blames(b.ends(b.start()), "server_restarted", "The server was away", "heartbeat_timeout_s")
}
