package project_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"potato/project"
)

// fiveItems is a study of items a to e.
func fiveItems(tb testing.TB, schemes string) *folder {
	f := newFolder(tb, schemes)
	f.train = "splits: {train: 1}"
	f.write("items.json", `[{"id":"a","text":"A"},{"id":"b","text":"B"},{"id":"c","text":"C"},{"id":"d","text":"D"},{"id":"e","text":"E"}]`)
	return f
}

// wants builds a bundle of the schemes and compares all its targets.
func (f *folder) wants(s *project.Study, want map[string]string, schemes ...string) *project.Bundle {
	f.tb.Helper()
	b := f.bundle(s, project.BundleOptions{Schemas: schemes})
	if got := targets(f.tb, b); !maps.Equal(got, want) {
		f.tb.Errorf("targets %v, want %v", got, want)
	}
	return b
}

func TestStateFiles(t *testing.T) {
	f := fiveItems(t, moodScheme)
	f.label("ann", map[string]string{"a": radio("mood", "good"), "gone": radio("mood", "bad"), "b": radio("other", "x")})
	// The older form; keys that newer files have are missing, unknown ones are there.
	f.write("out/bob/user_state.json", `{"instance_id_to_label_to_value": {"b": {"mood": {"bad": "bad"}, "note": {"text_box": "x"}}, "c": {"mood": "mixed"}}, "new_key": [[{}]]}`)
	f.write("out/adjudication/notes.json", "{}")
	f.write("out/empty/user_state.json", "{}")
	f.write("out/odd/user_state.json", `{"user_id": 7, "origin": null, "instance_id_to_label_to_value": {"d": null, "e": [5, [], [{"schema": "mood"}], ["mood", "good"], [{"schema": "mood", "name": "good"}]]}, "instance_id_to_behavioral_data": []}`)
	b := f.wants(f.open(), map[string]string{"a": `{"mood": "good"}`, "b": `{"mood": "bad"}`, "c": `{"mood": "mixed"}`}, "mood")
	if w := b.Manifest.Stats.Warnings; len(w) != 0 {
		t.Errorf("warnings %q, want none", w)
	}
}

// A file that is being written when we look: the labels of everybody else are there, and the warning says whose are not.
func TestHalfWrittenState(t *testing.T) {
	f := fiveItems(t, moodScheme)
	f.label("ann", map[string]string{"a": radio("mood", "good"), "b": radio("mood", "bad")})
	whole := state("bob", map[string]string{"c": radio("mood", "bad")})
	f.write("out/bob/user_state.json", whole[:len(whole)/2])
	s := f.open()
	b := f.wants(s, map[string]string{"a": `{"mood": "good"}`, "b": `{"mood": "bad"}`}, "mood")
	warned(t, b, "bob", "missing")

	f.write("out/bob/user_state.json", whole)
	b = f.wants(s, map[string]string{"a": `{"mood": "good"}`, "b": `{"mood": "bad"}`, "c": `{"mood": "bad"}`}, "mood")
	if w := b.Manifest.Stats.Warnings; len(w) != 0 {
		t.Errorf("warnings %q, want none", w)
	}

	// Once read, a broken save does not lose what was there; nor does a change of the data files meanwhile.
	f.write("out/bob/user_state.json", whole[:len(whole)-3])
	b = f.wants(s, map[string]string{"a": `{"mood": "good"}`, "b": `{"mood": "bad"}`, "c": `{"mood": "bad"}`}, "mood")
	warned(t, b, "bob", "last good reading")
	f.write("items.json", `[{"id":"0","text":"new"},{"id":"c","text":"C"},{"id":"a","text":"A"}]`)
	b = f.wants(s, map[string]string{"a": `{"mood": "good"}`, "c": `{"mood": "bad"}`}, "mood")
	warned(t, b, "bob", "last good reading")
}

// What stands where a state file should be and is none is said, once it has been read its labels stay, and nothing waits.
func TestNoStateFile(t *testing.T) {
	f := fiveItems(t, moodScheme)
	f.label("ann", map[string]string{"a": radio("mood", "good"), "b": radio("mood", "bad")})
	path := filepath.Join(f.dir, "out/bob/user_state.json")
	for what, c := range map[string]struct {
		put  func() error
		says string
	}{
		"a list":                  {func() error { return os.WriteFile(path, []byte("[]"), 0o600) }, "holds no JSON object"},
		"null":                    {func() error { return os.WriteFile(path, []byte("null\n"), 0o600) }, "holds no JSON object"},
		"a pipe":                  {func() error { return syscall.Mkfifo(path, 0o600) }, "not a file"},
		"a folder":                {func() error { return os.Mkdir(path, 0o700) }, "not a file"},
		"a link that leads round": {func() error { return os.Symlink("user_state.json", path) }, "cannot be opened"},
	} {
		t.Run(what, func(t *testing.T) {
			_ = os.RemoveAll(path)
			f.label("bob", map[string]string{"c": radio("mood", "bad")})
			s := f.open()
			whole := map[string]string{"a": `{"mood": "good"}`, "b": `{"mood": "bad"}`, "c": `{"mood": "bad"}`}
			f.wants(s, whole, "mood")
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := c.put(); err != nil {
				t.Fatal(err)
			}
			warned(t, f.wants(s, whole, "mood"), "bob/user_state.json", c.says, "last good reading")
			warned(t, f.wants(f.open(), map[string]string{"a": `{"mood": "good"}`, "b": `{"mood": "bad"}`}, "mood"), "bob/user_state.json", c.says, "missing")
		})
	}
}

