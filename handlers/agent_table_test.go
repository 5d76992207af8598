package handlers_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"potato/agent/agenttest"
	"potato/api"
	"potato/supervisor"
)

// gates hold runs in a state.
type gates struct {
	mu sync.Mutex
	at map[api.RunStatus]chan struct{}
}

func (g *gates) shut(at api.RunStatus) (open func()) {
	gate := make(chan struct{})
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.at == nil {
		g.at = map[api.RunStatus]chan struct{}{}
	}
	g.at[at] = gate
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.at, at)
		close(gate)
	})
}

func (g *gates) hold(ctx context.Context, _ api.RunID, at api.RunStatus) {
	g.mu.Lock()
	gate := g.at[at]
	g.mu.Unlock()
	if gate == nil {
		return
	}
	select {
	case <-gate:
	case <-ctx.Done():
	}
}

// table reads the table of docs/agent-protocol.md: state → message → what the cell says.
func table(t *testing.T) (messages []string, rows map[string]map[string]string) {
	t.Helper()
	text, err := os.ReadFile("../docs/agent-protocol.md")
	must(t, err)
	_, text2, found := strings.Cut(string(text), "| the run is |")
	if !found {
		t.Fatal("docs/agent-protocol.md has no table")
	}
	rows = map[string]map[string]string{}
	for line := range strings.Lines("| the run is |" + text2) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case messages == nil:
			messages = cells[1:]
		case !strings.HasPrefix(cells[0], "---"):
			rows[cells[0]] = map[string]string{}
			for i, cell := range cells[1:] {
				rows[cells[0]][messages[i]] = cell
			}
		}
	}
	return messages, rows
}

// variants are the forms of a message; a cell that lists several statuses promises all of them.
var variants = map[string][]func(w *worker) answer{
	"progress": {func(w *worker) answer {
		return w.say("POST", "progress", api.ProgressReport{Events: []api.Event{event(w.job.NextSeq, api.EventStatus, nil)}})
	}},
	"heartbeat": {func(w *worker) answer { return w.say("POST", "heartbeat", nil) }},
	"bundle": {
		func(w *worker) answer { return w.say("GET", "bundle", nil) },
		func(w *worker) answer { return w.say("GET", "bundle", nil, header("Range", "bytes=10-19")) },
		func(w *worker) answer {
			etag := w.say("GET", "bundle", nil).Header.Get("ETag")
			return w.say("GET", "bundle", nil, header("If-None-Match", etag))
		},
		func(w *worker) answer { return w.say("GET", "bundle", nil, header("Range", "bytes=99999999-")) },
	},
	"predictions": {
		func(w *worker) answer { return w.put([]byte(strings.Repeat("x", 1<<20+1))) },
		func(w *worker) answer { return w.put([]byte("x\n")) },
		func(w *worker) answer { return w.put(nil) }, // none: of an item that is left out nothing is known
	},
	"finish": {func(w *worker) answer { return w.finish(api.Finish{ErrorCode: "worker_failed", Error: "it broke"}) }},
}

// states bring a run into the state of a row; what they return has the job's id and the lease to speak with.
var states = map[string]func(l *lab, g *gates) *worker{
	"queued (not claimed, or gone back)": func(l *lab, _ *gates) *worker {
		w := l.agent("lab", "a")
		w.job = api.Job{RunID: l.on("lab", nil), Lease: "none", NextSeq: 1}
		return w
	},
	"building, your lease": func(l *lab, g *gates) *worker {
		open := g.shut(api.RunBuilding)
		l.t.(*testing.T).Cleanup(open)
		l.on("lab", nil)
		return l.agent("lab", "a").claim("c")
	},
	"running, your lease": running,
	"building, running or evaluating, another lease": func(l *lab, g *gates) *worker {
		w := running(l, g)
		w.job.Lease = "another"
		return w
	},
	"running, to be cancelled": func(l *lab, g *gates) *worker {
		w := running(l, g)
		l.do("POST", run(w.job.RunID, "/cancel"), nil).ok(l.t, 200)
		return w
	},
	"evaluating, your lease": func(l *lab, g *gates) *worker {
		l.t.(*testing.T).Cleanup(g.shut(api.RunEvaluating))
		w := running(l, g)
		w.tell(event(1, api.EventResult, func(e *api.Event) { e.Status = "success" }))
		w.put(nil).ok(l.t, 200)
		w.finish(api.Finish{}).ok(l.t, 204)
		l.await(w.job.RunID, api.RunEvaluating)
		return w
	},
	"success, error, cancelled, the lease that ended it": ended,
	"success, error, cancelled, any other lease": func(l *lab, g *gates) *worker {
		w := ended(l, g)
		w.job.Lease = "another"
		return w
	},
	"unknown, or of another backend": func(l *lab, _ *gates) *worker {
		w := l.agent("lab", "a")
		w.job = api.Job{RunID: noRun, Lease: "none", NextSeq: 1}
		return w
	},
}

func running(l *lab, _ *gates) *worker {
	l.on("lab", nil)
	w := l.agent("lab", "a").claim("c")
	w.built()
	return w
}

func ended(l *lab, g *gates) *worker {
	w := running(l, g)
	w.finish(api.Finish{ErrorCode: "worker_failed", Error: "it broke"}).ok(l.t, 204)
	l.await(w.job.RunID, api.RunError)
	return w
}

var cellPattern = regexp.MustCompile("([0-9]{3})(?: `([a-z_]+)`)?")

