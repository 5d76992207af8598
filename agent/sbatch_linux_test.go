package agent_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"potato/agent"
	"potato/agent/agenttest"
	"potato/agent/slurmtest"
	"potato/api"
)

// theCluster is one for all tests of the package, started by the first that needs it.
var theCluster struct {
	sync.Once
	*slurmtest.Cluster
	err error
}

// Who uses which nodes: those that fail or are fought over are no one else's.
const (
	failingNode   = "node04"
	returningNode = "node05"
	lostNode      = "node06"
	sharedNode    = "node07"
	ownNodes      = "node0[4-7]"
)

func cluster(tb testing.TB) *slurmtest.Cluster {
	tb.Helper()
	slurmtest.Require(tb)
	theCluster.Do(func() {
		theCluster.Cluster, theCluster.err = slurmtest.Start(7, "")
		if theCluster.err == nil {
			afterTests = append(afterTests, theCluster.Stop)
		}
	})
	if theCluster.err != nil {
		tb.Fatal(theCluster.err)
	}
	return theCluster.Cluster
}

// toolbox is a folder with all programs of the system but srun and sacct, which the agent never calls (Q1).
var toolbox = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "toolbox-")
	if err != nil {
		return "", err
	}
	for _, from := range []string{"/bin", "/usr/bin", "/usr/local/bin"} {
		programs, _ := os.ReadDir(from)
		for _, p := range programs {
			if p.Name() != "srun" && p.Name() != "sacct" {
				_ = os.Symlink(filepath.Join(from, p.Name()), filepath.Join(dir, p.Name())) // the first of a name wins
			}
		}
	}
	afterTests = append(afterTests, func() { _ = os.RemoveAll(dir) })
	return dir, nil
})

// slurmBench is a job directory whose worker is submitted to the cluster.
type slurmBench struct {
	*bench
	cluster  *slurmtest.Cluster
	launcher *agent.Sbatch
	settings agent.SbatchOptions
	bin      string // wrappers lie there, before the real commands on PATH
}

func newSlurmBench(t *testing.T, change func(c *agent.SlurmConfig), steps ...agenttest.Step) *slurmBench {
	t.Helper()
	t.Parallel()
	return newSlurmBenchOn(t, cluster(t), change, steps...)
}

func newSlurmBenchOn(t *testing.T, on *slurmtest.Cluster, change func(c *agent.SlurmConfig), steps ...agenttest.Step) *slurmBench {
	t.Helper()
	b := &slurmBench{cluster: on, bench: newBench(t, steps...), bin: t.TempDir()}
	tools, err := toolbox()
	if err != nil {
		t.Fatal(err)
	}
	b.o.PythonKey = "job_python"
	b.o.Dir = filepath.Join(t.TempDir(), "jobs", string(b.job.RunID))
	c := agent.SlurmConfig{PollIntervalS: 1, Exclude: ownNodes, Time: "10", Mem: "50M", Env: map[string]string{"PATH": b.bin + ":" + tools}}
	for _, kv := range b.cluster.Env {
		name, value, _ := strings.Cut(kv, "=")
		c.Env[name] = value
	}
	if change != nil {
		change(&c)
	}
	b.settings = agent.SbatchOptions{
		Config: c, Dir: filepath.Dir(filepath.Dir(b.o.Dir)), Quick: 200 * time.Millisecond, EndGrace: 2 * time.Second, LateFiles: 10 * time.Second, CommandTimeout: 10 * time.Second,
	}
	b.launch(b.settings)
	t.Cleanup(func() {
		if h := b.handle(); h.Marker != "" {
			_ = b.launcher.Signal(t.Context(), h, agent.SignalKill) // the job may be over and its folder gone
			for _, id := range strings.Fields(b.queue("%i")) {
				_, _ = b.cluster.Command("scancel", id)
			}
			for end := time.Now().Add(10 * time.Second); strings.Contains(b.queue("%T"), "ING") && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
				continue // what still runs writes into its folder, which is about to be removed
			}
		}
		b.launcher.Close()
	})
	return b
}

// launch gives the agent a launcher that knows nothing yet, as an adopting one has.
func (b *slurmBench) launch(o agent.SbatchOptions) {
	if b.launcher != nil {
		b.launcher.Close()
	}
	b.launcher = agent.NewSbatch(o)
	b.o.Launcher = b.launcher
}

// wrap puts a script before a command of the scheduler. In it, $real is the real one.
func (b *slurmBench) wrap(command, script string) {
	b.Helper()
	path := filepath.Join(b.bin, command)
	text := "#!/bin/bash\nreal=/usr/bin/" + command + "\n" + script + "\n"
	if err := os.WriteFile(path+".new", []byte(text), 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		b.Fatal(err)
	}
}

