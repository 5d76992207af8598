package supervisor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"potato/agent"
	"potato/agent/agenttest"
	"potato/api"
	"potato/project"
	"potato/runners"
	"potato/runners/runnertest"
	"potato/store"
	"potato/supervisor"
)

func TestMain(m *testing.M) {
	agenttest.Main(func() int {
		if len(os.Args) == 3 && os.Args[1] == serveArg {
			return serve(os.Args[2])
		}
		code := m.Run()
		if err := goleak.Find(); err != nil && code == 0 {
			_, _ = os.Stderr.WriteString(err.Error() + "\n")
			return 1
		}
		return code
	})
}

// server is a supervisor on a study, as cmd wires it, that can be stopped and started again.
type server struct {
	*supervisor.Supervisor
	t      *testing.T
	config *project.Config
	adapt  func(*supervisor.Options)
	db     *store.DB
	stop   func()
}

// start starts a server on the config; adapt may change what it stands on.
func start(t *testing.T, c *project.Config, adapt func(*supervisor.Options)) *server {
	t.Helper()
	s := &server{t: t, config: c, adapt: adapt}
	s.start()
	t.Cleanup(func() { s.stop() })
	return s
}

func (s *server) start() {
	s.t.Helper()
	db, err := store.Open(context.Background(), s.config.TrainingPath(), time.Now)
	must(s.t, err)
	study := project.OpenStudy(s.config)
	python := runners.NewPython(s.config)
	log := slog.New(slog.NewTextHandler(testWriter{s.t}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	local := runners.NewLocal(runners.LocalOptions{Config: s.config, Python: python, Shim: agenttest.Shim(s.t), Log: log, Poll: 10 * time.Millisecond})
	o := supervisor.Options{
		Config: s.config, Study: study, DB: db, Python: python, Log: log, LimitEvery: 50 * time.Millisecond,
		Runners: map[api.BackendType]runners.Runner{api.BackendLocal: local},
	}
	if s.adapt != nil {
		s.adapt(&o)
	}
	s.Supervisor, err = supervisor.New(o)
	must(s.t, err)
	s.db = db
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	s.stop = func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Errorf("the supervisor ended with %v", err)
		}
		must(s.t, study.Close())
		must(s.t, db.Close())
		s.stop = func() {}
	}
}

// restart stops the server, while runs go on, and starts another.
func (s *server) restart() {
	s.t.Helper()
	s.stop()
	s.start()
}

// request is a run of the steered trainer.
func request(params map[string]any) api.RunRequest {
	return api.RunRequest{Trainer: runnertest.Trainer, Schemas: []string{runnertest.Scheme}, Params: params}
}

// create starts a run of the steered trainer.
func (s *server) create(params map[string]any) api.RunID {
	s.t.Helper()
	started, err := s.CreateRun(s.t.Context(), request(params), api.TriggerAPI, "admin")
	must(s.t, err)
	return started.RunID
}

// await waits until a run is in one of the states and returns it.
func (s *server) await(id api.RunID, states ...api.RunStatus) api.Run {
	s.t.Helper()
	var r api.Run
	agenttest.Wait(s.t, fmt.Sprintf("run %s to be %v", id, states), func() (bool, string) {
		var err error
		r, err = s.RunByID(context.Background(), id)
		must(s.t, err)
		said, _ := json.Marshal(r)
		if r.Status.Final() && !slices.Contains(states, r.Status) {
			s.t.Fatalf("run %s ended as %s, not %v: %s\n%s", id, r.Status, states, said, s.logText(id))
		}
		return slices.Contains(states, r.Status), string(said)
	})
	return r
}

// awaitStep waits until a run says that it is doing this.
func (s *server) awaitStep(id api.RunID, step string) {
	s.t.Helper()
	agenttest.Wait(s.t, "step "+step, func() (bool, string) {
		r, err := s.RunByID(context.Background(), id)
		must(s.t, err)
		return r.Step == step, string(r.Status) + " " + r.Step + " " + r.Error
	})
}

func (s *server) logText(id api.RunID) string {
	lines, err := s.Log(context.Background(), id, supervisor.LogQuery{Limit: 100})
	must(s.t, err)
	var b strings.Builder
	for _, l := range lines.Lines {
		fmt.Fprintf(&b, "%d %s %s\n", l.N, l.Level, l.Text)
	}
	return b.String()
}

// marker is what every process of a run's work carries.
func (s *server) marker(id api.RunID) string {
	s.t.Helper()
	r, err := s.db.RunByID(context.Background(), id)
	must(s.t, err)
	if r.Handle == nil {
		return ""
	}
	return r.Handle.Marker
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	if !api.HasCode(err, code) {
		t.Fatalf("got error %v, want code %s", err, code)
	}
}

// testWriter sends the server's log to the test's.
type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Log(strings.TrimRight(string(b), "\n"))
	return len(b), nil
}

var _ agent.Desk = (*agenttest.Desk)(nil)
