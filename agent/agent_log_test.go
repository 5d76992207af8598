package agent_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"potato/agent"
	"potato/agent/agenttest"
	"potato/api"
)

// said are the lines of the agent's own log that the desk has, without their times.
func said(t *testing.T, d *agenttest.Desk) (lines []string) {
	t.Helper()
	stamp := regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ `)
	for _, e := range d.Events() {
		if e.Source != "agent" {
			continue
		}
		if e.Event != api.EventLog || !stamp.MatchString(e.Msg) {
			t.Errorf("a line of the agent's is %+v", e)
		}
		lines = append(lines, stamp.ReplaceAllString(e.Msg, ""))
	}
	return lines
}

// inOrder wants each text in a line of its own, in that order.
func inOrder(t *testing.T, lines []string, texts ...string) {
	t.Helper()
	at := 0
	for _, text := range texts {
		for at < len(lines) && !strings.Contains(lines[at], text) {
			at++
		}
		if at == len(lines) {
			t.Errorf("%q is not there, or not in its place, in:\n%s", text, strings.Join(lines, "\n"))
			return
		}
		at++
	}
}

// What the agent does and what goes wrong reaches the server as its own log; this machine's log has what matters there.
func TestAgentLog(t *testing.T) {
	b := newBench(t, append([]agenttest.Step{{"status", "up"}, {"sleep", 0.2}}, agenttest.Good(1)...)...)
	b.o.TellLog = true
	here := &bytes.Buffer{}
	b.o.Log = slog.New(slog.NewTextHandler(here, nil))
	var uploads, bundles atomic.Int64
	b.desk.Refuse = func(c agenttest.Call) error {
		if c == agenttest.CallPredictions && uploads.Add(1) == 1 || c == agenttest.CallBundle && bundles.Add(1) == 1 {
			return errors.New("connection reset")
		}
		return nil
	}
	if f := b.finish(); f.ErrorCode != "" {
		t.Fatalf("finish = %+v", f)
	}
	lines := said(t, b.desk)
	inOrder(t, lines, "working on the run host=", "fetching the bundle", "warning: the server did not take it what=bundle: connection reset", "starting the worker",
		"the worker is on its way pid=", "the worker has ended with a result exit_code=0", "handing over the predictions",
		"warning: the server did not take it what=predictions: connection reset", "the server has the predictions")
	if text := here.String(); !strings.Contains(text, "the server did not take it") || strings.Contains(text, "fetching the bundle") {
		t.Errorf("this machine's log is:\n%s", text)
	}
}

// A cancelled run's log says why the worker was ended, and that it had to be killed.
func TestAgentLogOfACancel(t *testing.T) {
	t.Parallel()
	b := newBench(t, agenttest.Step{"on_term", "ignore"}, agenttest.Step{"status", "up"}, agenttest.Step{"sleep", 60})
	b.o.TellLog = true
	wait := b.begin(t.Context())
	b.until("up")
	b.desk.Cancel(300 * time.Millisecond)
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	inOrder(t, said(t, b.desk), "ending the worker grace=300ms: cancelled", "warning: killing the worker, which did not leave within its grace", "the work has ended, cancelled")
}

// A server that takes no events for a while is told once that it did not, however often it was asked: a failed send that
// is logged makes no more to send.
func TestAgentLogOfFailedSends(t *testing.T) {
	t.Parallel()
	b := newBench(t, append([]agenttest.Step{{"status", "up"}, {"sleep", 1}}, agenttest.Good(1)...)...)
	b.o.TellLog = true
	var refused atomic.Int64
	b.desk.Refuse = func(c agenttest.Call) error {
		if c == agenttest.CallProgress && refused.Add(1) <= 8 {
			return errors.New("connection refused")
		}
		return nil
	}
	if f := b.finish(); f.ErrorCode != "" {
		t.Fatalf("finish = %+v", f)
	}
	lines := said(t, b.desk)
	inOrder(t, lines, "warning: events not sent: connection refused", "the server takes events again")
	if n := strings.Count(strings.Join(lines, "\n"), "events not sent"); n != 1 || refused.Load() < 9 {
		t.Errorf("%d calls failed and %d lines tell of it:\n%s", min(refused.Load(), 8), n, strings.Join(lines, "\n"))
	}
}

// Errors that are another one each time come to an end as well.
func TestAgentLogIsBounded(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	lines := agent.RunLogLines(t.TempDir(), func(log *slog.Logger) {
		for range 5000 {
			log.Warn("events not sent", "err", fmt.Errorf("no route from port %d\nat all", n.Add(1)))
		}
		log.Warn(strings.Repeat("long ", 10000))
	})
	if len(lines) != 1000 || !strings.HasSuffix(lines[999], "its own log goes on") || !strings.HasSuffix(lines[7], " warning: events not sent: no route from port 8 at all") {
		t.Errorf("%d lines, the last one is %q", len(lines), lines[len(lines)-1])
	}
}

// A run whose end was told is over: an agent that tells it again adds nothing to its log.
func TestAgentLogEndsWithTheRun(t *testing.T) {
	t.Parallel()
	b := newBench(t, agenttest.Good(1)...)
	b.o.TellLog = true
	var finishes atomic.Int64
	b.desk.Cut = func(c agenttest.Call) error {
		if c == agenttest.CallFinish && finishes.Add(1) < 4 {
			return errors.New("the answer is lost")
		}
		return nil
	}
	b.work()
	b.job.NextSeq = b.desk.NextSeq()
	if err := agent.Work(context.Background(), b.job, b.o); err != nil {
		t.Error(err)
	}
	if f := b.desk.Faults(); len(f) > 0 {
		t.Errorf("the agent broke the protocol: %v", f)
	}
}

// An agent that was replaced and does not know yet may still write down what goes wrong for it: that spoils nothing of
// what its successor has written.
func TestReplacedAgentSpoilsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, append([]agenttest.Step{{"status", "up"}, {"metrics", 200, 0.01}}, agenttest.Good(1)...)...)
	b.o.TellLog = true
	cut := &lost{Desk: b.desk}
	old := *b
	old.o.Desk, old.o.RetryAfter = cut, 5*time.Millisecond
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	wait := old.begin(ctx)
	b.until("up")
	cut.gone.Store(true)
	b.o.SendEvery = 700 * time.Millisecond // so that its outbox is read late
	b.job.NextSeq = b.desk.NextSeq()
	if f := b.finish(); f.ErrorCode != "" {
		t.Errorf("finish = %+v", f)
	}
	leave()
	_ = wait()
	wantMetrics(t, b.desk, 200)
	inOrder(t, said(t, b.desk), "working on the run", "going on with the run, which has a worker already", "the server has the predictions")
}

// lost is a desk that cannot be reached any more, each time for another reason.
type lost struct {
	*agenttest.Desk
	gone atomic.Bool
	n    atomic.Int64
}

func (l *lost) Progress(ctx context.Context, job api.Job, events []api.Event) (api.Answer, error) {
	if l.gone.Load() {
		return api.Answer{}, fmt.Errorf("no way there, %d", l.n.Add(1))
	}
	return l.Desk.Progress(ctx, job, events)
}
