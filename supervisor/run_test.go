package supervisor_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"potato/agent/agenttest"
	"potato/api"
	"potato/runners"
	"potato/runners/runnertest"
	"potato/store"
	"potato/supervisor"
)

// gone fails when processes of the run are left.
func (s *server) gone(marker string) {
	s.t.Helper()
	if marker == "" {
		s.t.Fatal("the run had no process")
	}
	nothingLeft(s.t, marker)
}

// nothingLeft waits for the last process of a run's work: the shim writes its exit code, and then ends itself.
func nothingLeft(t *testing.T, marker string) {
	t.Helper()
	agenttest.Wait(t, "the processes to end", func() (bool, string) {
		left := agenttest.Marked(marker)
		return len(left) == 0, strings.Join(left, "; ")
	})
}

func TestRunFromQueueToSuccess(t *testing.T) {
	s := start(t, runnertest.Study(t, ""), nil)
	id := s.create(map[string]any{"junk": 3})
	r := s.await(id, api.RunSuccess)
	if r.NTrain+r.NVal+r.NTest != 40 || r.NUnlabeled != 0 || r.Host == "" || r.Device != "cpu" || r.ModelVersion == "" || r.BundleDigest == "" ||
		r.ArtifactURI == "" || r.Duration == nil || r.Step != "" || r.Progress != nil || r.Queue != nil || r.Message == "" || r.Attempt != 1 {
		t.Errorf("got %+v", r)
	}
	if r.Writeback == nil || r.Writeback.NRead != r.NVal+r.NTest || r.Writeback.NSkippedSchemaNotEnabled != r.Writeback.NRead {
		t.Errorf("got write-back %+v, want everything read and nothing enabled", r.Writeback)
	}
	dir := filepath.Join(s.config.TrainingPath(), "runs", string(id))
	for _, name := range []string{"spec.json", "events.jsonl", "stdout.log", "stderr.log", "bundle/manifest.json", "artifacts/predictions.jsonl"} {
		if st, err := os.Stat(filepath.Join(dir, name)); err != nil || st.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, want it there and private", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "job")); err == nil {
		t.Error("the job's folder is still there")
	}
	for source, want := range map[supervisor.LogSource]string{
		supervisor.LogStdout: "junk  2", supervisor.LogStderr: `{"event":"result"} {`, supervisor.LogEvents: "read 31 rows", supervisor.LogAgent: "",
	} {
		lines, err := s.Log(t.Context(), id, supervisor.LogQuery{Source: source, Q: want})
		must(t, err)
		if want != "" && len(lines.Lines) == 0 {
			t.Errorf("%s: got %+v, want a line with %q", source, lines, want)
		}
	}
	events, err := s.Events(t.Context(), id, 0, 0)
	must(t, err)
	for i, e := range events.Events {
		if i > 0 && e.Seq <= events.Events[i-1].Seq {
			t.Errorf("event %d comes after %d", e.Seq, events.Events[i-1].Seq)
		}
	}
	report, err := s.Metrics(t.Context(), id)
	must(t, err)
	if len(report.Schemas) != 1 || report.Schemas[0].Test == nil || report.Schemas[0].Train["train_accuracy"] == nil {
		t.Errorf("got scores %+v, want those of one scheme", report.Schemas)
	}
	for name, split := range map[string]*api.SplitScores{"val": report.Schemas[0].Val, "test": report.Schemas[0].Test} {
		if got, want := accuracyOf(t, s, id, name), r.Metrics[name+"_accuracy"]; want == nil || *want != got || *split.Accuracy != got {
			t.Errorf("%s: got accuracy %v, want %v as anyone computes it", name, want, got)
		}
	}
	if len(report.Curves) != 1 || report.Curves[0].Name != "loss" || len(report.Curves[0].Points) != 3 {
		t.Errorf("got curves %+v, want a loss of three points", report.Curves)
	}
}

// accuracyOf computes a split's accuracy from what is exported, as anyone can.
func accuracyOf(t *testing.T, s *server, id api.RunID, split string) float64 {
	t.Helper()
	n, right := 0.0, 0.0
	must(t, s.ExportPredictions(t.Context(), id, store.PredictionFilter{Split: split}, func(p api.PredictionRow) error {
		n++
		if slices.Equal(p.Target, []string{p.Payload.Label}) {
			right++
		}
		return nil
	}))
	return right / n
}

