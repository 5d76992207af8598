package agent_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"potato/agent"
	"potato/agent/agenttest"
	"potato/api"
)

func TestMain(m *testing.M) {
	agenttest.Main(func() int {
		if len(os.Args) == 2 && os.Args[1] == agentArg {
			return agentMain()
		}
		flag.Parse()
		if err := flag.Set("test.parallel", strconv.Itoa(max(6, runtime.GOMAXPROCS(0)))); err != nil { // most of them wait for a scheduler
			panic(err)
		}
		code := m.Run()
		for _, stop := range afterTests {
			stop()
		}
		if err := goleak.Find(); err != nil && code == 0 {
			_, _ = os.Stderr.WriteString(err.Error() + "\n")
			return 1
		}
		return code
	})
}

// afterTests ends what all tests of the package share.
var afterTests []func()

// bench is one job directory with a server in memory.
type bench struct {
	*testing.T
	desk *agenttest.Desk
	job  api.Job
	o    agent.Options
}

func newBench(t *testing.T, steps ...agenttest.Step) *bench {
	t.Helper()
	b := &bench{T: t, desk: &agenttest.Desk{BundleDir: t.TempDir()}, job: agenttest.Job(steps...)}
	b.o = agent.Options{
		Dir: filepath.Join(t.TempDir(), "job"), Desk: b.desk, Backend: "local", Python: agenttest.Python(t), WorkerPath: agenttest.Worker(t),
		Shim: agenttest.Shim(t), Poll: 10 * time.Millisecond, SendEvery: time.Millisecond, RetryAfter: 2 * time.Millisecond, LeaseTimeout: 20 * time.Second,
	}
	t.Cleanup(func() {
		if h := b.handle(); h.Marker != "" {
			if err := (agent.Process{}).Signal(t.Context(), h, agent.SignalKill); err != nil {
				t.Error(err)
			}
		}
	})
	return b
}

// work runs the job to its end.
func (b *bench) work() {
	b.Helper()
	if err := agent.Work(b.Context(), b.job, b.o); err != nil {
		b.Fatalf("Work: %v", err)
	}
	if f := b.desk.Faults(); len(f) > 0 {
		b.Errorf("the agent broke the protocol: %v", f)
	}
	pid := b.handle().Pid
	agenttest.Wait(b, "the shim to be reaped", func() (bool, string) {
		p, ok := stat(pid)
		return !ok || p.parent != os.Getpid() || pid == 0, fmt.Sprint(pid, p)
	})
}

// finish runs the job to its end and returns the last word on it.
func (b *bench) finish() api.Finish {
	b.Helper()
	b.work()
	return *b.desk.Finished()
}

func (b *bench) handle() (h api.Handle) {
	readJSON(b.T, filepath.Join(b.o.Dir, "handle.json"), &h)
	return h
}

// gone waits until no process of the job is left.
func (b *bench) gone() {
	b.Helper()
	marker := b.handle().Marker
	if marker == "" {
		b.Fatal("the job has no marker")
	}
	agenttest.Wait(b, "the end of every process of the job", func() (bool, string) {
		left := agenttest.Marked(marker)
		return len(left) == 0, join(left)
	})
}
