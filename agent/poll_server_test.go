package agent_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"potato/agent/agenttest"
	"potato/api"
)

// switchable is a server on a port of its own that can be taken away and come back there.
type switchable struct {
	t    *testing.T
	h    http.Handler
	addr string
	http *http.Server
}

func newSwitchable(t *testing.T, h http.Handler) *switchable {
	t.Helper()
	s := &switchable{t: t, h: h, addr: "127.0.0.1:0"}
	s.on()
	t.Cleanup(s.off)
	return s
}

func (s *switchable) on() {
	s.t.Helper()
	l, err := net.Listen("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.addr, s.http = l.Addr().String(), &http.Server{Handler: s.h}
	go s.http.Serve(l)
}

// off cuts every connection, as the end of a process does.
func (s *switchable) off() {
	s.t.Helper()
	if err := s.http.Close(); err != nil {
		s.t.Error(err)
	}
}

// T38, R6: the server is away in the midst of a run and comes back; no event is lost, none comes twice, and the agent
// takes the next run.
func TestPollServerIsAway(t *testing.T) {
	p := newPolling(t)
	s := newSwitchable(t, p.server)
	p.o.Client = p.client("http://" + s.addr)
	id := p.add(append([]agenttest.Step{{"status", "ready"}, {"metrics", 60, 0.01}, {"print", "one\n"}}, agenttest.Good(5)...)...)
	idle := p.idle()
	stop, _ := p.start()
	p.hears(idle, "waiting for a run")
	p.says(id, "ready")
	written := func() int {
		b, err := os.ReadFile(filepath.Join(p.o.Workdir, "jobs", string(id), "events.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(b), "\n")
	}
	for range 2 {
		s.off()
		had := written()
		agenttest.Wait(t, "the worker to go on without a server", func() (bool, string) { return written() >= had+15, fmt.Sprint(written()) })
		s.on()
		agenttest.Wait(t, "a word from the agent", func() (bool, string) {
			h := p.server.Run(id)
			return len(h.Events) > had, join(texts(h.Events))
		})
	}
	p.good(id, 60)
	p.hears(idle, "waiting for a run")
	s.off()
	next := p.add(agenttest.Good(1)...)
	p.hears(idle, "the server does not answer")
	s.on()
	p.good(next, 0)
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// G5: without the server for too long the run is cancelled here, and the server is told when it is back.
func TestPollServerIsAwayForTooLong(t *testing.T) {
	p := newPolling(t)
	s := newSwitchable(t, p.server)
	p.o.Client = p.client("http://" + s.addr)
	p.o.Job.ServerLossTimeout, p.o.Job.LastWords = 3*time.Second, 50*time.Millisecond
	id := p.add(agenttest.Step{"on_term", "event"}, agenttest.Step{"status", "ready"}, agenttest.Step{"sleep", 600})
	idle := p.idle()
	stop, _ := p.start()
	p.says(id, "ready")
	marker := p.marker(id)
	s.off()
	p.hears(idle, "the server does not answer")
	if left := agenttest.Marked(marker); len(left) > 0 {
		t.Errorf("still there: %v", left)
	}
	s.on()
	h := p.until(id, api.RunCancelled)
	if h.Finish.ErrorCode != "server_unreachable" || !strings.Contains(h.Finish.Error, "did not answer") {
		t.Errorf("finish: %+v", h.Finish)
	}
	if q := p.server.Claims()[1]; len(q.Held) != 1 || q.Held[0] != (api.Held{RunID: id, Lease: h.Lease}) {
		t.Errorf("asked %+v", q)
	}
	next := p.add(agenttest.Good(1)...)
	p.good(next, 0)
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// A run that the server gave up meanwhile is dropped, and nothing is said of it.
func TestPollRunWasGivenUp(t *testing.T) {
	p := newPolling(t)
	s := newSwitchable(t, p.server)
	p.o.Client = p.client("http://" + s.addr)
	p.o.Job.ServerLossTimeout, p.o.Job.LastWords = 3*time.Second, 50*time.Millisecond
	id := p.add(agenttest.Step{"on_term", "event"}, agenttest.Step{"status", "ready"}, agenttest.Step{"sleep", 600})
	idle := p.idle()
	stop, _ := p.start()
	p.says(id, "ready")
	s.off()
	p.hears(idle, "the server does not answer")
	p.server.GiveUp(id)
	s.on()
	agenttest.Wait(t, "the job directory to go", func() (bool, string) { return len(p.has("jobs")) == 0, join(p.has("jobs")) })
	if q := p.server.Claims(); len(q[1].Held) != 1 {
		t.Errorf("asked %+v", q[1])
	}
	if f := p.server.Run(id).Finish; f != nil {
		t.Errorf("finish: %+v", f)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// The answer to a claim is lost: the same question gets the same job, and the run has one agent.
func TestPollClaimAnswerIsLost(t *testing.T) {
	p := newPolling(t)
	var lost atomic.Int32
	p.server.After = func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/claim") && lost.Add(1) <= 2 {
			panic(http.ErrAbortHandler)
		}
		return false
	}
	id := p.add(agenttest.Good(1)...)
	if err := p.once(); err != nil {
		t.Fatal(err)
	}
	p.good(id, 0)
	q := p.server.Claims()
	if len(q) != 3 || q[0].ClaimID != q[2].ClaimID || len(p.server.Run(id).Agents) != 1 {
		t.Errorf("asked %+v", q)
	}
}

// T36: an agent that comes too late ends its worker and goes on with the next run.
func TestPollLateAgent(t *testing.T) {
	for name, take := range map[string]func(p *polling, id api.RunID){
		"over":        func(p *polling, id api.RunID) { p.server.GiveUp(id) },
		"another has": func(p *polling, id api.RunID) { p.server.Requeue(id) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPolling(t)
			id := p.add(agenttest.Step{"status", "ready"}, agenttest.Step{"sleep", 600})
			stop, _ := p.start()
			p.says(id, "ready")
			marker := p.marker(id)
			// It must not come back to this agent, which would be in its right.
			p.server.Before = func(w http.ResponseWriter, r *http.Request) bool {
				if strings.HasSuffix(r.URL.Path, "/claim") {
					http.Error(w, "", http.StatusServiceUnavailable)
					return true
				}
				return false
			}
			take(p, id)
			agenttest.Wait(t, "the worker's end and the job directory's", func() (bool, string) {
				left := append(agenttest.Marked(marker), p.has("jobs")...)
				return len(left) == 0, join(left)
			})
			if f := p.server.Run(id).Finish; f != nil {
				t.Errorf("finish: %+v", f)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// G8: a token that was replaced ends the agent at once, its worker too; with the new one the run's end is told.
func TestPollTokenIsReplaced(t *testing.T) {
	p := newPolling(t)
	id := p.add(agenttest.Step{"on_term", "event"}, agenttest.Step{"status", "ready"}, agenttest.Step{"sleep", 600})
	ended := make(chan error, 1)
	go func() { ended <- p.once() }()
	p.says(id, "ready")
	marker := p.marker(id)
	p.server.Register("another-token")
	if err := <-ended; !api.HasCode(err, "token_revoked") {
		t.Errorf("Poll: %v", err)
	}
	if left := agenttest.Marked(marker); len(left) > 0 {
		t.Errorf("still there: %v", left)
	}
	p.o.Client.Token = "another-token"
	if err := p.once(); err != nil {
		t.Fatal(err)
	}
	if h := p.server.Run(id); h.Status != api.RunError || !strings.Contains(h.Finish.Error, "token was replaced") {
		t.Errorf("%s: %+v", h.Status, h.Finish)
	}
	p.server.Register("a-third-token")
	if err := p.once(); !api.HasCode(err, "token_revoked") {
		t.Errorf("idle: %v", err)
	}
	p.o.Client.Token = "none"
	if err := p.once(); !api.HasCode(err, "token_unknown") {
		t.Errorf("an unknown token: %v", err)
	}
}

// Something else answers: from the beginning that is a wrong address, later a proxy whose server is away.
func TestPollFindsAnotherServer(t *testing.T) {
	p := newPolling(t)
	page := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(page.Close)
	server := p.o.Client
	p.o.Client = p.client(page.URL)
	if err := p.once(); !api.Misdirected(err) {
		t.Errorf("Poll: %v", err)
	}
	p.o.Client = server
	var misled atomic.Int32
	p.server.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if len(p.server.Claims()) > 0 && misled.Add(1) <= 3 {
			http.NotFound(w, r)
			return true
		}
		return false
	}
	p.o.ClaimWait = 50 * time.Millisecond
	stop, _ := p.start()
	agenttest.Wait(t, "the proxy's answers", func() (bool, string) { return misled.Load() > 3, fmt.Sprint(misled.Load()) })
	id := p.add(agenttest.Good(1)...)
	p.good(id, 0)
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// G3: a bundle that is cut three times arrives, one that is cut five times is the run's failure and says why.
func TestPollBundleIsCut(t *testing.T) {
	p := newPolling(t)
	p.archive = agenttest.Archive(t, "manifest.json", "{}", "train.jsonl", agenttest.Noise(1<<20, 1))
	var cuts atomic.Int32
	cutting := httptest.NewServer(agenttest.Cut(p.server, func(r *http.Request) int {
		if strings.HasSuffix(r.URL.Path, "/bundle") && cuts.Add(-1) >= 0 {
			return 150_000
		}
		return -1
	}))
	t.Cleanup(cutting.Close)
	p.o.Client = p.client(cutting.URL)
	p.o.SayEvery = time.Nanosecond
	cuts.Store(3)
	id := p.add(agenttest.Good(1)...)
	if err := p.once(); err != nil {
		t.Fatal(err)
	}
	p.good(id, 0)
	if all := join(texts(p.server.Run(id).Events)); !strings.Contains(all, "status fetching the bundle: 1 of 1 MB") {
		t.Errorf("the run's log does not say how far the download was: %s", all)
	}

	cuts.Store(5)
	id = p.add(agenttest.Good(1)...)
	if err := p.once(); err != nil {
		t.Fatal(err)
	}
	f := p.server.Run(id).Finish
	if f.ErrorCode != "bundle_download_failed" || !strings.Contains(f.Error, "in 5 attempts: the connection was cut after 0.7 MB of 1.0 MB") || f.Hint == "" {
		t.Errorf("finish: %+v", f)
	}
}

// A bundle that tries to get out of its folder is the run's failure, and writes nothing.
func TestPollHostileBundle(t *testing.T) {
	p := newPolling(t)
	p.archive = agenttest.Archive(t, "manifest.json", "{}", "../../../outside", "x")
	id := p.add(agenttest.Good(1)...)
	if err := p.once(); err != nil {
		t.Fatal(err)
	}
	if f := p.server.Run(id).Finish; f.ErrorCode != "bad_bundle" {
		t.Errorf("finish: %+v", f)
	}
	if _, err := os.Stat(filepath.Join(p.o.Workdir, "outside")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("outside: %v", err)
	}
}

// A run can be cancelled while its bundle is still being built, and the wait does not silence the agent.
func TestPollBundleIsNotReady(t *testing.T) {
	p := newPolling(t)
	job := agenttest.Job(agenttest.Good(1)...)
	p.server.Add(job, nil)
	ended := make(chan error, 1)
	go func() { ended <- p.once() }()
	p.says(job.RunID, "fetching the bundle")
	p.server.Cancel(job.RunID)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if h := p.server.Run(job.RunID); h.Status != api.RunCancelled {
		t.Errorf("%s: %+v", h.Status, h.Finish)
	}
}

// G3: predictions that are too large are the run's failure, which says which key to raise.
func TestPollPredictionsAreTooLarge(t *testing.T) {
	p := newPolling(t)
	p.server.MaxPredictions = 100
	id := p.add(agenttest.Good(50)...)
	if err := p.once(); err != nil {
		t.Fatal(err)
	}
	h := p.server.Run(id)
	if h.Finish.ErrorCode != "predictions_too_large" || !strings.Contains(h.Finish.Error, "max_predictions_mb") || h.Predictions != nil {
		t.Errorf("%s: %+v", h.Status, h.Finish)
	}
}

// A workdir that cannot be used ends the agent with a reason, before it takes the next run and fails that too.
func TestPollWorkdirIsBroken(t *testing.T) {
	p := newPolling(t)
	stop, _ := p.start()
	agenttest.Wait(t, "the first question", func() (bool, string) { return len(p.server.Claims()) > 0, "" })
	if err := os.WriteFile(filepath.Join(p.o.Workdir, "artifacts"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	id := p.add(agenttest.Good(1)...)
	next := p.add(agenttest.Good(1)...)
	h := p.until(id, api.RunError)
	if h.Finish.ErrorCode != "start_failed" || !strings.Contains(h.Finish.Error, "artifacts") {
		t.Errorf("finish: %+v", h.Finish)
	}
	if err := stop(); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("Poll: %v", err)
	}
	if s := p.server.Run(next).Status; s != api.RunQueued {
		t.Errorf("the next run is %s", s)
	}
}
