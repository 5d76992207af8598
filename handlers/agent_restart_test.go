package handlers_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"potato/agent/agenttest"
	"potato/api"
	"potato/handlers"
	"potato/project"
	"potato/runners"
	"potato/runners/runnertest"
	"potato/store"
	"potato/supervisor"
)

// restart is the next server on the same study; tokens and leases are as the last one left them.
func (w *worker) restart(adapt func(*supervisor.Options)) *worker {
	w.t.Helper()
	w.leave()
	s := serveStudy(w.t, w.config, func(o *supervisor.Options) {
		o.Runners[api.BackendAgent] = runners.NewPoll(runners.PollOptions{DB: o.DB})
		o.BundleWait = 20 * time.Millisecond
		if adapt != nil {
			adapt(o)
		}
	})
	l := &lab{study: s, tokens: w.tokens}
	probe := l.agent("other", "probe")
	agenttest.Wait(w.t, "the server to look at what the last one left", func() (bool, string) {
		a := probe.ask("probe", 0)
		return a.StatusCode == http.StatusNoContent, a.text
	})
	return &worker{lab: l, token: w.token, id: w.id, job: w.job}
}

// R6: wherever a job stands, the next server goes on with it, by the same lease.
func TestNextServerGoesOn(t *testing.T) {
	t.Parallel()
	t.Run("claimed, and its answer lost", func(t *testing.T) {
		l := serveLab(t, "", nil)
		id := l.on("lab", nil)
		w := l.agent("lab", "a").claim("c")
		v := w.restart(nil)
		again := decode[api.Job](t, v.ask("c", 5).ok(t, 200))
		if again.RunID != id || again.Lease != w.job.Lease || again.Spec.Trainer != w.job.Spec.Trainer || len(again.Spec.Schemas) != 1 {
			t.Errorf("got %+v", again)
		}
		v.train()
		v.await(id, api.RunSuccess)
	})
	t.Run("claimed, and never heard of", func(t *testing.T) {
		l := serveLab(t, "", nil)
		id := l.on("lab", nil)
		w := l.agent("lab", "a").claim("c")
		v := w.restart(func(o *supervisor.Options) { o.ClaimTimeout = time.Second })
		v.await(id, api.RunQueued)
		v.id = "b"
		v.claim("d").say("POST", "heartbeat", nil).ok(t, 200)
		v.train()
		v.await(id, api.RunSuccess)
	})
	t.Run("running", func(t *testing.T) {
		w := running(serveLab(t, "", nil), nil)
		w.tell(event(1, api.EventStatus, func(e *api.Event) { e.Step = "fitting" }), event(2, api.EventStatus, nil))
		v := w.restart(func(o *supervisor.Options) { o.ClaimTimeout = 50 * time.Millisecond })
		a := v.tell(event(2, api.EventStatus, nil), event(3, api.EventLog, func(e *api.Event) { e.Level, e.Msg = "info", "after" }))
		if a.NextSeq != 4 {
			t.Errorf("got %+v", a)
		}
		v.job.NextSeq = 4
		v.train()
		v.await(w.job.RunID, api.RunSuccess)
	})
	t.Run("running, and the agent comes back too", func(t *testing.T) {
		w := running(serveLab(t, "", nil), nil)
		w.tell(event(1, api.EventStatus, nil))
		v := w.restart(nil)
		job := decode[api.Job](t, v.ask("d", 0, api.Held{RunID: w.job.RunID, Lease: w.job.Lease}).ok(t, 200))
		if job.RunID != w.job.RunID || job.Lease != w.job.Lease || job.NextSeq != 2 || job.BundleDigest == "" {
			t.Errorf("got %+v", job)
		}
		v.job = job
		v.train()
		v.await(job.RunID, api.RunSuccess)
	})
	t.Run("half an upload", func(t *testing.T) {
		w, good := ready(t, "")
		w.patch(good[:100], 0, len(good), digestOf(good)).ok(t, 200)
		v := w.restart(nil)
		if got := v.head().ok(t, 200).Header.Get("Upload-Offset"); got != "100" {
			t.Fatalf("offset %q", got)
		}
		v.patch(good[100:], 100, len(good), digestOf(good)).ok(t, 200)
	})
	t.Run("predictions stored, and the end not told", func(t *testing.T) {
		w, good := ready(t, "")
		w.tell(event(1, api.EventResult, func(e *api.Event) { e.Status = "success" }))
		w.put(good).ok(t, 200)
		v := w.restart(nil)
		v.put(good).ok(t, 200)
		v.finish(api.Finish{}).ok(t, 204)
		v.await(w.job.RunID, api.RunSuccess)
	})
	t.Run("finished, and not evaluated", func(t *testing.T) {
		g := &gates{}
		w := running(serveLab(t, "", func(o *supervisor.Options) { o.Hold = g.hold }), nil)
		g.shut(api.RunEvaluating) // until the server goes down
		w.tell(event(1, api.EventResult, func(e *api.Event) { e.Status = "success" }))
		w.put(nil).ok(t, 200)
		w.finish(api.Finish{}).ok(t, 204)
		w.await(w.job.RunID, api.RunEvaluating)
		v := w.restart(nil)
		v.finish(api.Finish{}).ok(t, 204)
		v.await(w.job.RunID, api.RunSuccess)
		v.finish(api.Finish{}).ok(t, 204)
	})
	t.Run("cancelled while the server was away", func(t *testing.T) {
		l := serveLab(t, "  grace_seconds: 20\n", nil)
		w := running(l, nil)
		w.say("POST", "heartbeat", nil).ok(t, 200)
		l.do("POST", run(w.job.RunID, "/cancel"), nil).ok(t, 200)
		v := w.restart(nil)
		if a := decode[api.Answer](t, v.say("POST", "heartbeat", nil).ok(t, 200)); !a.Cancel {
			t.Errorf("got %+v", a)
		}
		v.finish(api.Finish{Cancelled: true}).ok(t, 204)
		v.await(w.job.RunID, api.RunCancelled)
	})
}

