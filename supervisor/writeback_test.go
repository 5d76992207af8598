package supervisor_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"potato/api"
	"potato/runners/runnertest"
	"potato/store"
)

func TestWritebackGates(t *testing.T) {
	c := runnertest.Study(t, "  writeback: {schemas: [sentiment], include_unlabeled: true}\n")
	s := start(t, c, nil)
	first := s.await(s.create(nil), api.RunSuccess)
	n := first.NVal + first.NTest + first.NUnlabeled
	if w := first.Writeback; w.NRead != n || w.NWritten != n || n <= 20 || len(w.SchemasEnabled) != 1 {
		t.Errorf("got %+v, want all %d predictions written", w, n)
	}
	// An item becomes labelled and falls into training: the prediction of the first run goes down with the second's set.
	runnertest.Label(t, c.Dir, "cem", 40, 60)
	second := s.await(s.create(nil), api.RunSuccess)
	if w := second.Writeback; w.NWritten != second.NVal+second.NTest || second.NUnlabeled != 0 {
		t.Errorf("got %+v of %d held-out items", w, second.NVal+second.NTest)
	}
	counts, err := s.db.CountPublished(t.Context())
	must(t, err)
	if counts[first.RunID] != 0 || counts[second.RunID] != second.Writeback.NWritten {
		t.Errorf("got %v published, want the second run's alone", counts)
	}
	// The first run's items now were trained on by the second: the leak guard knows of every run.
	w, err := s.Writeback(t.Context(), first.RunID, true)
	must(t, err)
	if w.NSkippedTrainSplit == 0 || w.NWritten+w.NSkippedTrainSplit != n {
		t.Errorf("got %+v, want what the second run trained on skipped", w)
	}
	if again, _ := s.db.CountPublished(t.Context()); again[second.RunID] != counts[second.RunID] {
		t.Error("a dry run changed what items show")
	}
	retracted, err := s.Retract(t.Context(), second.RunID)
	must(t, err)
	if retracted != second.Writeback.NWritten {
		t.Errorf("retracted %d, want %d", retracted, second.Writeback.NWritten)
	}
	w, err = s.Writeback(t.Context(), second.RunID, false)
	must(t, err)
	if again, _ := s.db.CountPublished(t.Context()); again[second.RunID] != w.NWritten {
		t.Errorf("got %v published after publishing again, want %d", again, w.NWritten)
	}
}

func TestWritebackSkipsByReason(t *testing.T) {
	c := runnertest.Study(t, "  writeback: {schemas: [sentiment]}\n")
	s := start(t, c, nil)
	r := s.await(s.create(nil), api.RunSuccess)
	rewrite := func(from, to string) {
		t.Helper()
		s.stop()
		path := filepath.Join(c.Dir, "config.yaml")
		text, err := os.ReadFile(path)
		must(t, err)
		if !strings.Contains(string(text), from) {
			t.Fatalf("the config has no %q", from)
		}
		must(t, os.WriteFile(path, []byte(strings.Replace(string(text), from, to, 1)), 0o600))
		s.config = runnertest.Load(t, path)
		s.start()
	}
	want := func(what string, count func(api.Writeback) int) {
		t.Helper()
		w, err := s.Writeback(t.Context(), r.RunID, true)
		must(t, err)
		if count(w) != w.NRead || w.NRead == 0 {
			t.Errorf("%s: got %+v, want all of them", what, w)
		}
	}
	rewrite("schemas: [sentiment]}", "schemas: [sentiment], min_confidence: 0.9}")
	want("low confidence", func(w api.Writeback) int { return w.NSkippedLowConfidence })
	rewrite(", min_confidence: 0.9", "")
	rewrite("labels: [positive, negative]", "labels: [good, bad]")
	want("T52: unknown label", func(w api.Writeback) int { return w.NSkippedUnknownLabel })
	rewrite("labels: [good, bad]", "labels: [positive, negative]")
	must(t, os.WriteFile(filepath.Join(c.Dir, "items.jsonl"), []byte(`{"id":"other","text":"x"}`+"\n"), 0o600))
	want("missing item", func(w api.Writeback) int { return w.NSkippedMissingItem })
	rewrite("schemas: [sentiment]}", "schemas: []}")
	want("not enabled", func(w api.Writeback) int { return w.NSkippedSchemaNotEnabled })
}

