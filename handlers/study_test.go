package handlers_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"potato/agent/agenttest"
	"potato/api"
	"potato/handlers"
	"potato/project"
	"potato/runners"
	"potato/runners/runnertest"
	"potato/store"
	"potato/supervisor"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == serveArg {
		fmt.Fprintln(os.Stderr, serveUntilKilled(os.Args[2], os.Args[3]))
		os.Exit(1)
	}
	agenttest.Main(func() int {
		code := m.Run()
		client.CloseIdleConnections()
		http.DefaultClient.CloseIdleConnections()
		if err := goleak.Find(); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		return code
	})
}

// study is a server on a study with a supervisor that works; its runner alone is the fake one.
type study struct {
	*server
	config     *project.Config
	supervisor *supervisor.Supervisor
	db         *store.DB
	leave      func() // stops the supervisor, as a server does that goes down
}

func serveStudy(t testing.TB, c *project.Config, adapt func(*supervisor.Options)) *study {
	t.Helper()
	db, err := store.Open(t.Context(), c.TrainingPath(), time.Now)
	must(t, err)
	data := project.OpenStudy(c)
	o := supervisor.Options{
		Config: c, Study: data, DB: db, Python: runners.NewPython(c), LimitEvery: 20 * time.Millisecond, Version: "1.2.3",
		Runners: map[api.BackendType]runners.Runner{api.BackendLocal: &runnertest.Fake{Machine: &runnertest.Machine{}}},
		Log:     slog.New(slog.DiscardHandler),
	}
	if adapt != nil {
		adapt(&o)
	}
	s, err := supervisor.New(o)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	leave := sync.OnceFunc(func() {
		cancel()
		must(t, <-done)
		must(t, data.Close())
		must(t, db.Close())
	})
	t.Cleanup(leave)
	return &study{serve(t, handlers.Options{Supervisor: s, AdminKey: c.AdminAPIKey}), c, s, db, leave}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// films is the study of runnertest, with the lines below its model_training.
func films(t testing.TB, training string) *study {
	t.Helper()
	return serveStudy(t, runnertest.Study(t, training), nil)
}

type object = map[string]any

// order is the body that starts a run.
func order(params object) object {
	return object{"trainer": runnertest.Trainer, "schemas": []string{runnertest.Scheme}, "params": params}
}

// train starts a run and returns its id.
func (s *study) train(params object) api.RunID {
	s.t.Helper()
	return decode[api.RunStarted](s.t, s.do("POST", below("/runs"), order(params)).ok(s.t, 202)).RunID
}

// gate makes runs wait until open is called.
func (s *study) gate() (params object, open func()) {
	path := filepath.Join(s.t.TempDir(), "gate")
	return object{"gate": path}, func() {
		s.t.Helper()
		must(s.t, os.WriteFile(path, nil, 0o600))
	}
}

func run(id api.RunID, rest string) string { return below("/runs/" + string(id) + rest) }

func (s *study) run(id api.RunID) api.Run {
	s.t.Helper()
	return decode[api.Run](s.t, s.get(run(id, "")).ok(s.t, 200))
}

func (s *study) await(id api.RunID, want api.RunStatus) api.Run {
	s.t.Helper()
	var r api.Run
	agenttest.Wait(s.t, fmt.Sprintf("run %s to be %s", id, want), func() (bool, string) {
		r = s.run(id)
		if r.Status.Final() && r.Status != want {
			s.t.Fatalf("run %s ended as %s: %s", id, r.Status, r.Error)
		}
		return r.Status == want, string(r.Status) + " " + r.Step
	})
	return r
}

// trained is a run that has succeeded.
func (s *study) trained() api.RunID {
	s.t.Helper()
	id := s.train(nil)
	s.await(id, api.RunSuccess)
	return id
}

const noRun = "20260101T000000-abcdef"
