package agent_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"potato/agent"
	"potato/agent/agenttest"
	"potato/api"
)

// wantMetrics checks that the n numbered metrics of a worker came once each and in order, and numbers without a gap.
func wantMetrics(t *testing.T, d *agenttest.Desk, n int) {
	t.Helper()
	next := 0
	for i, e := range d.Events() {
		if e.Seq != int64(i+1) {
			t.Fatalf("event %d has number %d", i+1, e.Seq)
		}
		if e.Event == api.EventMetric {
			if *e.Value != float64(next) {
				t.Fatalf("metric %v came where %d was due", *e.Value, next)
			}
			next++
		}
	}
	if next != n {
		t.Errorf("%d metrics came, want %d", next, n)
	}
}

// The agent leaves at any moment and another goes on: nothing is lost, nothing comes twice (R6, T38).
func TestAgentLeavesAndAnotherGoesOn(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 1))
			b := newBench(t, append([]agenttest.Step{{"metrics", 40, 0.005}, {"print", "one\ntwo\n"}, {"metrics", 0}, {"stderr", "three\n"}}, agenttest.Good(5)...)...)
			if r.IntN(2) == 0 {
				flaky := func(agenttest.Call) error {
					if r.IntN(4) == 0 { // the desk calls it one at a time
						return errors.New("connection reset")
					}
					return nil
				}
				b.desk.Refuse, b.desk.Cut = flaky, flaky
			}
			saves := 0
			leaves := 1 + r.IntN(4)
			for i := range leaves {
				ctx, leave := context.WithCancel(t.Context())
				atSave := r.IntN(4) // leave in the middle of a launch
				b.o.Save = func(api.Handle) error {
					if saves++; saves == atSave {
						leave()
					}
					return nil
				}
				if i < leaves-1 {
					time.AfterFunc(time.Duration(r.IntN(350))*time.Millisecond, leave)
				} else {
					atSave = 0
				}
				b.job.NextSeq = b.desk.NextSeq()
				b.job.Lease = "lease-" + string(rune('a'+i))
				err := agent.Work(ctx, b.job, b.o)
				leave()
				if err == nil {
					break
				}
				if !errors.Is(err, context.Canceled) {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
			f := b.desk.Finished()
			if f == nil || f.ErrorCode != "" || f.Cancelled || strings.Count(string(b.desk.Stored()), "\n") != 5 {
				t.Errorf("seed %d: finish = %+v, want a success with 5 predictions", seed, f)
			}
			wantMetrics(t, b.desk, 40)
			output := map[string]string{}
			for _, e := range b.desk.Events() {
				output[e.Source] += e.Msg + "\n"
			}
			if output["stdout"] != "one\ntwo\n" || output["stderr"] != "three\n" {
				t.Errorf("seed %d: output %q", seed, output)
			}
			if faults := b.desk.Faults(); len(faults) > 0 {
				t.Errorf("seed %d: %v", seed, faults)
			}
			if t.Failed() {
				t.Fatalf("seed %d, events: %s", seed, join(texts(b.desk.Events())))
			}
			b.gone()
		})
	}
}

// A worker is cancelled, its agent dies before it can say so: the next one says cancelled, not killed.
func TestAgentDiesWhileItCancels(t *testing.T) {
	b := newBench(t, agenttest.Step{"on_term", "cancelled"}, agenttest.Step{"status", "up"}, agenttest.Step{"sleep", 60})
	ctx, leave := context.WithCancel(t.Context())
	wait := b.begin(ctx)
	b.until("up")
	leave()
	if err := wait(); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := (agent.Process{}).Signal(t.Context(), b.handle(), agent.SignalTerm); err != nil {
		t.Fatal(err)
	}
	b.gone()
	b.desk.Cancel(0)
	if f := b.finish(); !f.Cancelled {
		t.Errorf("finish = %+v, want cancelled", f)
	}
}

// The machine lost the end of the outbox, and the server has it: numbers the server knows would be ignored.
func TestOutboxLostItsEnd(t *testing.T) {
	b := newBench(t, append([]agenttest.Step{{"metrics", 3}, {"wait", filepath.Join(t.TempDir(), "go")}}, agenttest.Good(1)...)...)
	b.job.Spec.Params["script"].([]agenttest.Step)[1][1] = filepath.Join(b.o.Dir, "go")
	ctx, leave := context.WithCancel(t.Context())
	wait := b.begin(ctx)
	agenttest.Wait(t, "five events", func() (bool, string) { return b.desk.NextSeq() > 5, join(texts(b.desk.Events())) })
	leave()
	if err := wait(); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	path := filepath.Join(b.o.Dir, "outbox.jsonl")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(content), "\n")
	half := strings.Join(lines[:3], "") + lines[3][:20] // the fourth line is torn
	if err := os.WriteFile(path, []byte(half), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.o.Dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.job.NextSeq = b.desk.NextSeq()
	if f := b.finish(); f.ErrorCode != "" {
		t.Errorf("finish = %+v, want a success", f)
	}
	var last api.Event
	for _, e := range b.desk.Events() {
		if e.Source != "agent" {
			last = e
		}
	}
	if last.Event != api.EventResult {
		t.Errorf("the last event is %+v, want the result", last)
	}
}

// The owner file counts its holders.
func TestOwner(t *testing.T) {
	b := newBench(t, agenttest.Good(1)...)
	b.work()
	b.work() // the end is told again; that is allowed
	var o struct {
		Lease string
		Epoch int
	}
	readJSON(t, filepath.Join(b.o.Dir, "owner"), &o)
	if o.Lease != "lease-1" || o.Epoch != 2 {
		t.Errorf("owner = %+v", o)
	}
}