// The same of the adjudicators' decisions.
func TestNoDecisionsFile(t *testing.T) {
	f := fiveItems(t, moodScheme)
	f.label("ann", map[string]string{"a": radio("mood", "good"), "b": radio("mood", "bad")})
	labels := map[string]string{"a": `{"mood": "good"}`, "b": `{"mood": "bad"}`}
	f.write("out/adjudication", "a file of this name is none of ours")
	f.wants(f.open(), labels, "mood")
	dir := filepath.Join(f.dir, "out/adjudication")
	for _, put := range []func() error{
		func() error { return os.Symlink("adjudication", dir) },
		func() error { return errors.Join(os.Mkdir(dir, 0o700), syscall.Mkfifo(dir+"/decisions.json", 0o600)) },
	} {
		if err := errors.Join(os.Remove(dir), put()); err != nil {
			t.Fatal(err)
		}
		warned(t, f.wants(f.open(), labels, "mood"), "decisions.json cannot be read", "missing")
	}
}

// A save that ends while we wait is read without a warning.
func TestStateIsReadAgain(t *testing.T) {
	f := fiveItems(t, moodScheme)
	f.label("ann", map[string]string{"a": radio("mood", "good")})
	whole := state("bob", map[string]string{"c": radio("mood", "bad")})
	path := filepath.Join(f.dir, "out/bob/user_state.json")
	f.write("out/bob/user_state.json", whole[:40])
	s := f.open()
	type answer struct {
		ready []project.Readiness
		err   error
	}
	done := make(chan answer)
	go func() {
		r, err := s.Readiness(context.Background(), "mood")
		done <- answer{r, err}
	}()
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(whole[40:]); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	got := <-done
	if got.err != nil || got.ready[0].NLabeled != 2 || len(got.ready[0].Warnings) != 0 {
		t.Errorf("got %+v, %v, want two labelled items and no warning", got.ready, got.err)
	}
}

func warned(tb testing.TB, b *project.Bundle, says ...string) {
	tb.Helper()
	for _, w := range b.Manifest.Stats.Warnings {
		if !slices.ContainsFunc(says, func(s string) bool { return !strings.Contains(w, s) }) {
			return
		}
	}
	tb.Errorf("no warning says %q: %q", says, b.Manifest.Stats.Warnings)
}

