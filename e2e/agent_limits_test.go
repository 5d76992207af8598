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

// moreItems adds items that nobody labelled, with texts that no packer makes much smaller.
func moreItems(t *testing.T, dir string, n, textBytes int) {
	t.Helper()
	path := filepath.Join(dir, "data", "reviews.json")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var items []map[string]any
	if err := json.Unmarshal(b, &items); err != nil {
		t.Fatal(err)
	}
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	r := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, textBytes)
	for i := range n {
		for j := 0; j < len(text); j += 8 {
			bits := r.Uint64()
			for k := j; k < min(j+8, len(text)); k++ {
				text[k] = letters[bits&63]
				bits >>= 6
			}
		}
		items = append(items, map[string]any{"id": fmt.Sprintf("more-%06d", i), "text": string(text)})
	}
	if b, err = json.Marshal(items); err == nil {
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// G2: nobody takes the run within queue_timeout_s.
func TestQueueTimeoutOfAnAgent(t *testing.T) {
	t.Parallel()
	dir := agentStudy(t)
	edit(t, dir, "queue_timeout_s: 3600", "queue_timeout_s: 1")
	s := start(t, dir)
	began := time.Now()
	r := s.finished(s.agentTextRun(0), "error")
	took := time.Since(began)
	if r.ErrorCode != "queue_timeout" || !strings.Contains(r.Error, "No agent on "+workstation+" took the run within 1 seconds") ||
		!strings.Contains(r.Hint, "potato training agent --server URL --backend "+workstation) || !strings.Contains(r.Hint, "Check") {
		t.Errorf("%s, hint %q", describe(r), r.Hint)
	}
	if took < time.Second || took > 6*time.Second {
		t.Errorf("it took %v", took)
	}
}

// C3: a worker that hangs is ended by the wall limit, on the server at once and on its machine within the grace.
func TestWallLimitOfAHungWorker(t *testing.T) {
	t.Parallel()
	const limit, grace = 8 * time.Second, 2 * time.Second
	dir := agentStudy(t, "grace_seconds: 2")
	edit(t, dir, "max_wall_seconds: 3600", "max_wall_seconds: 8")
	token := register(t, filepath.Join(dir, "config.yaml"))
	s := start(t, dir)
	workdir := t.TempDir()
	a := agentHere(t, s.URL, token, workdir)
	id := s.agentTextRun(forLong)
	hung := worker(t, workdir)
	if err := syscall.Kill(hung, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	all := jobs(t, workdir)
	r := s.finished(id, "error")
	if r.ErrorCode != "wall_time" || !strings.Contains(r.Error, "8 seconds, the limit of max_wall_seconds") {
		t.Errorf("%s", describe(r))
	}
	if r.StartedAt == nil || r.FinishedAt == nil {
		t.Fatal("the run has no times")
	}
	if took := time.Duration((*r.FinishedAt - *r.StartedAt) * float64(time.Second)); took < limit || took > limit+grace+3*time.Second {
		t.Errorf("it took %v, with a limit of %v and a grace of %v", took, limit, grace)
	}
	noJobLeft(t, workdir, all...)

	id = s.agentTextRun(0) // the agent is well, and takes the next one
	s.finished(id, "success")
	select {
	case <-a.done:
		t.Error("the agent left")
	default:
	}
}

// G3: predictions over max_predictions_mb are refused, and the run says which key to raise.
func TestPredictionsOverTheLimit(t *testing.T) {
	t.Parallel()
	dir := agentStudy(t, "max_predictions_mb: 1")
	moreItems(t, dir, 12_000, 20)
	token := register(t, filepath.Join(dir, "config.yaml"))
	s := start(t, dir)
	workdir := t.TempDir()
	a := agentHere(t, s.URL, token, workdir, "--once")
	r := s.finished(s.agentTextRun(0), "error")
	a.leaves(0)
	if said := r.Error + "; " + r.Hint; r.ErrorCode != "predictions_too_large" || !strings.Contains(said, "more than max_predictions_mb allows (1)") || !strings.Contains(r.Hint, "raise `max_predictions_mb`") {
		t.Errorf("%s, hint %q", describe(r), r.Hint)
	}
	if _, body := s.raw("GET", "/admin/training/api/runs/"+r.RunID+"/predictions?format=ndjson", nil); len(body) > 0 {
		t.Errorf("%d bytes of predictions were kept", len(body))
	}
	if _, err := os.Stat(filepath.Join(workdir, "artifacts", r.RunID, "model.pkl")); err != nil {
		t.Errorf("the model stays on the training machine: %v", err)
	}
	noJobLeft(t, workdir)
}