// A server that is still looking at what the last one left does not say that there is nothing: agents would give up what
// they hold.
func TestClaimBeforeTheServerLooked(t *testing.T) {
	c := runnertest.Study(t, labs)
	db, err := store.Open(t.Context(), c.TrainingPath(), time.Now)
	must(t, err)
	defer func() { must(t, db.Close()) }()
	data := project.OpenStudy(c)
	defer func() { must(t, data.Close()) }()
	s, err := supervisor.New(supervisor.Options{Config: c, Study: data, DB: db, Python: runners.NewPython(c), Runners: map[api.BackendType]runners.Runner{
		api.BackendLocal: &runnertest.Fake{}, api.BackendAgent: runners.NewPoll(runners.PollOptions{DB: db}),
	}})
	must(t, err)
	issued, err := s.Register(t.Context(), "lab")
	must(t, err)
	h := serve(t, handlers.Options{Supervisor: s, AdminKey: c.AdminAPIKey})
	q := api.ClaimRequest{AgentID: "a", ClaimID: "c", Host: "h", Version: "1"}
	if a := h.do("POST", "/api/training/jobs/claim", q, bearer(issued.Token)); a.StatusCode != 503 || a.Header.Get("Retry-After") == "" {
		t.Errorf("got %d %s", a.StatusCode, a.text)
	}
}

// serveArg makes the test program a server on a study, at an address, so that it can be killed like one.
const serveArg = "serve"

func serveUntilKilled(path, address string) error {
	ctx := context.Background()
	c, report := project.Load(path)
	if len(report.Errors) > 0 {
		return fmt.Errorf("the config: %v", report.Errors)
	}
	db, err := store.Open(ctx, c.TrainingPath(), time.Now)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	s, err := supervisor.New(supervisor.Options{
		Config: c, Study: project.OpenStudy(c), DB: db, Python: runners.NewPython(c), Log: log, LimitEvery: 20 * time.Millisecond,
		Runners: map[api.BackendType]runners.Runner{
			api.BackendLocal: &runnertest.Fake{Machine: &runnertest.Machine{}}, api.BackendAgent: runners.NewPoll(runners.PollOptions{DB: db}),
		},
	})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Println("listening")
	server := handlers.NewServer(handlers.Options{Supervisor: s, AdminKey: c.AdminAPIKey, Log: log}, http.NotFoundHandler())
	go func() { _ = server.Serve(l) }()
	return s.Run(ctx)
}

// killed is a server that is killed and started again at the same address, until calm.
type killed struct {
	t       *testing.T
	config  string
	address string
	stop    chan struct{}
	done    sync.WaitGroup
	kills   atomic.Int32
}

func serveAndKill(t *testing.T, config string) *killed {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	k := &killed{t: t, config: config, address: l.Addr().String(), stop: make(chan struct{})}
	must(t, l.Close())
	k.done.Go(func() {
		for k.round() {
			k.kills.Add(1)
		}
	})
	t.Cleanup(k.calm)
	return k
}

// round starts the server and kills it after a moment; once it is calm the server stays until the test's end.
func (k *killed) round() (more bool) {
	self, err := os.Executable()
	if err != nil {
		k.t.Error(err)
		return false
	}
	cmd := exec.Command(self, serveArg, k.config, k.address)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		k.t.Error(err)
		return false
	}
	_, _ = bufio.NewReader(out).ReadString('\n')
	select {
	case <-time.After(rand.N(300 * time.Millisecond)):
		more = true
	case <-k.stop:
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // killed, as it should be
	return more
}

func (k *killed) calm() {
	select {
	case <-k.stop:
	default:
		close(k.stop)
	}
	k.done.Wait()
}

// again repeats a call while the server is away.
func again[T any](t *testing.T, what string, call func() (T, error)) T {
	t.Helper()
	var last error
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); {
		v, err := call()
		if err == nil {
			return v
		}
		if e := api.AsError(err); e.Kind != api.KindUnavailable && e.Kind != api.KindInternal {
			t.Fatalf("%s: %s: %v", what, e.Code, err)
		}
		last = err
		<-time.After(10 * time.Millisecond)
	}
	t.Fatalf("%s: %v", what, last)
	panic("not reached")
}

