package supervisor_test

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"potato/api"
	"potato/project"
	"potato/runners"
	"potato/runners/runnertest"
	"potato/store"
	"potato/supervisor"
)

// serveArg makes the test program a server on a study, so that it can be killed like one.
const serveArg = "serve"

// serve runs a server until it is killed. On a study without runs it starts one.
func serve(path string) int {
	ctx := context.Background()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	err := func() error {
		c, _ := project.Load(path)
		lock, err := store.LockDir(c.TrainingPath(), time.Now())
		if err != nil {
			return err
		}
		defer lock.Unlock()
		db, err := store.Open(ctx, c.TrainingPath(), time.Now)
		if err != nil {
			return err
		}
		self, err := os.Executable()
		if err != nil {
			return err
		}
		python := runners.NewPython(c)
		local := runners.NewLocal(runners.LocalOptions{Config: c, Python: python, Shim: []string{self, "exec"}, Log: log, Poll: 10 * time.Millisecond})
		s, err := supervisor.New(supervisor.Options{
			Config: c, Study: project.OpenStudy(c), DB: db, Python: python, Log: log,
			Runners: map[api.BackendType]runners.Runner{api.BackendLocal: local},
		})
		if err != nil {
			return err
		}
		if last, err := db.LatestRun(ctx); err == nil && last == nil {
			if _, err := s.CreateRun(ctx, request(nil), api.TriggerAPI, "admin"); err != nil {
				return err
			}
		}
		return s.Run(ctx)
	}()
	log.Error("the server ended", "err", err)
	return 1
}

// TestP3KilledAtAnyMoment kills the server at random moments of a run, again and again: the run ends as a success with
// every prediction once, or it ends with the reason; it is never left in the middle.
func TestP3KilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	must(t, err)
	rounds := 8
	if os.Getenv("POTATO_TEST_ALL") != "" {
		rounds = 40
	}
	for round := range rounds {
		c := runnertest.Study(t, "  writeback: {schemas: [sentiment]}\n")
		db, err := store.Open(t.Context(), c.TrainingPath(), time.Now)
		must(t, err)
		var r store.Run
		kills := 0
		for deadline := time.Now().Add(30 * time.Second); !r.Status.Final(); kills++ {
			if time.Now().After(deadline) {
				t.Fatalf("the run is still %s after %d kills: %+v", r.Status, kills, r)
			}
			server := exec.Command(self, serveArg, c.File)
			server.Stderr = testWriter{t}
			must(t, server.Start())
			wait := rand.N(250 * time.Millisecond)
			if kills > 20 {
				wait = 10 * time.Second // now let it come to an end
			}
			for end := time.Now().Add(wait); time.Now().Before(end) && !r.Status.Final(); <-time.After(5 * time.Millisecond) {
				if last, err := db.LatestRun(t.Context()); err == nil && last != nil {
					r = *last
				}
			}
			must(t, server.Process.Kill())
			_ = server.Wait() // killed, as it should be
		}
		page, err := db.PredictionsPage(t.Context(), r.RunID, store.PredictionFilter{Limit: 1000})
		must(t, err)
		counts, err := db.CountPublished(t.Context())
		must(t, err)
		want := r.NVal + r.NTest
		if r.Status != api.RunSuccess || page.Total != want || len(page.Predictions) != want || counts[r.RunID] != want || r.Writeback.NWritten != want {
			t.Errorf("round %d, %d kills: got %s (%s: %s), %d predictions, %d published; want success and %d", round, kills, r.Status, r.ErrorCode,
				r.Error, page.Total, counts[r.RunID], want)
		}
		nothingLeft(t, r.Handle.Marker)
		text, err := os.ReadFile(c.TrainingPath() + "/runs/" + string(r.RunID) + "/events.jsonl")
		must(t, err)
		if n := strings.Count(string(text), `"event":"result"`); n != 1 {
			t.Errorf("round %d, %d kills: %d results in events.jsonl, want one", round, kills, n)
		}
		t.Logf("round %d: %d kills", round, kills)
		must(t, db.Close())
	}
}
