package agent_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"potato/agent"
	"potato/agent/agenttest"
	"potato/api"
)

// begin runs the job in the background; wait returns what Work returned.
func (b *bench) begin(ctx context.Context) (wait func() error) {
	done := make(chan error, 1)
	go func() { done <- agent.Work(ctx, b.job, b.o) }()
	return func() error {
		b.Helper()
		select {
		case err := <-done:
			return err
		case <-time.After(time.Minute):
			b.Fatalf("Work does not return; events: %+v", b.desk.Events())
			return nil
		}
	}
}

func (b *bench) until(text string) {
	b.Helper()
	agenttest.Wait(b, "event "+text, func() (bool, string) {
		events := b.desk.Events()
		return b.desk.Has(text), string(api.EventLog) + " events: " + join(texts(events))
	})
}

func texts(events []api.Event) (all []string) {
	for _, e := range events {
		all = append(all, string(e.Event)+" "+e.StepText()+e.Msg)
	}
	return all
}

// TERM first, KILL after the grace, and nothing is left a second later (R5, F2, T16, T29).
func TestCancel(t *testing.T) {
	tests := map[string]struct {
		steps    []agenttest.Step
		grace    time.Duration
		min, max time.Duration
		exit     int
	}{
		"a polite worker":             {[]agenttest.Step{{"on_term", "cancelled"}}, 5 * time.Second, 0, 1500 * time.Millisecond, 4},
		"one that ignores TERM":       {[]agenttest.Step{{"on_term", "ignore"}, {"child", "ignores TERM"}, {"daemon", "ignores TERM"}}, 700 * time.Millisecond, 700 * time.Millisecond, 1700 * time.Millisecond, -1},
		"one that leaves a daemon":    {[]agenttest.Step{{"daemon"}}, 5 * time.Second, 0, 1500 * time.Millisecond, -1},
		"one that prints all the day": {[]agenttest.Step{{"on_term", "ignore"}, {"status", "up"}, {"flood", 1 << 40}}, 700 * time.Millisecond, 700 * time.Millisecond, 1700 * time.Millisecond, -1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, append(test.steps, agenttest.Step{"status", "up"}, agenttest.Step{"sleep", 60})...)
			b.o.LogLimit = 1 << 20
			wait := b.begin(t.Context())
			b.until("up")
			began := time.Now()
			b.desk.Cancel(test.grace)
			if err := wait(); err != nil {
				t.Fatal(err)
			}
			took := time.Since(began)
			f := b.desk.Finished()
			if !f.Cancelled || f.ErrorCode != "" {
				t.Errorf("finish = %+v, want cancelled", f)
			}
			if test.exit >= 0 && (f.ExitCode == nil || *f.ExitCode != test.exit) {
				t.Errorf("exit code %v, want %d", f.ExitCode, test.exit)
			}
			if took < test.min || took > test.max {
				t.Errorf("it took %v, want %v to %v", took, test.min, test.max)
			}
			b.gone()
			if took := time.Since(began); took > test.max {
				t.Errorf("its processes were gone after %v, want %v", took, test.max)
			}
		})
	}
}

func TestCancelByOption(t *testing.T) {
	b := newBench(t, agenttest.Step{"status", "up"}, agenttest.Step{"sleep", 60})
	cancel := make(chan struct{})
	b.o.Cancel = cancel
	wait := b.begin(t.Context())
	b.until("up")
	close(cancel)
	if err := wait(); err != nil || !b.desk.Finished().Cancelled {
		t.Errorf("%v, finish = %+v", err, b.desk.Finished())
	}
	b.gone()
}

// A cancel before there is a worker starts none.
func TestCancelBeforeTheWorker(t *testing.T) {
	b := newBench(t, agenttest.Good(1)...)
	b.desk.Refuse = func(c agenttest.Call) error {
		if c == agenttest.CallBundle {
			return api.Unavailablef("bundle_not_ready", "the bundle is being built")
		}
		return nil
	}
	wait := b.begin(t.Context())
	b.until("fetching the bundle")
	b.desk.Cancel(0)
	if err := wait(); err != nil || !b.desk.Finished().Cancelled {
		t.Errorf("%v, finish = %+v", err, b.desk.Finished())
	}
	if b.handle().Marker != "" {
		t.Error("a worker was started")
	}

	b = newBench(t, agenttest.Good(1)...)
	cancel := make(chan struct{})
	close(cancel)
	b.o.Cancel = cancel
	if f := b.finish(); !f.Cancelled || b.desk.Calls(agenttest.CallBundle) > 0 {
		t.Errorf("cancelled from the start: finish = %+v", f)
	}
}

// A cancel that comes while the predictions are on their way wins: they are not stored yet.
func TestCancelDuringUpload(t *testing.T) {
	b := newBench(t, agenttest.Good(1)...)
	b.desk.Refuse = func(c agenttest.Call) error {
		if c == agenttest.CallPredictions {
			return errors.New("busy")
		}
		return nil
	}
	wait := b.begin(t.Context())
	agenttest.Wait(t, "an upload", func() (bool, string) { return b.desk.Calls(agenttest.CallPredictions) > 0, "none" })
	b.desk.Cancel(0)
	if err := wait(); err != nil || !b.desk.Finished().Cancelled || b.desk.Stored() != nil {
		t.Errorf("%v, finish = %+v", err, b.desk.Finished())
	}
}