func TestCancelWhileItTrains(t *testing.T) {
	for name, params := range map[string]map[string]any{
		"obedient":                      {},
		"ignores TERM":                  {"stubborn": true},
		"T29: has children in sessions": {"stubborn": true, "children": true},
		"silent":                        {"silent": true},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, runnertest.Study(t, ""), nil)
			params["gate"] = gate(t)
			id := s.create(params)
			s.awaitStep(id, "fitting")
			marker := s.marker(id)
			began := time.Now()
			r, err := s.Cancel(t.Context(), id)
			must(t, err)
			if !r.CancelRequested && r.Status != api.RunCancelled {
				t.Errorf("got %s without a flag", r.Status)
			}
			r = s.await(id, api.RunCancelled)
			took, limit := time.Since(began), time.Second
			if params["stubborn"] == true {
				limit += 2 * time.Second // the grace
			}
			if took > limit+time.Second { // a second for a busy machine
				t.Errorf("it took %v, want at most %v", took, limit)
			}
			if r.CancelRequested || r.Step != "" || r.Error == "" {
				t.Errorf("got %+v", r)
			}
			s.gone(marker)
		})
	}
}

// Without a grace a worker that ignores TERM is killed at once, not after the time that an agent takes when it is told of none.
func TestNoGrace(t *testing.T) {
	c := runnertest.Study(t, "")
	c.ModelTraining.GraceSeconds = 0
	s := start(t, c, nil)
	id := s.create(map[string]any{"stubborn": true, "gate": gate(t)})
	s.awaitStep(id, "fitting")
	began := time.Now()
	_, err := s.Cancel(t.Context(), id)
	must(t, err)
	s.await(id, api.RunCancelled)
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("it took %v, want at most a second and one for a busy machine", took)
	}
}

func TestP7SilentWorkerMeetsTheWallLimit(t *testing.T) {
	s := start(t, runnertest.Study(t, "  max_wall_seconds: 1\n"), nil)
	id := s.create(map[string]any{"gate": gate(t), "silent": true, "stubborn": true})
	s.awaitStep(id, "fitting")
	marker := s.marker(id)
	r := s.await(id, api.RunError)
	if r.ErrorCode != "wall_time" || !strings.Contains(r.Error, "max_wall_seconds") || !strings.Contains(r.Error, "1 seconds") || r.Hint == "" {
		t.Errorf("got %s: %s (%s), want the limit by its name", r.ErrorCode, r.Error, r.Hint)
	}
	s.gone(marker)
}

func TestP8ChildrenThatHoldTheOutput(t *testing.T) {
	s := start(t, runnertest.Study(t, ""), nil)
	id := s.create(map[string]any{"children": true, "gate": gate(t)})
	s.awaitStep(id, "fitting")
	marker := s.marker(id)
	open(t, paramOf(t, s, id, "gate"))
	s.await(id, api.RunSuccess)
	s.gone(marker)
}

func paramOf(t *testing.T, s *server, id api.RunID, name string) string {
	t.Helper()
	r, err := s.RunByID(t.Context(), id)
	must(t, err)
	return r.Params[name].(string)
}

func TestP9BadPredictionsAreRefusedWhole(t *testing.T) {
	s := start(t, runnertest.Study(t, "  writeback: {schemas: [sentiment]}\n"), nil)
	good := s.create(nil)
	s.await(good, api.RunSuccess)
	before, err := s.db.CountPublished(t.Context())
	must(t, err)
	for predict, text := range map[string]string{
		"nan": "not a number", "outside": "1.5", "unknown-label": "purple", "unknown-item": "nobody",
		"unlabelled-twice": "twice", "training": "trained on", "nothing": "no predictions", "cut": "the worker reported",
	} {
		t.Run(predict, func(t *testing.T) {
			id := s.create(map[string]any{"predict": predict})
			r := s.await(id, api.RunError)
			if r.ErrorCode != "worker_failed" || !strings.Contains(r.Error, text) || r.Hint == "" {
				t.Errorf("got %s: %s (%s), want %q in it", r.ErrorCode, r.Error, r.Hint, text)
			}
			list, err := s.Predictions(t.Context(), id, store.PredictionFilter{})
			must(t, err)
			after, err := s.db.CountPublished(t.Context())
			must(t, err)
			if list.Total != 0 || before[good] != after[good] || len(after) != 1 { // T55
				t.Errorf("got %d predictions and %v published, want none and %v", list.Total, after, before)
			}
		})
	}
}

