package handlers_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"potato/agent/agenttest"
	"potato/api"
	"potato/supervisor"
)

// Numbers of the past are ignored, those after a gap are not taken, and the log has each event once.
func TestProgressByNumbers(t *testing.T) {
	w := running(serveLab(t, "", nil), nil)
	log := func(seq int64, text string) api.Event {
		return event(seq, api.EventLog, func(e *api.Event) { e.Level, e.Msg = "info", text })
	}
	for i, c := range []struct {
		send []api.Event
		next int64
	}{
		{[]api.Event{log(1, "one"), log(2, "two")}, 3},
		{[]api.Event{log(1, "one"), log(2, "two")}, 3},
		{[]api.Event{log(2, "two"), log(3, "three")}, 4},
		{[]api.Event{log(9, "nine")}, 4},
		{[]api.Event{log(4, "four"), log(6, "six")}, 5},
		{[]api.Event{log(0, "none"), log(-5, "less")}, 5},
		{nil, 5},
	} {
		body := object{"events": c.send}
		if c.send == nil {
			body["events"] = []api.Event{}
		}
		if got := decode[api.Answer](t, w.say("POST", "progress", body).ok(t, 200)); got.NextSeq != c.next || got.Cancel || got.GraceSeconds != 2 {
			t.Errorf("call %d: got %+v, want next %d", i, got, c.next)
		}
	}
	text := w.get(run(w.job.RunID, "/log")).ok(t, 200).text
	for _, word := range []string{"one", "two", "three", "four"} {
		if n := strings.Count(text, `"`+word+`"`); n != 1 {
			t.Errorf("%q is %d times in the log: %s", word, n, text)
		}
	}
	for _, body := range []string{
		`{"events":[{"v":1,"event":"dance","t":1,"seq":5}]}`, `{"events":[{"v":1,"event":"log"}]}`, `{"events":null}`, `{"events":{}}`, `[]`,
	} {
		w.say("POST", "progress", body).refused(t, 422, "invalid_request")
	}
	for _, body := range []string{`{"events":[{"v":1,"event":"metric","t":1,"seq":5,"value":NaN}]}`, `{"events":[`, ``} {
		w.say("POST", "progress", body).refused(t, 400, "bad_request")
	}
	if got := w.tell(log(5, "five")); got.NextSeq != 6 {
		t.Errorf("after all that: %+v", got)
	}
}

// An agent is bounded: 64 KiB an event, 1 MiB a report.
func TestProgressIsBounded(t *testing.T) {
	t.Parallel()
	w := running(serveLab(t, "", nil), nil)
	long := strings.Repeat("x", 100<<10)
	next := w.tell(
		event(1, api.EventLog, func(e *api.Event) { e.Level, e.Msg = "info", long }),
		event(2, api.EventLog, func(e *api.Event) { e.Level, e.Msg, e.Source = "info", strings.Repeat("<", 60<<10), "stdout" }),
		event(3, api.EventResult, func(e *api.Event) { e.Status, e.Notes = "success", []string{long, long} }),
	).NextSeq
	if next != 4 {
		t.Fatalf("got next %d", next)
	}
	events := w.get(run(w.job.RunID, "/events")).ok(t, 200).text
	if len(events) > 70<<10 || !strings.Contains(events, "cut: the event had") || !strings.Contains(events, "longer than an event may be") {
		t.Errorf("the log has %d bytes", len(events))
	}
	var many []api.Event
	for i := range 18 {
		many = append(many, event(int64(4+i), api.EventLog, func(e *api.Event) { e.Level, e.Msg = "info", strings.Repeat("y", 60<<10) }))
	}
	w.say("POST", "progress", api.ProgressReport{Events: many}).refused(t, 413, "report_too_large")
	w.say("POST", "progress", `{"events":[`+strings.Repeat(" ", 9<<20)+`]}`).refused(t, 413, "too_large")
	if got := w.tell(many[:17]...).NextSeq; got != 21 {
		t.Errorf("got next %d, want 21", got)
	}
}