// Without a server for too long the agent cancels the run itself (G5), and says so when the server is back.
func TestServerIsLost(t *testing.T) {
	for name, returns := range map[string]bool{"and comes back": true, "and stays away": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, agenttest.Step{"status", "up"}, agenttest.Step{"sleep", 60})
			b.o.ServerLossTimeout = time.Second
			if !returns {
				b.o.LastWords = 500 * time.Millisecond
			}
			b.job.GraceSeconds = 0.3
			var away atomic.Bool
			b.desk.Refuse = func(agenttest.Call) error {
				if away.Load() {
					return errors.New("connection refused")
				}
				return nil
			}
			wait := b.begin(t.Context())
			b.until("up")
			away.Store(true)
			b.gone()
			if returns {
				away.Store(false)
			}
			err := wait()
			f := b.desk.Finished()
			if returns {
				if err != nil || f == nil || !f.Cancelled || f.ErrorCode != "server_unreachable" {
					t.Errorf("%v, finish = %+v", err, f)
				}
				return
			}
			if !api.HasCode(err, "server_unreachable") || f != nil {
				t.Errorf("%v, finish = %+v", err, f)
			}
			// Whoever comes back to the job directory still has the end to tell.
			away.Store(false)
			if f := b.finish(); f.ErrorCode != "server_unreachable" || !strings.Contains(f.Error, "did not answer for 1 s") {
				t.Errorf("told later: %+v", f)
			}
		})
	}
}

// A short absence of the server costs nothing (T38).
func TestServerIsAwayForAMoment(t *testing.T) {
	t.Parallel()
	b := newBench(t, append([]agenttest.Step{{"metrics", 100, 0.005}}, agenttest.Good(1)...)...)
	var n atomic.Int64
	flaky := func(agenttest.Call) error {
		if n.Add(1)%3 == 0 {
			return errors.New("connection reset")
		}
		return nil
	}
	b.desk.Refuse, b.desk.Cut = flaky, flaky
	if f := b.finish(); f.ErrorCode != "" {
		t.Errorf("finish = %+v", f)
	}
	wantMetrics(t, b.desk, 100)
}

// A job that is not ours any more is stopped, and nothing more is said of it.
func TestJobIsOver(t *testing.T) {
	for _, code := range []string{"run_over", "token_revoked", "lease_moved"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, agenttest.Step{"status", "up"}, agenttest.Step{"sleep", 60})
			var over atomic.Bool
			b.desk.Refuse = func(agenttest.Call) error {
				if over.Load() {
					return api.Gonef(code, "the run is over")
				}
				return nil
			}
			wait := b.begin(t.Context())
			b.until("up")
			over.Store(true)
			if err := wait(); !api.HasCode(err, code) {
				t.Errorf("Work: %v, want %s", err, code)
			}
			if b.desk.Finished() != nil || b.desk.Calls(agenttest.CallFinish) > 0 {
				t.Error("the agent still reported an end")
			}
			b.gone()
		})
	}
}

// An agent that finds another's name in the job directory leaves quietly; the worker goes on.
func TestAnotherAgentTookOver(t *testing.T) {
	t.Parallel()
	b := newBench(t, agenttest.Step{"status", "up"}, agenttest.Step{"sleep", 60})
	b.o.LeaseTimeout = 5 * time.Second
	wait := b.begin(t.Context())
	b.until("up")
	replace(t, filepath.Join(b.o.Dir, "owner"), `{"lease":"lease-2","epoch":7}`)
	if err := wait(); !api.HasCode(err, "lease_moved") {
		t.Errorf("Work: %v, want lease_moved", err)
	}
	state, err := (agent.Process{}).State(t.Context(), b.handle())
	if err != nil || state.Phase != agent.StateRunning {
		t.Errorf("the worker is %+v, %v; want it running", state, err)
	}
}

// When nobody comes back for long enough, the shim ends the worker by itself; whoever comes then hears why (R6).
func TestNobodyComesBack(t *testing.T) {
	t.Parallel()
	b := newBench(t, agenttest.Step{"on_term", "ignore"}, agenttest.Step{"daemon", "ignores TERM"}, agenttest.Step{"status", "up"}, agenttest.Step{"sleep", 60})
	b.o.LeaseTimeout = 1500 * time.Millisecond
	b.job.GraceSeconds = 0.5
	ctx, leave := context.WithCancel(t.Context())
	wait := b.begin(ctx)
	b.until("up")
	leave()
	if err := wait(); !errors.Is(err, context.Canceled) {
		t.Fatalf("Work: %v, want the context's error", err)
	}
	if len(agenttest.Marked(b.handle().Marker)) == 0 {
		t.Fatal("the worker ended with its agent")
	}
	b.gone()
	f := b.finish()
	if f.ErrorCode != "server_restarted" || f.Cancelled || !strings.Contains(f.Error, "away for more than 2 s") {
		t.Errorf("finish = %+v, want server_restarted", f)
	}
}

// While an agent lives the lease is renewed, however little the worker says.
func TestLeaseIsRenewed(t *testing.T) {
	t.Parallel()
	b := newBench(t, append([]agenttest.Step{{"sleep", 3}}, agenttest.Good(1)...)...)
	b.o.LeaseTimeout = time.Second
	if f := b.finish(); f.ErrorCode != "" {
		t.Errorf("finish = %+v, want a success", f)
	}
}

func replace(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}
