package e2e_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ourTrainers puts the trainers of testdata where a study may keep its own, and returns the config line that names them.
func ourTrainers(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "trainers"))); err != nil {
		t.Fatal(err)
	}
	return "trainers_dir: " + dir
}

// R6, W12, P3: the server is killed at a random moment of a run and comes back. Nothing stays "running", nothing is lost
// or doubled. `make test-all` does it a hundred times.
func TestServerIsKilledAtAnyMoment(t *testing.T) {
	kills := 10
	if os.Getenv("POTATO_TEST_ALL") != "" {
		kills = 100
	}
	for i := range kills {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			dir := study(t, ourTrainers(t))
			s := start(t, dir)
			id := s.post(map[string]any{"trainer": "counting", "schemas": []string{"sentiment"}, "params": map[string]any{"steps": 30}})
			waiting := s.post(map[string]any{"trainer": "counting", "schemas": []string{"sentiment"}, "params": map[string]any{"steps": 1}})
			wait := time.Duration(rand.IntN(2600)) * time.Millisecond
			t.Logf("killed after %v", wait)
			time.Sleep(wait)
			s.stop(syscall.SIGKILL)

			s = start(t, dir)
			for _, id := range []string{id, waiting} {
				whole(t, s, s.finished(id, "success"))
			}
			noWorkerLeft(t, dir)
		})
	}
}

// whole checks that a run's events and predictions are all there, once.
func whole(t *testing.T, s *server, r run) {
	t.Helper()
	var events struct {
		Events []struct {
			Seq        int64
			Event, Msg string
		}
	}
	s.api("GET", "/runs/"+r.RunID+"/events?limit=5000", nil, &events)
	count, results := 0, 0
	for i, e := range events.Events {
		if want := int64(i + 1); e.Seq != want {
			t.Fatalf("event %d of %s has seq %d", want, r.RunID, e.Seq)
		}
		if strings.HasPrefix(e.Msg, "count ") {
			if want := fmt.Sprintf("count %d", count); e.Msg != want {
				t.Fatalf("%s says %q, want %q: lines were lost or doubled", r.RunID, e.Msg, want)
			}
			count++
		}
		if e.Event == "result" {
			results++
		}
	}
	if count == 0 || results != 1 {
		t.Errorf("%s has %d counts and %d results", r.RunID, count, results)
	}
	_, body := s.raw("GET", "/admin/training/api/runs/"+r.RunID+"/predictions?format=ndjson", nil)
	seen := map[string]bool{}
	for line := range strings.Lines(string(body)) {
		var p struct {
			InstanceID string `json:"instance_id"`
		}
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			t.Fatal(err)
		}
		if seen[p.InstanceID] {
			t.Errorf("%s is predicted twice", p.InstanceID)
		}
		seen[p.InstanceID] = true
	}
	if want := r.NVal + r.NTest + r.NUnlabeled; len(seen) != want || want == 0 {
		t.Errorf("%s has %d predictions, want %d", r.RunID, len(seen), want)
	}
	if r.Metrics["test_accuracy"] == nil {
		t.Errorf("%s has no test_accuracy: %v", r.RunID, r.Metrics)
	}
}

// noWorkerLeft waits until no process speaks of the study's folder, and names those that do.
func noWorkerLeft(t *testing.T, dir string) {
	t.Helper()
	var left []string
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		left = nil
		lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range lines {
			text, _ := os.ReadFile(path)
			if said := strings.ReplaceAll(string(text), "\x00", " "); strings.Contains(said, filepath.Join(dir, "annotation_output")) {
				left = append(left, said)
			}
		}
		if len(left) == 0 {
			return
		}
	}
	t.Errorf("processes are left: %q", left)
}