// G6, H8: a cancel is told at once to a heartbeat that waits, and with every later answer; the run ends with the agent's word.
func TestCancelReachesTheAgent(t *testing.T) {
	l := serveLab(t, "", func(o *supervisor.Options) { o.HeartbeatWait = 20 * time.Second })
	w := running(l, nil)
	told := make(chan answer, 1)
	began := time.Now()
	go func() { told <- w.say("POST", "heartbeat", nil) }()
	l.do("POST", run(w.job.RunID, "/cancel"), nil).ok(t, 200)
	a := decode[api.Answer](t, (<-told).ok(t, 200))
	if took := time.Since(began); !a.Cancel || a.GraceSeconds != 2 || took > time.Second {
		t.Errorf("got %+v after %v", a, took)
	}
	if a := w.tell(event(w.job.NextSeq, api.EventStatus, nil)); !a.Cancel {
		t.Errorf("progress: %+v", a)
	}
	w.finish(api.Finish{Cancelled: true}).ok(t, 204)
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("it took %v", took)
	}
	r := l.await(w.job.RunID, api.RunCancelled)
	if len(r.Warnings) > 0 {
		t.Errorf("warnings: %v", r.Warnings)
	}
}

// H8: an agent that does not report the end of a cancelled run has the grace and no more; late words are told that it is over.
func TestCancelOfAnAgentThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	l := serveLab(t, "", nil)
	w := running(l, nil)
	w.say("POST", "heartbeat", nil).ok(t, 200)
	began := time.Now()
	l.do("POST", run(w.job.RunID, "/cancel"), nil).ok(t, 200)
	r := l.await(w.job.RunID, api.RunCancelled)
	if took := time.Since(began); took < 2*time.Second || took > 2900*time.Millisecond {
		t.Errorf("it took %v, want the grace of 2 s", took)
	}
	if len(r.Warnings) != 1 || r.Warnings[0] != "the worker may still run on gpu-box" {
		t.Errorf("warnings: %v", r.Warnings)
	}
	w.say("POST", "heartbeat", nil).refused(t, 410, "run_over")
	w.finish(api.Finish{Cancelled: true}).refused(t, 410, "run_over")
}

// T36, H9: an agent that died leaves a run that ends with a sentence, and the queue moves on.
func TestAgentThatFallsSilent(t *testing.T) {
	t.Parallel()
	l := serveLab(t, "", nil)
	l.config.ModelTraining.Backends[0].HeartbeatTimeoutS = 0.5
	w := running(l, nil)
	w.tell(event(w.job.NextSeq, api.EventLog, func(e *api.Event) { e.Msg, e.Source, e.Level = "its last words", "agent", "info" }))
	next := l.train(nil) // on this machine, with the one place taken
	r := l.await(w.job.RunID, api.RunError)
	if r.ErrorCode != "heartbeat_lost" || r.Error != "No word from the agent on lab for 0.5 seconds" || !strings.Contains(r.Hint, "agent.log") {
		t.Errorf("got %s: %q (%s)", r.ErrorCode, r.Error, r.Hint)
	}
	if text := l.get(run(r.RunID, "/log?source=agent")).ok(t, 200).text; !strings.Contains(text, "its last words") {
		t.Errorf("agent.log: %s", text)
	}
	l.await(next, api.RunSuccess)
	for message, send := range map[string]func() answer{
		"progress":    func() answer { return w.say("POST", "progress", `{"events":[]}`) },
		"heartbeat":   func() answer { return w.say("POST", "heartbeat", nil) },
		"predictions": func() answer { return w.put(nil) },
		"finish":      func() answer { return w.finish(api.Finish{}) },
	} {
		if a := send(); a.StatusCode != 410 {
			t.Errorf("%s of the late agent: %d %s", message, a.StatusCode, a.text)
		}
	}
	if again := w.ask("c2", 0, api.Held{RunID: r.RunID, Lease: w.job.Lease}); again.StatusCode != 204 {
		t.Errorf("held after its end: %d %s", again.StatusCode, again.text)
	}
}

