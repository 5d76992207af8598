package runnertest

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"potato/agent"
	"potato/agent/agenttest"
	"potato/api"
	"potato/project"
	"potato/runners"
)

// Suite holds a runner to its contract. Open makes one for the study as a new server would: it is called again where the
// contract says that another server may go on.
type Suite struct {
	Open func(t *testing.T, c *project.Config) runners.Runner
	// Processes lists what is left of the work of a handle; nil when the work is no process that can be looked for.
	Processes func(h api.Handle) []string
	// Training are further lines of the study's config, and Backend the one of them that runs go to; empty: local.
	Training, Backend string
	// Slack is how much longer than the grace the end of stubborn work may take; absent: two seconds.
	Slack time.Duration
	// Unreachable says that nobody but the agent can get to the machine: Stop can only say that the work may go on.
	Unreachable bool
}

// Run runs the suite.
func (s Suite) Run(t *testing.T) {
	t.Run("brings a result and its predictions", s.success)
	t.Run("brings home what a run left", s.fetch)
	t.Run("saves the handle before it follows", s.saves)
	t.Run("reports a failure", s.failure)
	t.Run("ends the work on a cancel", s.cancel)
	t.Run("ends work that ignores a cancel after the grace", s.stubborn)
	t.Run("leaves and comes back", s.comeBack)
	t.Run("stops the work without the agent", s.stop)
	t.Run("gives up a start that is cancelled", s.startCancelled)
	t.Run("checks", s.check)
}

// stage is one run in a folder, with a desk.
type stage struct {
	*testing.T
	suite  Suite
	config *project.Config
	desk   *agenttest.Desk
	job    runners.Job
	gate   string
	cancel func()

	mu     sync.Mutex
	handle api.Handle
	saves  int
}

func (s Suite) stage(t *testing.T, params map[string]any) *stage {
	t.Helper()
	st := &stage{T: t, suite: s, config: Study(t, s.Training), desk: &agenttest.Desk{}}
	dir := filepath.Join(t.TempDir(), "run")
	study := project.OpenStudy(st.config)
	m, err := study.BuildBundle(t.Context(), filepath.Join(dir, "bundle"), project.BundleOptions{Schemas: []string{Scheme}})
	mustDo(t, errors.Join(err, study.Close(), os.MkdirAll(filepath.Join(dir, "artifacts"), 0o700)))
	st.desk.BundleDir = filepath.Join(dir, "bundle")
	gates := t.TempDir()
	mustDo(t, errors.Join(os.Chmod(gates, 0o755), os.Chmod(filepath.Dir(gates), 0o755))) // another account may have to see it
	st.gate = filepath.Join(gates, "gate")
	if params["gate"] != nil {
		params["gate"] = st.gate
	}
	ended := make(chan struct{})
	cancel := make(chan struct{})
	st.cancel = sync.OnceFunc(func() {
		close(cancel)
		st.desk.Cancel(0)
	})
	trainers := st.config.TrainersPath()
	st.job = runners.Job{
		Job: api.Job{
			RunID: api.NewRunID(time.Now()), Lease: "lease-1", GraceSeconds: 1, HeartbeatTimeoutS: 60, NextSeq: 1, BundleDigest: m.Digest,
			Spec: api.Spec{V: 1, Trainer: Trainer, Attempt: 1, Schemas: m.Schemas, Params: params, TrainersDir: &trainers},
		},
		Backend: cmp.Or(s.Backend, "local"), Host: "gpu-box", Dir: dir, Desk: &signalling{Desk: st.desk, ended: sync.OnceFunc(func() { close(ended) })},
		Cancel: cancel, Ended: ended, Step: func(string) {}, Say: func(string) {},
		Save: func(h api.Handle) error {
			st.mu.Lock()
			defer st.mu.Unlock()
			st.handle, st.saves = h, st.saves+1
			return nil
		},
	}
	t.Cleanup(func() {
		if st.suite.Processes != nil {
			if left := st.suite.Processes(st.saved()); len(left) > 0 {
				t.Errorf("processes are left: %s", strings.Join(left, "; "))
			}
		}
		for _, fault := range st.desk.Faults() {
			t.Error(fault)
		}
	})
	return st
}