// queue is what squeue lists of the run's jobs, ended ones too.
func (b *slurmBench) queue(format string) string {
	out, err := b.cluster.Command("squeue", "-h", "-t", "all", "--name=potato-"+string(b.job.RunID), "-o", format)
	if err != nil {
		return err.Error()
	}
	return out
}

// id is the job's, once it is known.
func (b *slurmBench) id() string {
	b.Helper()
	var id string
	wait(b, "the job's id", func() (bool, string) {
		id = b.handle().SlurmJob
		return id != "", fmt.Sprintf("%+v", b.handle())
	})
	return id
}

// log is what the run's events say of the job.
func (b *slurmBench) log() (lines []string) {
	for _, e := range b.desk.Events() {
		if text := e.StepText() + e.Msg; text != "" && e.Source == "" {
			lines = append(lines, text)
		}
	}
	return lines
}

// says waits until an event has the text.
func (b *slurmBench) says(text string) {
	b.Helper()
	wait(b, fmt.Sprintf("an event that says %q", text), func() (bool, string) {
		return slices.ContainsFunc(b.log(), func(l string) bool { return strings.Contains(l, text) }), fmt.Sprintf("%s\n%s\n%+v", strings.Join(b.log(), "\n"), b.queue("%i %T %r"), b.desk.Finished())
	})
}

// start works on the job beside the test; the channel has the end.
func (b *slurmBench) start() <-chan error {
	done := make(chan error, 1)
	go func() { done <- agent.Work(b.Context(), b.job, b.o) }()
	return done
}

// ends waits for the last word on the job.
func (b *slurmBench) ends(done <-chan error) api.Finish {
	b.Helper()
	select {
	case err := <-done:
		if err != nil {
			b.Fatalf("Work: %v", err)
		}
	case <-time.After(100 * time.Second):
		b.Fatalf("the job does not end:\n%s\n%s", strings.Join(b.log(), "\n"), b.queue("%i %T %r %N"))
	}
	return *b.desk.Finished()
}

// blames checks how a run ended.
func (b *slurmBench) blames(f api.Finish, code, text, hint string) {
	b.Helper()
	if f.ErrorCode != code || !strings.Contains(f.Error, text) || !strings.Contains(f.Hint, hint) {
		b.Errorf("the run ended with %s: %s (%s)\nwant %s: %s (%s)\n%s", f.ErrorCode, f.Error, f.Hint, code, text, hint, strings.Join(b.log(), "\n"))
	}
	if b.handle().Marker != "" && !strings.Contains(text, "SLURM job") {
		b.gone()
	}
}

func TestSlurmJobSucceeds(t *testing.T) {
	dump := filepath.Join(t.TempDir(), "env.json")
	b := newSlurmBench(t, func(c *agent.SlurmConfig) {
		c.GRES, c.CPUsPerTask = "gpu:1", 2
		c.Prelude = []string{"export FROM_PRELUDE='it is there'", `test -n "$FROM_ENV"`}
		c.Env["FROM_ENV"] = "a 'b' $c"
	}, append([]agenttest.Step{{"env", dump}, {"status", "fitting"}, {"print", "hello\n"}}, agenttest.Good(3)...)...)
	f := b.ends(b.start())
	if f.ErrorCode != "" || f.ExitCode == nil || *f.ExitCode != 0 || strings.Count(string(b.desk.Stored()), "\n") != 3 {
		t.Fatalf("%+v; %q\n%s", f, b.desk.Stored(), strings.Join(b.log(), "\n"))
	}
	id := b.id()
	log := strings.Join(b.log(), "\n")
	for _, want := range []string{"Submitted SLURM job " + id + ": sbatch --gres=gpu:1 --cpus-per-task=2", "SLURM job " + id + ": RUNNING on node0", "fitting"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log does not say %q:\n%s", want, log)
		}
	}
	var env map[string]string
	if bytes, err := os.ReadFile(dump); err != nil || json.Unmarshal(bytes, &env) != nil {
		t.Fatal(err)
	}
	if gpu := env["CUDA_VISIBLE_DEVICES"]; gpu != "0" && gpu != "1" {
		t.Errorf("CUDA_VISIBLE_DEVICES = %q", gpu)
	}
	if env["FROM_ENV"] != "a 'b' $c" || env["FROM_PRELUDE"] != "it is there" || env["SLURM_JOB_ID"] != id || env["POTATO_ATTEMPT"] != "1" {
		t.Errorf("the worker's environment: %v", env)
	}
	for name, mode := range map[string]os.FileMode{"job.sh": 0o700, "job.env": 0o600, "shim.json": 0o600, "slurm.out": 0o600, "exit_code": 0o600} {
		if about, err := os.Stat(filepath.Join(b.o.Dir, name)); err != nil || about.Mode().Perm() != mode {
			t.Errorf("%s: %v %v, want mode %v", name, about, err, mode)
		}
	}
}