// R6, T38: the server is killed again and again while an agent works: the claim holds, no event is lost or comes twice, and
// the run is a success with every prediction once.
func TestServerIsKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	c := runnertest.Study(t, labs)
	db, err := store.Open(t.Context(), c.TrainingPath(), time.Now)
	must(t, err)
	defer func() { must(t, db.Close()) }()
	issued, err := supervisor.Register(t.Context(), c, db, "lab")
	must(t, err)
	id := api.NewRunID(time.Now())
	must(t, db.CreateRun(t.Context(), api.Run{
		RunID: id, Trainer: runnertest.Trainer, SchemaNames: []string{runnertest.Scheme}, Kinds: []api.SchemeKind{api.KindNominal}, Backend: "lab",
		Trigger: api.TriggerAPI, CreatedBy: "admin", CreatedAt: float64(time.Now().Unix()),
	}, nil))
	k := serveAndKill(t, c.File)
	hc, err := api.NewHTTPClient("")
	must(t, err)
	defer hc.CloseIdleConnections()
	agent := &api.Client{BaseURL: "http://" + k.address, Token: issued.Token, HTTP: hc, CallTimeout: 2 * time.Second}
	q := api.ClaimRequest{AgentID: "a", ClaimID: "c", Host: "gpu-box", Version: "1", WaitS: 1}
	job := again(t, "claim", func() (*api.Job, error) {
		job, err := agent.Claim(t.Context(), q)
		if err == nil && job == nil {
			err = api.Unavailablef("none", "no work yet")
		}
		return job, err
	})
	dir := t.TempDir()
	bundle := again(t, "bundle", func() (string, error) { return agent.Bundle(t.Context(), *job, dir) })
	enough := int32(6)
	if os.Getenv("POTATO_TEST_ALL") != "" {
		enough = 60
	}
	n := int64(0)
	for next := job.NextSeq; k.kills.Load() < enough || next <= n; {
		var batch []api.Event
		n = max(n, next+int64(rand.IntN(3)))
		for seq := next; seq <= n; seq++ {
			batch = append(batch, event(seq, api.EventLog, func(e *api.Event) { e.Level, e.Msg = "info", fmt.Sprintf("line %d.", seq) }))
		}
		a := again(t, "progress", func() (api.Answer, error) { return agent.Progress(t.Context(), *job, batch) })
		next = a.NextSeq
	}
	again(t, "result", func() (api.Answer, error) {
		return agent.Progress(t.Context(), *job, []api.Event{event(n+1, api.EventResult, func(e *api.Event) { e.Status = "success" })})
	})
	files := map[string][]byte{}
	for _, split := range []string{"val.jsonl", "test.jsonl"} {
		files[split], err = os.ReadFile(filepath.Join(bundle, split))
		must(t, err)
	}
	path := filepath.Join(dir, "predictions.jsonl")
	must(t, os.WriteFile(path, predictions(t, files), 0o600))
	nothing := func(err error) (struct{}, error) { return struct{}{}, err }
	again(t, "predictions", func() (struct{}, error) { return nothing(agent.Predictions(t.Context(), *job, path)) })
	again(t, "finish", func() (struct{}, error) { return nothing(agent.Finish(t.Context(), *job, api.Finish{Host: "gpu-box"})) })
	var r store.Run
	for end := time.Now().Add(30 * time.Second); !r.Status.Final(); {
		r, err = db.RunByID(t.Context(), id)
		must(t, err)
		if time.Now().After(end) {
			t.Fatalf("the run is still %s", r.Status)
		}
		<-time.After(10 * time.Millisecond)
	}
	k.calm()
	page, err := db.PredictionsPage(t.Context(), id, store.PredictionFilter{Limit: 1000})
	must(t, err)
	if r.Status != api.RunSuccess || page.Total != r.NVal+r.NTest || page.Total == 0 {
		t.Errorf("after %d kills: %s (%s: %s), %d predictions of %d", k.kills.Load(), r.Status, r.ErrorCode, r.Error, page.Total, r.NVal+r.NTest)
	}
	text, err := os.ReadFile(filepath.Join(c.TrainingPath(), "runs", string(id), "events.jsonl"))
	must(t, err)
	at := -1
	for i := int64(1); i <= n; i++ {
		line := fmt.Sprintf("line %d.", i)
		if strings.Count(string(text), line) != 1 || strings.Index(string(text), line) < at {
			t.Fatalf("after %d kills: %q is %d times in the log", k.kills.Load(), line, strings.Count(string(text), line))
		}
		at = strings.Index(string(text), line)
	}
	seq := int64(0)
	for line := range strings.Lines(string(text)) {
		var got int64
		if _, err := fmt.Sscanf(line, `{"seq":%d`, &got); err != nil || got <= seq || got > seq+2 { // one line is in agent.log
			t.Fatalf("after %d kills: %s follows number %d", k.kills.Load(), line, seq)
		}
		seq = got
	}
	t.Logf("%d kills, %d events", k.kills.Load(), n)
}