func TestRetentionKeepsTheNewestAndTheLive(t *testing.T) {
	s := start(t, runnertest.Study(t, "  retain_runs: 2\n  writeback: {schemas: [sentiment]}\n"), fake(&runnertest.Machine{}))
	live := s.await(s.create(nil), api.RunSuccess).RunID
	var failed []api.RunID
	for range 3 {
		failed = append(failed, s.await(s.create(map[string]any{"fail": "no"}), api.RunError).RunID)
	}
	// Only a success prunes, and its own write-back takes the place of the live run's.
	last := s.await(s.create(nil), api.RunSuccess).RunID
	kept := map[api.RunID]bool{live: false, failed[0]: false, failed[1]: false, failed[2]: true, last: true}
	for id, want := range kept {
		_, err := os.Stat(filepath.Join(s.config.TrainingPath(), "runs", string(id)))
		if got := err == nil; got != want {
			t.Errorf("folder of %s: there %v, want %v", id, got, want)
		}
		r, err := s.RunByID(t.Context(), id)
		must(t, err)
		if pruned := strings.Contains(strings.Join(r.Warnings, " "), "retain_runs"); pruned == want {
			t.Errorf("run %s: warnings %q, kept %v", id, r.Warnings, want)
		}
	}
	_, err := s.Writeback(t.Context(), live, true)
	wantCode(t, err, "no_predictions")
	artifacts, err := s.Artifacts(t.Context(), live)
	must(t, err)
	log, err := s.Log(t.Context(), live, testLog)
	must(t, err)
	report, err := s.Metrics(t.Context(), live)
	must(t, err)
	if len(artifacts.Artifacts) != 0 || log.Total != 0 || report.Curves == nil {
		t.Errorf("of a pruned run: %v, %v, %v", artifacts, log, report)
	}
}

func TestDeleteRun(t *testing.T) {
	s := start(t, runnertest.Study(t, "  writeback: {schemas: [sentiment]}\n"), fake(&runnertest.Machine{}))
	g := gate(t)
	id := s.create(map[string]any{"gate": g})
	wantCode(t, s.DeleteRun(t.Context(), id), "run_not_over")
	open(t, g)
	s.await(id, api.RunSuccess)
	deleteSoon(t, s, id)
	_, err := s.RunByID(t.Context(), id)
	wantCode(t, err, "run_not_found")
	if _, err := os.Stat(filepath.Join(s.config.TrainingPath(), "runs", string(id))); err == nil {
		t.Error("the folder is still there")
	}
	if counts, _ := s.db.CountPublished(t.Context()); len(counts) != 0 {
		t.Errorf("items still show %v", counts)
	}
	list, err := s.Runs(t.Context(), store.RunFilter{})
	must(t, err)
	if len(list.Runs) != 0 {
		t.Errorf("got %d runs, want none", len(list.Runs))
	}
}

func TestOnlyIfBetter(t *testing.T) {
	s := start(t, runnertest.Study(t, "  writeback: {schemas: [sentiment], only_if_better: true}\n"), nil)
	publish := func(predict string) api.Run {
		t.Helper()
		return s.await(s.create(map[string]any{"predict": predict}), api.RunSuccess)
	}
	first := publish("majority")
	same := publish("majority")
	better := publish("truth")
	worse := publish("majority")
	if first.Writeback.NWritten == 0 || same.Writeback.NWritten != 0 || better.Writeback.NWritten == 0 || worse.Writeback.NWritten != 0 {
		t.Errorf("written: %d, %d, %d, %d; want the first and the better one", first.Writeback.NWritten, same.Writeback.NWritten,
			better.Writeback.NWritten, worse.Writeback.NWritten)
	}
	if len(worse.Writeback.Warnings) != 1 || !strings.Contains(worse.Writeback.Warnings[0], string(better.RunID)) {
		t.Errorf("got %q, want why it was not published", worse.Writeback.Warnings)
	}
	counts, err := s.db.CountPublished(t.Context())
	must(t, err)
	if len(counts) != 1 || counts[better.RunID] == 0 {
		t.Errorf("got %v published, want the better run alone", counts)
	}
}