// A run whose trainer passed over some held-out items says of how many its accuracy is.
func TestAccuracyOfSomeItems(t *testing.T) {
	s := start(t, runnertest.Study(t, ""), nil)
	r := s.await(s.create(map[string]any{"predict": "some"}), api.RunSuccess)
	want := fmt.Sprintf(" on 3 of the %d items of the test split", r.NTest)
	if r.NTest <= 3 || !strings.Contains(r.Message, want) {
		t.Errorf("got %q, want %q in it", r.Message, want)
	}
	r = s.await(s.create(nil), api.RunSuccess)
	if want := fmt.Sprintf(" on the %d items of the test split", r.NTest); !strings.Contains(r.Message, want) {
		t.Errorf("got %q, want %q in it", r.Message, want)
	}
}

// A study calls its held-out split as it likes: what is neither train nor test is scored as val.
func TestSplitsOfOtherNames(t *testing.T) {
	s := start(t, runnertest.Study(t, "  splits: {train: 0.7, dev: 0.3}\n"), nil)
	r := s.await(s.create(nil), api.RunSuccess)
	if r.NVal == 0 || r.NTest != 0 || r.Metrics["val_accuracy"] == nil || r.Metrics["test_accuracy"] != nil {
		t.Errorf("%d val and %d test items, metrics %v; want the dev split scored as val", r.NVal, r.NTest, r.Metrics)
	}
	list, err := s.Predictions(t.Context(), r.RunID, store.PredictionFilter{Split: api.SplitVal})
	must(t, err)
	if list.Total != r.NVal {
		t.Errorf("%d predictions of val, want %d", list.Total, r.NVal)
	}
}

func TestFailuresHaveARowACodeAndALog(t *testing.T) {
	s := start(t, runnertest.Study(t, ""), nil)
	for name, tt := range map[string]struct {
		params          map[string]any
		code, text, log string
	}{
		"the trainer's words": {map[string]any{"fail": "The labels are all wrong"}, "validation_failed", "The labels are all wrong", "stderr: the last line of stderr"},
		"T30: a crash":        {map[string]any{"crash": true}, "worker_failed", "exit code 7", "stderr: Segmentation fault, so to say"},
	} {
		t.Run(name, func(t *testing.T) {
			id := s.create(tt.params)
			r := s.await(id, api.RunError)
			if r.ErrorCode != tt.code || !strings.Contains(r.Error, tt.text) || r.Hint == "" || r.FinishedAt == nil {
				t.Errorf("got %s: %s (%s), want %s", r.ErrorCode, r.Error, r.Hint, tt.code)
			}
			if log := s.logText(id); !strings.Contains(log, tt.log) || !strings.Contains(log, r.Error) {
				t.Errorf("the log lacks %q or the error:\n%s", tt.log, log)
			}
		})
	}
}

func TestT56EarlyFailures(t *testing.T) {
	c := runnertest.Study(t, "")
	c.ModelTraining.Python = "/opt/nowhere/python3"
	s := start(t, c, nil)
	r := s.await(s.create(nil), api.RunError)
	if r.ErrorCode != "python_missing" || !strings.Contains(r.Error, "/opt/nowhere/python3 was not found") || !strings.Contains(r.Hint, "python") {
		t.Errorf("got %s: %s (%s)", r.ErrorCode, r.Error, r.Hint)
	}
	if log := s.logText(r.RunID); !strings.Contains(log, "was not found") {
		t.Errorf("the log does not say why:\n%s", log)
	}
	s.stop()
	c = runnertest.Study(t, "")
	s = start(t, c, func(o *supervisor.Options) {
		o.Runners = map[api.BackendType]runners.Runner{api.BackendLocal: &runnertest.Fake{
			Machine: &runnertest.Machine{}, StartError: os.ErrPermission,
		}}
	})
	r = s.await(s.create(nil), api.RunError)
	if r.ErrorCode != "start_failed" || r.Error == "" || r.Hint == "" || strings.Contains(r.Error, "permission") {
		t.Errorf("got %s: %s (%s), want a sentence of ours", r.ErrorCode, r.Error, r.Hint)
	}
}

// A run waits in the queue while the study is damaged: what only the bundle shows ends it with a code that tools know (N7).
func TestStudyDamagedInTheQueue(t *testing.T) {
	for code, damage := range map[string]func(dir string) error{
		"bad_bundle": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "items.jsonl"), []byte(`{"id": "r1", "te`), 0o600)
		},
		"validation_failed": func(dir string) error {
			return errors.Join(os.RemoveAll(filepath.Join(dir, "annotation_output/ana")), os.RemoveAll(filepath.Join(dir, "annotation_output/ben")))
		},
	} {
		t.Run(code, func(t *testing.T) {
			s := start(t, runnertest.Study(t, ""), nil)
			g := gate(t)
			first := s.create(map[string]any{"gate": g})
			s.awaitStep(first, "fitting")
			second := s.create(nil)
			must(t, damage(s.config.Dir))
			open(t, g)
			r := s.await(second, api.RunError)
			if r.ErrorCode != code || r.Error == "" || r.Hint == "" || strings.Contains(r.Error, "fault of this server") {
				t.Errorf("got %s: %s (%s), want %s", r.ErrorCode, r.Error, r.Hint, code)
			}
			s.await(first, api.RunSuccess)
		})
	}
}

