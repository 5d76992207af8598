package agent_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"potato/agent"
	"potato/agent/agenttest"
)

func (b *bench) warmSpec() agent.WarmSpec {
	return agent.WarmSpec{Trainer: "test", Python: b.o.Python, WorkerPath: b.o.WorkerPath, Shim: b.o.Shim}
}

// keepWarm starts a pool with a worker for the job.
func (b *bench) keepWarm() *agent.WarmPool {
	b.Helper()
	p := &agent.WarmPool{}
	b.o.Warm = p
	b.Cleanup(func() {
		if err := p.Close(); err != nil {
			b.Error(err)
		}
	})
	if err := p.Start(b.Context(), b.warmSpec()); err != nil {
		b.Fatal(err)
	}
	return p
}

// shims are those that this process has started and that live, with the marker of each.
func shims(t *testing.T) map[int]string {
	t.Helper()
	found := map[int]string{}
	for _, path := range glob(t, "/proc/[0-9]*/environ") {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			t.Fatal(err)
		}
		if p, ok := stat(pid); !ok || p.state == "Z" || p.parent != os.Getpid() {
			continue
		}
		env, _ := os.ReadFile(path)
		for kv := range strings.SplitSeq(string(env), "\x00") {
			if marker, ok := strings.CutPrefix(kv, "POTATO_MARKER="); ok {
				found[pid] = marker
			}
		}
	}
	return found
}

func one(t *testing.T) (pid int, marker string) {
	t.Helper()
	all := shims(t)
	if len(all) != 1 {
		t.Fatalf("shims %v, want one", all)
	}
	for pid, marker = range all {
	}
	return pid, marker
}

func TestWarmWorker(t *testing.T) {
	b := newBench(t, append([]agenttest.Step{{"print", "here\n"}}, agenttest.Good(2)...)...)
	p := b.keepWarm()
	pid, marker := one(t)
	if err := p.Start(t.Context(), b.warmSpec()); err != nil { // again: it is kept already
		t.Fatal(err)
	}
	if again, _ := one(t); again != pid {
		t.Errorf("the worker was replaced by one just like it")
	}
	if f := b.finish(); f.ErrorCode != "" || *f.ExitCode != 0 {
		t.Errorf("finish = %+v, want a success", f)
	}
	if h := b.handle(); h.Pid != pid || h.Marker != marker {
		t.Errorf("the run was done by %d, want the warm worker %d", h.Pid, pid)
	}
	if !b.desk.Has("here") {
		t.Error("its output is missing")
	}
	b.gone()

	// The pool is empty now; the next run starts a worker of its own.
	b.o.Dir, b.desk = filepath.Join(t.TempDir(), "next"), &agenttest.Desk{}
	b.o.Desk = b.desk
	if f := b.finish(); f.ErrorCode != "" || b.handle().Pid == pid {
		t.Errorf("finish = %+v, want a success by another worker", f)
	}
}

// Cancel, limits and adoption are those of any other worker.
func TestWarmWorkerIsLikeAnyOther(t *testing.T) {
	b := newBench(t, agenttest.Step{"on_term", "ignore"}, agenttest.Step{"daemon", "ignores TERM"}, agenttest.Step{"status", "up"}, agenttest.Step{"sleep", 60})
	b.keepWarm()
	ctx, leave := context.WithCancel(t.Context())
	wait := b.begin(ctx)
	b.until("up")
	leave()
	if err := wait(); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	wait = b.begin(t.Context())
	b.desk.Cancel(300 * time.Millisecond)
	if err := wait(); err != nil || !b.desk.Finished().Cancelled {
		t.Errorf("%v, finish = %+v", err, b.desk.Finished())
	}
	if left := agenttest.Marked(b.handle().Marker); len(left) > 0 {
		t.Errorf("still there: %v", left)
	}
}

func TestWarmWorkerThatDoesNotFit(t *testing.T) {
	b := newBench(t, agenttest.Good(1)...)
	b.keepWarm()
	pid, _ := one(t)
	threads := 2
	b.job.Spec.Limits.NumThreads = &threads
	if f := b.finish(); f.ErrorCode != "" || b.handle().Pid == pid {
		t.Errorf("finish = %+v by %d, want a success by another than %d", f, b.handle().Pid, pid)
	}
	if again, _ := one(t); again != pid {
		t.Error("the warm worker was not kept for a run that it fits")
	}
}

// A warm worker that has died, or dies when it gets its job, costs the run nothing.
func TestWarmWorkerDies(t *testing.T) {
	b := newBench(t, agenttest.Good(1)...)
	b.keepWarm()
	pid, marker := one(t)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if f := b.finish(); f.ErrorCode != "" || b.handle().Marker == marker {
		t.Errorf("dead before: finish = %+v, want a success by another worker", f)
	}

	b = newBench(t, agenttest.Good(1)...)
	once := filepath.Join(t.TempDir(), "once")
	b.o.Shim = append([]string{"/bin/sh", "-c", `if [ -e "$0" ]; then exec "$@"; fi; : > "$0"; read -r start; read -r job`, once}, b.o.Shim...)
	b.keepWarm()
	_, marker = one(t)
	if f := b.finish(); f.ErrorCode != "" || b.handle().Marker == marker {
		t.Errorf("dead over its job: finish = %+v, want a success by another worker", f)
	}
}

// Nothing is left of a worker that is not wanted any more: closed, idle for too long, replaced, or left by a dead agent.
func TestWarmWorkerEnds(t *testing.T) {
	b := newBench(t)
	p := &agent.WarmPool{Idle: 200 * time.Millisecond}
	start := func(s agent.WarmSpec) string {
		t.Helper()
		if err := p.Start(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		_, marker := one(t)
		return marker
	}
	gone := func(how, marker string) {
		t.Helper()
		agenttest.Wait(t, "the end of the worker that was "+how, func() (bool, string) {
			left := agenttest.Marked(marker)
			return len(left) == 0, join(left)
		})
	}
	gone("idle", start(b.warmSpec()))
	p.Idle = time.Minute
	first := start(b.warmSpec())
	other := b.warmSpec()
	other.Trainer = "other"
	second := start(other)
	gone("replaced", first)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if left := agenttest.Marked(second); len(left) > 0 {
		t.Errorf("after Close: %v", left)
	}
	if n := len(shims(t)); n > 0 {
		t.Errorf("%d shims are left", n)
	}
	// A worker that cannot even be imported ends its shim.
	broken := b.warmSpec()
	broken.WorkerPath = filepath.Join(t.TempDir(), "missing.py")
	if err := p.Start(t.Context(), broken); err != nil {
		t.Fatal(err)
	}
	agenttest.Wait(t, "the end of a broken worker's shim", func() (bool, string) { n := len(shims(t)); return n == 0, strconv.Itoa(n) })
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}