func (st *stage) saved() api.Handle {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.handle
}

func (st *stage) open() runners.Runner { return st.suite.Open(st.T, st.config) }

// start starts the run and follows it in a goroutine; leave ends that and returns what Follow did.
func (st *stage) start(r runners.Runner) (done <-chan error, leave func() error) {
	st.Helper()
	h, err := r.Start(st.Context(), st.job)
	mustDo(st, err)
	return st.follow(r, h)
}

func (st *stage) follow(r runners.Runner, h api.Handle) (<-chan error, func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	var once sync.Once
	var result error
	wait := func() error {
		once.Do(func() { result = r.Follow(ctx, st.job, h) })
		return result
	}
	go func() { done <- wait() }()
	leave := func() error {
		cancel()
		return wait()
	}
	st.Cleanup(func() { _ = leave() })
	return done, leave
}

func (st *stage) waitFor(done <-chan error) {
	st.Helper()
	select {
	case err := <-done:
		mustDo(st, err)
	case <-time.After(20 * time.Second):
		st.Fatalf("Follow did not return; the desk has %d events and the end %+v", len(st.desk.Events()), st.desk.Finished())
	}
}

func (st *stage) openGate() { mustDo(st, os.WriteFile(st.gate, nil, 0o600)) }

func (s Suite) success(t *testing.T) {
	st := s.stage(t, map[string]any{})
	done, _ := st.start(st.open())
	st.waitFor(done)
	f := st.desk.Finished()
	if f == nil || f.ErrorCode != "" || f.ExitCode == nil || *f.ExitCode != 0 || f.Host == "" || f.ArtifactURI == "" {
		t.Errorf("got the end %+v, want exit code 0, a host and a place", f)
	}
	if n := strings.Count(string(st.desk.Stored()), "\n"); n == 0 {
		t.Error("no predictions came")
	}
	if !hasResult(st.desk.Events()) {
		t.Error("no result event came")
	}
}

// fetch is for runners whose runs leave files on their machine.
func (s Suite) fetch(t *testing.T) {
	st := s.stage(t, map[string]any{})
	r := st.open()
	f, ok := r.(runners.Fetcher)
	if !ok {
		return
	}
	done, _ := st.start(r)
	st.waitFor(done)
	for range 2 { // the second time there is nothing left to bring
		here, err := f.Fetch(t.Context(), st.job, st.saved(), true)
		mustDo(t, err)
		if !here {
			t.Error("something stayed there")
		}
	}
	got, err := os.ReadFile(filepath.Join(st.job.Dir, "artifacts", "predictions.jsonl"))
	if err != nil || string(got) != string(st.desk.Stored()) {
		t.Errorf("the artifacts have %d bytes of predictions, %v; the desk got %d", len(got), err, len(st.desk.Stored()))
	}
}

// signalling is the desk with the sign that it gives when it has accepted the end of the job.
type signalling struct {
	agent.Desk
	ended func()
}

// Finish implements agent.Desk.
func (d *signalling) Finish(ctx context.Context, job api.Job, f api.Finish) error {
	err := d.Desk.Finish(ctx, job, f)
	if err == nil {
		d.ended()
	}
	return err
}

func hasResult(events []api.Event) bool {
	for _, e := range events {
		if e.Event == api.EventResult {
			return true
		}
	}
	return false
}

func (s Suite) saves(t *testing.T) {
	st := s.stage(t, map[string]any{})
	h, err := st.open().Start(t.Context(), st.job)
	mustDo(t, err)
	if st.saves == 0 || st.saved() != h || h.Backend != st.job.Backend {
		t.Errorf("got %d saves of %+v, want the handle %+v that Start returned", st.saves, st.saved(), h)
	}
}