func TestRestartWhileItTrains(t *testing.T) {
	s := start(t, runnertest.Study(t, ""), nil)
	g := gate(t)
	id := s.create(map[string]any{"gate": g})
	s.awaitStep(id, "fitting")
	marker := s.marker(id)
	s.restart()
	s.await(id, api.RunRunning)
	open(t, g)
	r := s.await(id, api.RunSuccess)
	if again := s.marker(id); again != marker {
		t.Errorf("the work has marker %s, and had %s before: it was started twice", again, marker)
	}
	if n := strings.Count(s.logText(id), "read 31 rows"); n != 1 || r.Attempt != 1 {
		t.Errorf("the trainer began %d times, attempt %d; want once:\n%s", n, r.Attempt, s.logText(id))
	}
	s.gone(marker)
}

func TestRestartTooLate(t *testing.T) {
	s := start(t, runnertest.Study(t, "  heartbeat_timeout_s: 1\n"), nil)
	id := s.create(map[string]any{"gate": gate(t)})
	s.awaitStep(id, "fitting")
	marker := s.marker(id)
	s.stop()
	nothingLeft(t, marker)
	s.start()
	r := s.await(id, api.RunError)
	if r.ErrorCode != "server_restarted" || r.Error == "" || r.Hint == "" {
		t.Errorf("got %s: %s (%s)", r.ErrorCode, r.Error, r.Hint)
	}
}

func TestCancelSurvivesARestart(t *testing.T) {
	s := start(t, runnertest.Study(t, ""), nil)
	id := s.create(map[string]any{"gate": gate(t), "stubborn": true})
	s.awaitStep(id, "fitting")
	marker := s.marker(id)
	_, err := s.Cancel(t.Context(), id)
	must(t, err)
	s.restart()
	s.await(id, api.RunCancelled)
	s.gone(marker)
}

// TestTailIsRepeated puts a run back to where a server may have died: predictions stored, nothing more.
func TestTailIsRepeated(t *testing.T) {
	s := start(t, runnertest.Study(t, "  writeback: {schemas: [sentiment]}\n"), nil)
	id := s.create(nil)
	first := s.await(id, api.RunSuccess)
	must(t, s.db.MoveRun(t.Context(), id, api.RunSuccess, api.RunEvaluating, store.RunUpdate{}))
	s.restart()
	second := s.await(id, api.RunSuccess)
	a, _ := json.Marshal([]any{first.Metrics, first.Writeback})
	b, _ := json.Marshal([]any{second.Metrics, second.Writeback})
	if string(a) != string(b) {
		t.Errorf("got %s the second time, %s the first", b, a)
	}
	must(t, s.db.MoveRun(t.Context(), id, api.RunSuccess, api.RunRunning, store.RunUpdate{}))
	s.restart()
	s.await(id, api.RunSuccess)
}

// TestTailWaitsForTheDatabase is a backup that holds the database while a run is in its tail: nothing of it is left out.
func TestTailWaitsForTheDatabase(t *testing.T) {
	t.Parallel()
	s := start(t, runnertest.Study(t, "  writeback: {schemas: [sentiment]}\n"), nil)
	id := s.create(nil)
	first := s.await(id, api.RunSuccess)
	must(t, s.db.MoveRun(t.Context(), id, api.RunSuccess, api.RunEvaluating, store.RunUpdate{Scores: []api.SchemaScores{}, Metrics: api.Metrics{}}))
	s.stop()
	var release func() error
	log := &loggedText{}
	s.adapt = func(o *supervisor.Options) {
		o.Log = slog.New(slog.NewTextHandler(log, nil))
		other, err := sql.Open("sqlite", "file:"+filepath.Join(s.config.TrainingPath(), store.FileName)+"?_txlock=exclusive")
		must(t, err)
		tx, err := other.BeginTx(context.Background(), nil)
		must(t, err)
		release = func() error { return errors.Join(tx.Rollback(), other.Close()) }
	}
	s.start()
	s.adapt = nil
	agenttest.Wait(t, "the run to have found the database held", func() (bool, string) {
		return strings.Contains(log.text(), "has to wait"), log.text()
	})
	must(t, release())
	second := s.await(id, api.RunSuccess)
	if len(second.Warnings) != len(first.Warnings) || second.Message != first.Message || second.Metrics["test_accuracy"] == nil {
		t.Errorf("got %q, %v, %v; want the scores as they were", second.Message, second.Metrics, second.Warnings)
	}
}