// A damaged file is read once for every change of it, like a good one: it may take long, and is looked for at every order.
func TestDamagedStateIsReadOnce(t *testing.T) {
	f := fiveItems(t, moodScheme)
	f.label("ann", map[string]string{"a": radio("mood", "good"), "b": radio("mood", "bad")})
	path := filepath.Join(f.dir, "out/bob/user_state.json")
	whole := state("bob", map[string]string{"c": radio("mood", "bad")})
	damaged := strings.Repeat("{", len(whole))
	f.write("out/bob/user_state.json", damaged)
	changed := time.Now().Add(-time.Hour)
	s := f.open()
	inPlace := func(text string, at time.Time) {
		t.Helper()
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	inPlace(damaged, changed)
	without := map[string]string{"a": `{"mood": "good"}`, "b": `{"mood": "bad"}`}
	warned(t, f.wants(s, without, "mood"), "bob", "missing")
	inPlace(whole, changed) // of the same size and time: if it were read, its label would be there
	warned(t, f.wants(s, without, "mood"), "bob", "missing")
	inPlace(whole, changed.Add(time.Second))
	f.wants(s, map[string]string{"a": `{"mood": "good"}`, "b": `{"mood": "bad"}`, "c": `{"mood": "bad"}`}, "mood")
}

func TestLabelsThatChange(t *testing.T) {
	f := fiveItems(t, moodScheme)
	f.label("ann", map[string]string{"a": radio("mood", "good")})
	s := f.open()
	f.wants(s, map[string]string{"a": `{"mood": "good"}`}, "mood")
	f.label("ann", map[string]string{"a": radio("mood", "bad"), "b": radio("mood", "good")})
	f.wants(s, map[string]string{"a": `{"mood": "bad"}`, "b": `{"mood": "good"}`}, "mood")
	if err := os.RemoveAll(filepath.Join(f.dir, "out", "ann")); err != nil {
		t.Fatal(err)
	}
	f.label("bob", map[string]string{"c": radio("mood", "good")})
	f.wants(s, map[string]string{"c": `{"mood": "good"}`}, "mood")
	n, err := s.Annotations(context.Background(), []string{"mood"})
	if err != nil || n != 1 {
		t.Errorf("got %d annotations, %v, want 1", n, err)
	}
}

// A pre-label that was taken over by pressing Next is not a label (PEER.md §12, 3); one that was looked at and changed is.
func TestAcceptedPrelabels(t *testing.T) {
	const shown = `"pre_annotation_seeds": {"mood": {"label": "good", "confidence": 0.6}, "topics": {"label": "food|travel", "confidence": 0.4}}`
	schemes := moodScheme + "- {annotation_type: multiselect, name: topics, description: d, labels: [travel, food]}\n"
	stateOf := func(origin string) string {
		return fmt.Sprintf(`{"user_id": "ann", "origin": %s, "instance_id_to_behavioral_data": {
		 "a": {%s, "annotation_changes": []},
		 "b": {%s, "annotation_changes": []},
		 "c": {%s, "annotation_changes": [{"schema_name": "mood", "old_value": "bad", "new_value": "good", "source": "user"}]},
		 "d": {%s, "annotation_changes": [{"old_value": "bad", "new_value": "good"}]},
		 "e": {%s, "annotation_changes": [{"schema": "topics"}]}},
		"instance_id_to_label_to_value": {"a": [%s, %s, %s], "b": [%s, %s], "c": [%s], "d": [%s], "e": [%s]}}`,
			origin, shown, shown, shown, shown, shown,
			radio("mood", "good"), radio("topics", "travel"), radio("topics", "food"), radio("mood", "bad"), radio("topics", "food"),
			radio("mood", "good"), radio("mood", "good"), radio("mood", "good"))
	}
	f := fiveItems(t, schemes)
	f.write("out/ann/user_state.json", stateOf("{}"))
	b := f.wants(f.open(), map[string]string{"b": `{"mood": "bad"}`, "c": `{"mood": "good"}`, "d": `{"mood": "good"}`}, "mood")
	warned(t, b, "2 pre-labels", `"mood"`)
	f.wants(f.open(), map[string]string{"b": `{"topics": ["food"]}`}, "topics")
	f.train = "splits: {train: 1}, train_on_accepted_prelabels: true"
	f.wants(f.open(), map[string]string{"a": `{"mood": "good"}`, "b": `{"mood": "bad"}`, "c": `{"mood": "good"}`, "d": `{"mood": "good"}`, "e": `{"mood": "good"}`}, "mood")

	// They are not predicted as unlabelled either: somebody has answered.
	f.train = "splits: {train: 1}"
	b = f.bundle(f.open(), project.BundleOptions{Schemas: []string{"mood"}, IncludeUnlabeled: true})
	if n := b.Manifest.Splits["unlabeled"].N; n != 0 || b.Manifest.Stats.NSkippedNoLabel != 2 {
		t.Errorf("%d unlabelled rows and %d skipped, want 0 and 2", n, b.Manifest.Stats.NSkippedNoLabel)
	}
}

func TestMachineAnnotators(t *testing.T) {
	f := fiveItems(t, moodScheme)
	f.label("ann", map[string]string{"a": radio("mood", "good")})
	f.write("out/gpt/user_state.json", `{"user_id": "gpt", "origin": {"kind": "llm"}, "instance_id_to_label_to_value": {"a": [`+radio("mood", "bad")+`], "b": [`+radio("mood", "bad")+`]}}`)
	f.write("out/bob/user_state.json", `{"user_id": "bob", "origin": {"kind": "human"}, "instance_id_to_label_to_value": {"c": [`+radio("mood", "bad")+`]}}`)
	b := f.wants(f.open(), map[string]string{"a": `{"mood": "good"}`, "c": `{"mood": "bad"}`}, "mood")
	warned(t, b, "gpt", "machine")
}

// Adjudicators' decisions win over votes; the newest of several counts.
func TestDecisions(t *testing.T) {
	f := fiveItems(t, moodScheme+`- {annotation_type: multiselect, name: topics, description: d, labels: [travel, food]}
- {annotation_type: select, name: lang, description: d, labels: [en, fr]}
- {annotation_type: likert, name: quality, description: d, size: 5, min_label: a, max_label: b}
`)
	f.train = "aggregation: majority, splits: {train: 1}"
	f.label("ann", map[string]string{"a": radio("mood", "good"), "b": radio("mood", "good"), "c": radio("mood", "good")})
	f.label("bob", map[string]string{"a": radio("mood", "bad"), "b": radio("mood", "good"), "c": radio("mood", "bad")})
	f.write("out/adjudication/decisions.json", `{"decisions": [
	 {"instance_id": "a", "timestamp": "2026-11-02T10:00:00", "label_decisions": {"mood": "bad", "topics": ["food", "travel"], "lang": {"select-one": "fr"}, "quality": 4}},
	 {"instance_id": "a", "timestamp": "2026-11-01T10:00:00", "label_decisions": {"mood": "mixed"}},
	 {"instance_id": "b", "label_decisions": {"mood": {"mixed": true}}},
	 {"instance_id": "d", "label_decisions": {"mood": {"bad": "bad"}, "quality": "5"}},
	 {"instance_id": "gone", "label_decisions": {"mood": "bad"}}, {"instance_id": "e"}], "last_updated": "x"}`)
	s := f.open()
	f.wants(s, map[string]string{"a": `{"mood": "bad"}`, "b": `{"mood": "mixed"}`, "c": `{"mood": "good"}`, "d": `{"mood": "bad"}`}, "mood")
	f.wants(s, map[string]string{"a": `{"topics": ["travel", "food"], "lang": "fr", "quality": 4}`, "d": `{"quality": 5}`}, "topics", "lang", "quality")
	f.write("out/adjudication/decisions.json", `{"decisions": [`)
	b := f.wants(s, map[string]string{"a": `{"mood": "bad"}`, "b": `{"mood": "mixed"}`, "c": `{"mood": "good"}`, "d": `{"mood": "bad"}`}, "mood")
	warned(t, b, "decisions.json", "last good reading")
	f.more = "adjudication: {enabled: true, output_subdir: judges}\n"
	f.write("out/judges/decisions.json", `{"decisions": [{"instance_id": "c", "label_decisions": {"mood": "mixed"}}]}`)
	f.wants(f.open(), map[string]string{"a": `{"mood": "good"}`, "b": `{"mood": "good"}`, "c": `{"mood": "mixed"}`}, "mood")
}

func FuzzState(f *testing.F) {
	f.Add([]byte(state("ann", map[string]string{"a": radio("mood", "good")})))
	f.Add([]byte(`{"user_id":"x","origin":{"kind":"llm"},"instance_id_to_label_to_value":{"a":{"mood":{"good":true}},"b":[[{"schema":"topics","name":"free_response"},"x"]]}}`))
	f.Add([]byte(`{"instance_id_to_behavioral_data":{"a":{"pre_annotation_seeds":{"mood":{"label":"good"}},"annotation_changes":[{"schema":"mood"}]}}}`))
	dir := f.TempDir()
	for name, text := range map[string]string{"items.json": `[{"id":"a","text":"x"},{"id":"b","text":"y"}]`, "config.yaml": `annotation_task_name: t
output_annotation_dir: out
item_properties: {id_key: id, text_key: text}
data_files: [items.json]
annotation_schemes:
  - {annotation_type: radio, name: mood, description: d, labels: [good, bad]}
  - {annotation_type: multiselect, name: topics, description: d, labels: [x, y]}
  - {annotation_type: likert, name: quality, description: d, size: 5, min_label: a, max_label: b}
  - {annotation_type: hierarchical_multiselect, name: tree, description: d, taxonomy: {a: [b]}}
model_training: {enabled: true, train_on_accepted_prelabels: true}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			f.Fatal(err)
		}
	}
	cfg, report := project.Load(filepath.Join(dir, "config.yaml"))
	if cfg == nil {
		f.Fatalf("the config is refused: %q", found(report.Errors))
	}
	if err := os.MkdirAll(filepath.Join(dir, "out", "ann"), 0o700); err != nil {
		f.Fatal(err)
	}
	// The decisions' file is read by the same parser.
	if err := os.MkdirAll(filepath.Join(dir, "out", "adjudication"), 0o700); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, path := range []string{"out/ann/user_state.json", "out/adjudication/decisions.json"} {
			if err := os.WriteFile(filepath.Join(dir, path), text, 0o600); err != nil {
				t.Fatal(err)
			}
			// Nobody is writing this one any more: it is read once.
			if err := os.Chtimes(filepath.Join(dir, path), time.Time{}, time.Now().Add(-time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
		s := project.OpenStudy(cfg)
		defer s.Close()
		ready, err := s.Readiness(context.Background())
		if err != nil {
			t.Fatalf("a state file must not stop everything: %v", err)
		}
		for _, r := range ready {
			if r.NLabeled > 2 || r.NLabeled+r.NUnlabeled > 2 || r.Trainable != (r.Reason == "") {
				t.Errorf("%+v", r)
			}
		}
	})
}