func (s Suite) failure(t *testing.T) {
	st := s.stage(t, map[string]any{"fail": "The labels are all wrong"})
	done, _ := st.start(st.open())
	st.waitFor(done)
	if f := st.desk.Finished(); f == nil || f.ErrorCode != "validation_failed" || f.Error != "The labels are all wrong" || f.Hint == "" {
		t.Errorf("got the end %+v, want the trainer's words", f)
	}
}

func (s Suite) cancel(t *testing.T) {
	st := s.stage(t, map[string]any{"gate": true})
	done, _ := st.start(st.open())
	st.awaitFitting()
	st.cancel()
	st.waitFor(done)
	if f := st.desk.Finished(); f == nil || !f.Cancelled {
		t.Errorf("got the end %+v, want it cancelled", f)
	}
}

func (st *stage) awaitFitting() {
	st.Helper()
	agenttest.Wait(st, "the work to begin", func() (bool, string) {
		return st.desk.Has("fitting"), "no such step"
	})
}

func (s Suite) stubborn(t *testing.T) {
	st := s.stage(t, map[string]any{"gate": true, "stubborn": true, "children": true})
	done, _ := st.start(st.open())
	st.awaitFitting()
	began := time.Now()
	st.cancel()
	st.waitFor(done)
	if took := time.Since(began); took < time.Second || took > time.Second+cmp.Or(s.Slack, 2*time.Second) {
		t.Errorf("it took %v, want the grace of a second and little more", took)
	}
	if f := st.desk.Finished(); f == nil || !f.Cancelled {
		t.Errorf("got the end %+v, want it cancelled", f)
	}
}

func (s Suite) comeBack(t *testing.T) {
	st := s.stage(t, map[string]any{"gate": true})
	_, leave := st.start(st.open())
	st.awaitFitting()
	if err := leave(); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v of a Follow that was left, want the context's error", err)
	}
	if st.desk.Finished() != nil {
		t.Fatal("leaving ended the work")
	}
	st.openGate()
	st.job.NextSeq = st.desk.NextSeq()
	st.job.Lease = "lease-2"
	done, _ := st.follow(st.open(), st.saved())
	st.waitFor(done)
	if f := st.desk.Finished(); f == nil || f.ErrorCode != "" || f.Cancelled {
		t.Errorf("got the end %+v, want a success", f)
	}
}

func (s Suite) stop(t *testing.T) {
	st := s.stage(t, map[string]any{"gate": true, "stubborn": true})
	r := st.open()
	_, leave := st.start(r)
	st.awaitFitting()
	_ = leave()
	for range 2 { // the second time there is nothing to stop
		err := r.Stop(t.Context(), st.job, st.saved())
		if s.Unreachable {
			if err == nil || err.Error() != "the worker may still run on gpu-box" {
				t.Errorf("got %v, want that the worker may still run there", err)
			}
			st.cancel() // as the desk's next answer does
			continue
		}
		mustDo(t, err)
	}
	if st.suite.Processes != nil {
		agenttest.Wait(t, "the processes to end", func() (bool, string) {
			left := st.suite.Processes(st.saved())
			return len(left) == 0, strings.Join(left, "; ")
		})
	}
	st.job.NextSeq = st.desk.NextSeq()
	done, _ := st.follow(st.open(), st.saved())
	st.waitFor(done)
	if f := st.desk.Finished(); f == nil || f.ErrorCode == "" && !f.Cancelled {
		t.Errorf("got the end %+v, want no success", f)
	}
}

func (s Suite) startCancelled(t *testing.T) {
	st := s.stage(t, map[string]any{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := st.open().Start(ctx, st.job); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want nothing or the context's error", err)
	}
}

func (s Suite) check(t *testing.T) {
	st := s.stage(t, map[string]any{})
	r := st.open().Check(t.Context(), runners.CheckOptions{Backend: cmp.Or(s.Backend, "here")})
	if r.Backend != cmp.Or(s.Backend, "here") || r.Type == "" || r.Summary == "" || len(r.Items) == 0 || r.GPUs == nil || r.MissingPackages == nil {
		t.Errorf("got %+v, want a whole report", r)
	}
	if !r.OK {
		t.Errorf("got %+v, want that a run could start", r)
	}
}
