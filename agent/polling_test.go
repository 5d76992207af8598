package agent_test

import (
	"context"
	"errors"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"potato/agent"
	"potato/agent/agenttest"
	"potato/api"
)

const pollToken = "poll-token-0123456789"

// polling is a server over HTTP and a workdir for agents.
type polling struct {
	*testing.T
	server  *agenttest.Server
	o       agent.PollOptions
	archive []byte
}

func newPolling(t *testing.T) *polling {
	t.Helper()
	p := &polling{T: t, server: agenttest.NewServer(pollToken), archive: agenttest.Archive(t, "manifest.json", "{}")}
	p.server.HeartbeatWait, p.server.Unheard = 200*time.Millisecond, 500*time.Millisecond
	listening := httptest.NewServer(p.server)
	t.Cleanup(listening.Close)
	p.o = agent.PollOptions{
		Client: p.client(listening.URL), Workdir: filepath.Join(t.TempDir(), "work"), Version: "test",
		Job: agent.Options{
			Backend: "lab", Python: agenttest.Python(t), WorkerPath: agenttest.Worker(t), Shim: agenttest.Shim(t), PythonKey: "--python",
			Poll: 10 * time.Millisecond, SendEvery: time.Millisecond, RetryAfter: 2 * time.Millisecond, LeaseTimeout: 20 * time.Second,
		},
		ClaimWait: time.Second, RetryAfter: 5 * time.Millisecond, LongestWait: 20 * time.Millisecond,
	}
	return p
}

// client is one with connections of its own, which are closed with the test.
func (p *polling) client(url string) *api.Client {
	p.Helper()
	hc, err := api.NewHTTPClient("")
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(hc.CloseIdleConnections)
	return &api.Client{BaseURL: url, Token: pollToken, HTTP: hc, RetryAfter: time.Millisecond, CallTimeout: 5 * time.Second}
}

func (p *polling) add(steps ...agenttest.Step) api.RunID {
	job := agenttest.Job(steps...)
	p.server.Add(job, p.archive)
	return job.RunID
}

// once lets an agent do one job, and wants it to leave by itself.
func (p *polling) once() error {
	p.Helper()
	p.o.Once = true
	ctx, cancel := context.WithTimeout(p.Context(), 60*time.Second)
	defer cancel()
	return agent.Poll(ctx, p.o)
}

// start starts an agent; stop ends it cleanly and returns what it said, leave at once.
func (p *polling) start() (stop, leave func() error) {
	p.Helper()
	stopping := make(chan struct{})
	ctx, cancel := context.WithCancel(p.Context())
	o, ended := p.o, make(chan error, 1)
	o.Stop = stopping
	go func() {
		ended <- agent.Poll(ctx, o)
		close(ended)
	}()
	p.Cleanup(func() { // of a test that failed in between
		cancel()
		<-ended
	})
	wait := func() error {
		select {
		case err := <-ended:
			return err
		case <-time.After(60 * time.Second):
			p.Fatal("the agent does not leave")
			return nil
		}
	}
	return func() error {
			close(stopping)
			return wait()
		}, func() error {
			cancel()
			return wait()
		}
}

func (p *polling) until(id api.RunID, status api.RunStatus) agenttest.Held {
	p.Helper()
	agenttest.Wait(p, "run to be "+string(status), func() (bool, string) {
		h := p.server.Run(id)
		return h.Status == status, string(h.Status) + ": " + join(texts(h.Events))
	})
	return p.server.Run(id)
}

// says waits for a step of the worker's.
func (p *polling) says(id api.RunID, text string) {
	p.Helper()
	agenttest.Wait(p, "step "+text, func() (bool, string) {
		all := texts(p.server.Run(id).Events)
		for _, s := range all {
			if s == "status "+text {
				return true, ""
			}
		}
		return false, join(all)
	})
}

// idle makes the agent's waits for work a channel.
func (p *polling) idle() <-chan string {
	waits := make(chan string, 100)
	p.o.Report = func(run api.RunID, text string) {
		if run == "" {
			select {
			case waits <- text:
			default:
			}
		}
	}
	return waits
}

// hears waits for a report.
func (p *polling) hears(reports <-chan string, want string) {
	p.Helper()
	limit := time.After(20 * time.Second)
	var heard []string
	for {
		select {
		case got := <-reports:
			if heard = append(heard, got); got == want {
				return
			}
		case <-limit:
			p.Fatalf("waited for report %q; heard %q", want, heard)
		}
	}
}

// good wants a run that succeeded, with every number of its metrics once and in order.
func (p *polling) good(id api.RunID, metrics int) {
	p.Helper()
	h := p.until(id, api.RunSuccess)
	next := 0
	for i, e := range h.Events {
		if e.Seq != int64(i+1) {
			p.Fatalf("event %d has number %d", i+1, e.Seq)
		}
		if e.Event == api.EventMetric {
			if *e.Value != float64(next) {
				p.Fatalf("metric %v came where %d was due", *e.Value, next)
			}
			next++
		}
	}
	if next != metrics {
		p.Errorf("%d metrics came, want %d", next, metrics)
	}
	if f := p.server.Faults(); len(f) > 0 {
		p.Errorf("the agent broke the protocol: %v", f)
	}
}

// has lists what lies in a folder of the workdir.
func (p *polling) has(folder string) (names []string) {
	p.Helper()
	entries, err := os.ReadDir(filepath.Join(p.o.Workdir, folder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		p.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func (p *polling) marker(id api.RunID) string {
	p.Helper()
	var h api.Handle
	readJSON(p.T, filepath.Join(p.o.Workdir, "jobs", string(id), "handle.json"), &h)
	if h.Marker == "" {
		p.Fatal("the job has no marker")
	}
	return h.Marker
}
