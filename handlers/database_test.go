package handlers_test

import (
	"os"
	"path/filepath"
	"testing"

	"potato/api"
	"potato/store"
)

// Somebody removes the database of a running server, or puts another in its place: every answer says so and nothing is taken
// that would be lost; moved back it serves again.
func TestDatabaseIsRemovedUnderTheServer(t *testing.T) {
	s := films(t, "")
	id := s.trained()
	file := filepath.Join(s.config.TrainingPath(), store.FileName)
	aside := filepath.Join(t.TempDir(), "aside")
	refused := func() {
		t.Helper()
		for _, path := range []string{below("/runs"), run(id, ""), run(id, "/predictions"), run(id, "/predictions?format=csv"), below("/status"), below("/backends")} {
			a := s.get(path)
			a.refused(t, 503, "database_gone")
			if a.Header.Get("Retry-After") == "" {
				t.Errorf("%s: no Retry-After", path)
			}
		}
		s.do("POST", below("/runs"), order(nil)).refused(t, 503, "database_gone")
		s.do("POST", run(id, "/writeback"), "{}").refused(t, 503, "database_gone")
		s.do("DELETE", run(id, ""), nil).refused(t, 503, "database_gone")
		if _, err := s.supervisor.CreateRun(t.Context(), api.RunRequest{Trainer: "steered", Schemas: []string{"sentiment"}}, api.TriggerAuto, "auto"); !api.HasCode(err, "database_gone") {
			t.Errorf("a run beside the API: got %v, want database_gone", err)
		}
		s.do("POST", "/api/training/jobs/claim", object{"agent_id": "a", "claim_id": "c", "host": "h"}, header("Authorization", "Bearer x")).refused(t, 503, "database_gone")
		s.get(below("/runs"), noKey).refused(t, 401, "unauthenticated")
		s.signIn(s.key)
		if a := s.get("/healthz"); a.StatusCode != 200 {
			t.Errorf("healthz: %d", a.StatusCode)
		}
	}
	must(t, os.Rename(file, aside))
	refused()
	must(t, os.WriteFile(file, nil, 0o600))
	refused()
	must(t, os.Rename(aside, file))
	if got := s.run(id); got.Status != api.RunSuccess {
		t.Errorf("moved back: got %+v", got)
	}
	s.await(s.train(nil), api.RunSuccess)
}
