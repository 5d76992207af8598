package e2e_test

import (
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// S1, R4, P5: what the server says of a run is what anyone computes from its exported predictions and the labels.
func TestHeldOutScoresAreThoseOfTheExport(t *testing.T) {
	t.Parallel()
	s := start(t, study(t))
	r := s.finished(s.post(map[string]any{"trainer": "sklearn-text", "schemas": []string{"sentiment"}}), "success")
	if r.NVal == 0 || r.NTest == 0 || r.NUnlabeled == 0 {
		t.Fatalf("val %d, test %d, unlabeled %d: all three were to be predicted", r.NVal, r.NTest, r.NUnlabeled)
	}
	if _, shown := r.Metrics["accuracy"]; shown || r.Metrics["train_accuracy"] == nil {
		t.Errorf("training accuracy is to be called train_accuracy, got %v", r.Metrics)
	}
	dir := t.TempDir()
	_, ndjson := s.raw("GET", "/admin/training/api/runs/"+r.RunID+"/predictions?format=ndjson", nil)
	write(t, dir, "predictions.ndjson", string(ndjson))
	write(t, dir, "scores.py", fixture(t, "scores.py"))
	bundle := filepath.Join(s.dir, "annotation_output", "training", "runs", r.RunID, "bundle")
	for _, line := range strings.Split(command(t, dir, python(t), "scores.py", "predictions.ndjson", bundle), "\n") {
		name, value, _ := strings.Cut(line, " ")
		if got, want := r.Metrics[name], number(t, value); got == nil || math.Abs(*got-want) > 1e-9 {
			t.Errorf("%s: the run says %v, scikit-learn %v", name, deref(got), want)
		}
	}
	if r.Writeback == nil || r.Writeback.NRead != r.NVal+r.NTest+r.NUnlabeled {
		t.Errorf("the write-back counts %+v are to be there when the run is a success (P6)", r.Writeback)
	}
}

// S4, P1: eight requests at once never train two, and all of them train in the end.
func TestEightAtOnceTrainOneAtATime(t *testing.T) {
	t.Parallel()
	s := start(t, study(t))
	ids := make([]string, 8)
	var posts sync.WaitGroup
	for i := range ids {
		posts.Go(func() {
			ids[i] = s.post(map[string]any{"trainer": "sklearn-text", "schemas": []string{"sentiment"}})
		})
	}
	posts.Wait()
	type span struct{ from, to float64 }
	var spans []span
	for _, id := range ids {
		r := s.finished(id, "success")
		spans = append(spans, span{*r.StartedAt, *r.FinishedAt})
	}
	for i, a := range spans {
		for _, b := range spans[i+1:] {
			if a.from < b.to && b.from < a.to {
				t.Errorf("two runs at once: %v to %v and %v to %v", a.from, a.to, b.from, b.to)
			}
		}
	}
}

// A2, N3: the seed's request as written; an unknown backend is a conflict and leaves no run.
func TestRequestsThatCannotBecomeRuns(t *testing.T) {
	t.Parallel()
	s := start(t, study(t))
	for _, c := range []struct {
		name    string
		request map[string]any
		status  int
		code    string
	}{
		{"unknown backend", map[string]any{"trainer": "sklearn-text", "schemas": []string{"sentiment"}, "backend": "moon"}, http.StatusConflict, "unknown_backend"},
		{"unknown trainer", map[string]any{"trainer": "sklern-text", "schemas": []string{"sentiment"}}, http.StatusUnprocessableEntity, ""},
		{"unknown scheme", map[string]any{"trainer": "sklearn-text", "schemas": []string{"sentimnt"}}, http.StatusUnprocessableEntity, ""},
		{"unknown parameter", map[string]any{"trainer": "sklearn-text", "schemas": []string{"sentiment"}, "params": map[string]any{"bogus": 1}}, http.StatusUnprocessableEntity, ""},
		{"no scheme", map[string]any{"trainer": "sklearn-text"}, http.StatusUnprocessableEntity, ""},
	} {
		var problem struct {
			Code, Detail string
			Errors       []struct{ Path, Message string }
		}
		status := s.api("POST", "/runs", c.request, &problem)
		if status != c.status || (c.code != "" && problem.Code != c.code) {
			t.Errorf("%s: %d %q (%s), want %d %q", c.name, status, problem.Code, problem.Detail, c.status, c.code)
		}
		if c.status == http.StatusUnprocessableEntity && len(problem.Errors) == 0 {
			t.Errorf("%s: the problem names no field: %+v", c.name, problem)
		}
	}
	var list struct{ Runs []run }
	if s.api("GET", "/runs", nil, &list); len(list.Runs) != 0 {
		t.Errorf("refused requests left %d runs", len(list.Runs))
	}
}

// A4: debug makes a loopback request admin, and never one that came through a proxy.
func TestDebugIsForLoopbackAlone(t *testing.T) {
	t.Parallel()
	s := start(t, study(t), "--debug")
	for _, c := range []struct {
		header, value string
		status        int
	}{
		{"", "", http.StatusOK},
		{"X-Forwarded-For", "10.0.0.7", http.StatusUnauthorized},
		{"Forwarded", "for=10.0.0.7", http.StatusUnauthorized},
	} {
		req, err := http.NewRequest("GET", s.URL+"/admin/training/api/status", nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.header != "" {
			req.Header.Set(c.header, c.value)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != c.status {
			t.Errorf("with %q: %d, want %d", c.header, res.StatusCode, c.status)
		}
	}
	if !strings.Contains(s.Log(), "DEBUG IS ON") {
		t.Errorf("the start does not warn of debug:\n%s", s.Log())
	}
}

// R10, K2: a Python that is missing is one sentence, at the check and as the run's error.
func TestPythonThatDoesNotExist(t *testing.T) {
	t.Parallel()
	dir := study(t)
	config := filepath.Join(dir, "config.yaml")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "config.yaml", strings.Replace(string(text), "  python: "+python(t), "  python: /nowhere/python3", 1))
	s := start(t, dir)
	var report struct {
		OK    bool `json:"ok"`
		Items []struct{ Level, Text, Hint string }
	}
	s.api("POST", "/backends/local/check", map[string]any{}, &report)
	if said := strings.Join(texts(report.Items), "\n"); report.OK || !strings.Contains(said, "/nowhere/python3 was not found") {
		t.Errorf("the check says ok=%v and:\n%s", report.OK, said)
	}
}

func texts(items []struct{ Level, Text, Hint string }) []string {
	var out []string
	for _, i := range items {
		out = append(out, i.Level+" "+i.Text+" "+i.Hint)
	}
	return out
}