// The table of the protocol's page, walked cell by cell.
func TestStateTimesMessage(t *testing.T) {
	messages, rows := table(t)
	if want := slices.Sorted(maps.Keys(variants)); !slices.Equal(slices.Sorted(slices.Values(messages)), want) {
		t.Fatalf("the table has the messages %v, this test %v", messages, want)
	}
	if want := slices.Sorted(maps.Keys(states)); !slices.Equal(slices.Sorted(maps.Keys(rows)), want) {
		t.Fatalf("the table has the states\n%q\nthis test\n%q", slices.Sorted(maps.Keys(rows)), want)
	}
	for state, cells := range rows {
		for _, message := range messages {
			t.Run(state+"/"+message, func(t *testing.T) {
				t.Parallel()
				g := &gates{}
				l := serveLab(t, "  max_predictions_mb: 1\n", func(o *supervisor.Options) { o.Hold = g.hold })
				checkCell(t, states[state](l, g), message, cells[message])
			})
		}
	}
}

func checkCell(t *testing.T, w *worker, message, cell string) {
	t.Helper()
	want := map[int]string{} // status → code
	for _, m := range cellPattern.FindAllStringSubmatch(cell, -1) {
		var status int
		must(t, json.Unmarshal([]byte(m[1]), &status))
		want[status] = m[2]
	}
	if len(want) == 0 {
		t.Fatalf("the cell %q names no status", cell)
	}
	got := map[int]string{}
	for _, send := range variants[message] {
		a := send(w)
		code := ""
		switch {
		case a.StatusCode >= 400:
			code = a.problem(t).Code
		case strings.Contains(a.text, `"cancel":true`):
			code = "cancel"
		}
		got[a.StatusCode] = code
		if _, promised := want[a.StatusCode]; !promised || want[a.StatusCode] != "" && want[a.StatusCode] != code {
			t.Errorf("%s is answered %d %s, the table says %q: %s", message, a.StatusCode, code, cell, a.text)
		}
		if a.StatusCode == 503 && a.Header.Get("Retry-After") == "" {
			t.Error("503 without Retry-After")
		}
	}
	for status := range want {
		if _, came := got[status]; !came && len(variants[message]) > 1 && strings.Contains(cell, ",") {
			t.Errorf("%s is never answered %d, the table says %q", message, status, cell)
		}
	}
}

// A lease goes back to the queue when nothing is heard of its agent, and the next one gets the run (DESIGN §3).
func TestLeaseWithoutALifeSign(t *testing.T) {
	t.Parallel()
	l := serveLab(t, "", func(o *supervisor.Options) { o.ClaimTimeout = time.Second })
	id := l.on("lab", nil)
	silent := l.agent("lab", "silent").claim("c1")
	agenttest.Wait(t, "the run to go back", func() (bool, string) {
		r := l.run(id)
		return r.Status == api.RunQueued, string(r.Status)
	})
	for message := range variants {
		for _, send := range variants[message] {
			if a := send(silent); a.StatusCode != 409 || a.problem(t).Code != "lease_moved" {
				t.Errorf("%s of the old lease: %d %s", message, a.StatusCode, a.text)
			}
		}
	}
	r := l.run(id)
	if r.StartedAt != nil || r.Host != "" || r.Queue == nil || len(r.Warnings) > 0 {
		t.Errorf("got %+v, want it as if nobody had asked", r)
	}
	w := l.agent("lab", "b").claim("c2")
	if w.job.RunID != id || w.job.Lease == silent.job.Lease || w.job.NextSeq != 1 {
		t.Fatalf("got the job %+v", w.job)
	}
	w.say("POST", "heartbeat", nil).ok(t, 200)
	w.train()
	l.await(id, api.RunSuccess)
	log := l.get(run(id, "/log")).ok(t, 200).text
	if !strings.Contains(log, "claimed the run and did not begin") {
		t.Errorf("the log does not tell of it: %s", log)
	}
}

// After the first word an agent has its heartbeat time-out, however long it does not fetch the bundle.
func TestLifeSignKeepsTheLease(t *testing.T) {
	t.Parallel()
	l := serveLab(t, "", func(o *supervisor.Options) { o.ClaimTimeout = 300 * time.Millisecond })
	id := l.on("lab", nil)
	w := l.agent("lab", "a").claim("c")
	w.say("POST", "heartbeat", nil).ok(t, 200)
	until := time.Now().Add(time.Second)
	agenttest.Wait(t, "a second", func() (bool, string) {
		if r := l.run(id); r.Status == api.RunQueued {
			t.Fatal("the run went back to the queue")
		}
		return time.Now().After(until), ""
	})
	w.train()
	l.await(id, api.RunSuccess)
}

// The queue timeout counts from when the run had a place and nobody came (G2).
func TestQueueTimeout(t *testing.T) {
	t.Parallel()
	l := serveLab(t, "", nil)
	l.config.ModelTraining.Backends[0].QueueTimeoutS = 0.3
	id := l.on("lab", nil)
	r := l.await(id, api.RunError)
	if r.ErrorCode != "queue_timeout" || !strings.Contains(r.Error, "No agent on lab") || !strings.Contains(r.Error, "0.3 seconds") ||
		!strings.Contains(r.Hint, "queue_timeout_s") || !strings.Contains(r.Hint, "--backend lab") {
		t.Errorf("got %s: %s (%s)", r.ErrorCode, r.Error, r.Hint)
	}
	patient := l.on("other", nil)
	if r := l.run(patient); r.Status != api.RunQueued {
		t.Errorf("a run without a time-out is %s", r.Status)
	}
	l.do("POST", run(patient, "/cancel"), nil).ok(t, 200)
	l.await(patient, api.RunCancelled)
}