// C3, P7: a hung worker beside an agent that lives meets the wall limit.
func TestWallLimitOnAnAgent(t *testing.T) {
	t.Parallel()
	l := serveLab(t, "  max_wall_seconds: 1\n", nil)
	w := running(l, nil)
	agenttest.Wait(t, "the limit", func() (bool, string) {
		a := decode[api.Answer](t, w.say("POST", "heartbeat", nil).ok(t, 200))
		return a.Cancel, fmt.Sprint(a)
	})
	w.finish(api.Finish{Cancelled: true}).ok(t, 204)
	r := l.await(w.job.RunID, api.RunError)
	if r.ErrorCode != "wall_time" || !strings.Contains(r.Error, "max_wall_seconds") {
		t.Errorf("got %s: %s", r.ErrorCode, r.Error)
	}
}

// S4: a run that waits for an agent holds no place, and one that an agent has does.
func TestWaitingForAnAgentHoldsNoPlace(t *testing.T) {
	l := serveLab(t, "", nil)
	waits := l.on("lab", nil)
	here := l.train(nil)
	l.await(here, api.RunSuccess)
	if r := l.run(waits); r.Status != api.RunQueued {
		t.Fatalf("the run that waits is %s", r.Status)
	}
	w := l.agent("lab", "a").claim("c")
	params, open := l.gate()
	behind := l.train(params)
	if r := l.run(behind); r.Status != api.RunQueued || r.Queue == nil || !strings.Contains(r.Queue.WaitingFor, string(waits)) {
		t.Errorf("beside the agent's run the other is %s, %+v", r.Status, r.Queue)
	}
	w.train()
	l.await(waits, api.RunSuccess)
	l.await(behind, api.RunRunning)
	// And the other way: an agent that asks while the place is taken waits for it.
	third := l.on("lab", nil)
	w.ask("c2", 0).ok(t, 204)
	open()
	w.claim("c3")
	if w.job.RunID != third {
		t.Errorf("got the job %s, want %s", w.job.RunID, third)
	}
	w.train()
	l.await(third, api.RunSuccess)
}

// G8: two agents and fifty runs: each run is done by exactly one of them, and both work.
func TestTwoAgentsFiftyRuns(t *testing.T) {
	t.Parallel()
	l := serveLab(t, "  max_concurrent_runs: 50\n", nil)
	const n = 50
	var mu sync.Mutex
	holders := map[api.RunID][]string{}
	var agents sync.WaitGroup
	for _, id := range []string{"a", "b"} {
		agents.Go(func() {
			w := l.agent("lab", id)
			for i := 0; ; i++ {
				a := w.ask(fmt.Sprint("c", i), 1)
				if a.StatusCode == http.StatusNoContent {
					return
				}
				w.job = decode[api.Job](t, a.ok(t, 200))
				mu.Lock()
				holders[w.job.RunID] = append(holders[w.job.RunID], id)
				mu.Unlock()
				w.built()
				w.finish(api.Finish{ErrorCode: "worker_failed", Error: "by " + id}).ok(t, 204)
			}
		})
	}
	for range n {
		l.on("lab", nil)
	}
	agents.Wait()
	by := map[string]int{}
	for id, who := range holders {
		if len(who) != 1 {
			t.Errorf("run %s went to %v", id, who)
		}
		by[who[0]]++
		if r := l.await(id, api.RunError); r.Error != "by "+who[0] {
			t.Errorf("run %s ended with %q", id, r.Error)
		}
	}
	if len(holders) != n || by["a"] == 0 || by["b"] == 0 {
		t.Errorf("%d runs were done, by %v", len(holders), by)
	}
	seen := decode[api.BackendList](t, l.get(below("/backends")).ok(t, 200)).Backends[1].Agent
	if len(seen.Agents) != 2 || seen.Agents[0].Host == "" {
		t.Errorf("got %+v, want both by their hosts (T37)", seen)
	}
}

// The same question gets the same job, also while the first is still being answered.
func TestSameQuestionSameJob(t *testing.T) {
	l := serveLab(t, "  max_concurrent_runs: 5\n", nil)
	w := l.agent("lab", "a")
	first := make(chan answer, 1)
	go func() { first <- w.ask("c", 30) }()
	agenttest.Wait(t, "the first question", func() (bool, string) {
		seen := decode[api.BackendList](t, l.get(below("/backends"))).Backends[1].Agent
		return len(seen.Agents) == 1, fmt.Sprint(seen)
	})
	second := make(chan answer, 1)
	go func() { second <- w.ask("c", 30) }()
	if a := <-first; a.StatusCode != http.StatusNoContent {
		t.Fatalf("the first line was answered %d %s", a.StatusCode, a.text)
	}
	one := l.on("lab", nil)
	l.on("lab", nil)
	job := decode[api.Job](t, (<-second).ok(t, 200))
	for range 3 {
		if again := decode[api.Job](t, w.ask("c", 0).ok(t, 200)); again.RunID != one || again.Lease != job.Lease {
			t.Errorf("got %s, want %s", again.RunID, one)
		}
	}
	if other := decode[api.Job](t, w.ask("d", 0).ok(t, 200)); other.RunID == one {
		t.Error("another question got the same job")
	}
}