// loggedText keeps what a server logs.
type loggedText struct {
	mu  sync.Mutex
	all strings.Builder
}

func (l *loggedText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(b)
}

func (l *loggedText) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

func TestP6SuccessComesWithItsWriteback(t *testing.T) {
	s := start(t, runnertest.Study(t, "  writeback: {schemas: [sentiment]}\n"), nil)
	seen := make(chan api.Run, 1000)
	stopped := make(chan error, 1)
	var id api.RunID
	watching := make(chan struct{})
	go func() {
		once := false
		stopped <- s.WatchRuns(t.Context(), func(runs []api.Run) error {
			if !once {
				close(watching)
				once = true
			}
			for _, r := range runs {
				seen <- r
				if r.Status.Final() {
					return os.ErrClosed
				}
			}
			return nil
		})
	}()
	<-watching
	id = s.create(nil)
	<-stopped
	close(seen)
	var states []api.RunStatus
	for r := range seen {
		if r.RunID == id && (len(states) == 0 || states[len(states)-1] != r.Status) {
			states = append(states, r.Status)
		}
		if r.Status == api.RunSuccess && (r.Writeback == nil || r.Metrics == nil) {
			t.Error("a success without the counts of its write-back")
		}
	}
	order := []api.RunStatus{api.RunQueued, api.RunBuilding, api.RunRunning, api.RunEvaluating, api.RunSuccess}
	if !slices.IsSortedFunc(states, func(a, b api.RunStatus) int { return slices.Index(order, a) - slices.Index(order, b) }) ||
		states[len(states)-1] != api.RunSuccess {
		t.Errorf("got states %v, want them in order and success last", states)
	}
}

func TestFullDisk(t *testing.T) {
	s := start(t, runnertest.Study(t, ""), nil)
	g := gate(t)
	first, second := s.create(map[string]any{"gate": g}), s.create(map[string]any{"junk": 5, "gate": filepath.Join(t.TempDir(), "never")})
	// The second run still waits: whatever it will print goes to a device without room.
	dir := filepath.Join(s.config.TrainingPath(), "runs", string(second))
	must(t, os.MkdirAll(dir, 0o700))
	must(t, os.Symlink("/dev/full", filepath.Join(dir, "stdout.log")))
	open(t, g)
	s.await(first, api.RunSuccess)
	r := s.await(second, api.RunError)
	if r.ErrorCode != "disk_full" || !strings.Contains(r.Error, "nothing that was saved is lost") || r.Hint == "" {
		t.Errorf("got %s: %s (%s)", r.ErrorCode, r.Error, r.Hint)
	}
	nothingLeft(t, s.marker(second))
	if list, err := s.Predictions(t.Context(), first, store.PredictionFilter{}); err != nil || list.Total == 0 {
		t.Errorf("the first run has %d predictions, %v; want them as they were", list.Total, err)
	}
}

func TestPythonIsRelativeToTheConfig(t *testing.T) {
	c := runnertest.Study(t, "")
	must(t, os.Mkdir(filepath.Join(c.Dir, "bin"), 0o700))
	script := "#!/bin/sh\nexec " + runnertest.Python(t) + ` "$@"` + "\n"
	must(t, os.WriteFile(filepath.Join(c.Dir, "bin", "mine"), []byte(script), 0o700))
	c.ModelTraining.Python = "bin/mine"
	s := start(t, c, nil)
	s.await(s.create(nil), api.RunSuccess)
}

func TestFolderThatWentAway(t *testing.T) {
	s := start(t, runnertest.Study(t, ""), nil)
	id := s.create(map[string]any{"gate": gate(t)})
	s.awaitStep(id, "fitting")
	marker := s.marker(id)
	s.stop()
	must(t, os.RemoveAll(filepath.Join(s.config.TrainingPath(), "runs", string(id))))
	s.start()
	r := s.await(id, api.RunError)
	if r.ErrorCode != "bad_bundle" || r.Error == "" || r.Hint == "" {
		t.Errorf("got %s: %s (%s)", r.ErrorCode, r.Error, r.Hint)
	}
	nothingLeft(t, marker)
}