// Agents that wait are answered when a run comes, and not by looking again and again.
func TestManyIdleAgents(t *testing.T) {
	t.Parallel()
	l := serveLab(t, "  max_concurrent_runs: 100\n", nil)
	const n = 100
	got := make(chan answer, n)
	var idle sync.WaitGroup
	for i := range n {
		idle.Go(func() { got <- l.agent("lab", fmt.Sprint("a", i)).ask("c", 30) })
	}
	agenttest.Wait(t, "all agents to wait", func() (bool, string) {
		seen := decode[api.BackendList](t, l.get(below("/backends"))).Backends[1].Agent
		return len(seen.Agents) == n, fmt.Sprint(len(seen.Agents))
	})
	jobs := map[api.RunID]bool{}
	for range 20 {
		id := l.on("lab", nil)
		began := time.Now()
		job := decode[api.Job](t, (<-got).ok(t, 200))
		if took := time.Since(began); job.RunID != id || jobs[id] || took > 5*time.Second {
			t.Errorf("run %s came as %s after %v", id, job.RunID, took)
		}
		jobs[id] = true
	}
	for range n - 20 {
		l.on("lab", nil)
	}
	idle.Wait()
}

// T40: what an agent's clock says decides nothing, and is told of.
func TestAgentsClockIsWrong(t *testing.T) {
	l := serveLab(t, "", nil)
	w := running(l, nil)
	w.tell(event(1, api.EventStatus, func(e *api.Event) { e.T -= 7200; e.Step = "fitting" }))
	w.job.NextSeq = 2
	w.train()
	r := l.await(w.job.RunID, api.RunSuccess)
	if len(r.Warnings) == 0 || !strings.Contains(strings.Join(r.Warnings, ";"), "clock of gpu-box is 2h0m0s behind") {
		t.Errorf("warnings: %v", r.Warnings)
	}
}

// An agent that gives up before the bundle is there ends the run with its own reason.
func TestFinishWhileBuilding(t *testing.T) {
	g := &gates{}
	l := serveLab(t, "", func(o *supervisor.Options) { o.Hold = g.hold })
	open := g.shut(api.RunBuilding)
	id := l.on("lab", nil)
	w := l.agent("lab", "a").claim("c")
	w.finish(api.Finish{ErrorCode: "disk_full", Error: "No space is left on the disk of gpu-box", Hint: "free some"}).ok(t, 204)
	open()
	r := l.await(id, api.RunError)
	if r.ErrorCode != "disk_full" || r.Error != "No space is left on the disk of gpu-box" || r.Hint != "free some" {
		t.Errorf("got %s: %s (%s)", r.ErrorCode, r.Error, r.Hint)
	}
	w.finish(api.Finish{ErrorCode: "disk_full"}).ok(t, 204)
}

// What an agent says in its last word is shown on one line and bounded.
func TestLastWordsAreBounded(t *testing.T) {
	l := serveLab(t, "", nil)
	w := running(l, nil)
	w.finish(api.Finish{ErrorCode: "worker_failed", Error: "bad\x1b[31m\nred" + strings.Repeat("x", 9000), Stderr: []string{"a\x1b[2Jb"}}).ok(t, 204)
	r := l.await(w.job.RunID, api.RunError)
	if len(r.Error) > 4100 || strings.ContainsAny(r.Error, "\x1b\n") {
		t.Errorf("got %d bytes: %q", len(r.Error), r.Error[:40])
	}
	w.say("POST", "finish", `{"error_code":"Not A Code"}`).refused(t, 422, "invalid_request")
}
