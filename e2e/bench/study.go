package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

const adminKey = "bench-key-0123456789abcdef"

// shape says what a study is to have. Equal shapes give equal files, byte for byte.
type shape struct {
	items    int
	labelled int // the first so many items have labels of both annotators
	freeText bool
	warm     bool // warm_worker: a key of ours that the published tool ignores
}

// writeStudy makes a study's folder: config, items and the saved labels of two annotators, in the published tool's form.
func (b *bench) writeStudy(name string, s shape) (string, error) {
	dir := b.folder(name)
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o700); err != nil {
		return "", err
	}
	config := configText(b.python(), s)
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(config), 0o600); err != nil {
		return "", err
	}
	if err := writeItems(filepath.Join(dir, "data", "items.jsonl"), s); err != nil {
		return "", err
	}
	for i, annotator := range []string{"ana", "ben"} {
		if err := writeState(filepath.Join(dir, "annotation_output", annotator), annotator, uint64(i), s); err != nil {
			return "", err
		}
	}
	return dir, nil
}

func configText(python string, s shape) string {
	schemes := `
  - annotation_type: "radio"
    name: "sentiment"
    description: "Is this review positive or negative?"
    labels: ["positive", "negative"]`
	if s.freeText {
		schemes += `
  - annotation_type: "text"
    name: "reason"
    description: "Why?"`
	}
	warm := "false"
	if s.warm {
		warm = "auto"
	}
	return fmt.Sprintf(`annotation_task_name: "Bench"
task_dir: "."
data_files: ["data/items.jsonl"]
item_properties: {id_key: "id", text_key: "text"}
output_annotation_dir: "annotation_output"
admin_api_key: %q
annotation_schemes:%s
model_training:
  enabled: true
  python: %q
  warm_worker: %s
  writeback: {schemas: ["sentiment"], include_unlabeled: true}
`, adminKey, schemes, python, warm)
}

var (
	classes = []string{"positive", "negative"}
	opinion = map[string][]string{
		"positive": {"wonderful", "moving", "crisp", "sturdy", "delightful", "generous", "clever", "recommended"},
		"negative": {"dull", "broken", "clumsy", "overpriced", "tedious", "flimsy", "noisy", "disappointing"},
	}
	syllables = []string{"ka", "ro", "mi", "ten", "sol", "vi", "dra", "pel", "on", "ur", "ex", "bi", "lo", "sha", "qui"}
)

// class is the item's true class; the annotators and the words of its text depart from it now and then.
func class(item int) string { return classes[rand.New(rand.NewPCG(1, uint64(item))).IntN(2)] }

// itemText is 8 to 30 words: most of a vocabulary of about 3,000 in which few are frequent, one to three that lean to a class.
func itemText(item int) string {
	r := rand.New(rand.NewPCG(2, uint64(item)))
	words := make([]string, 8+r.IntN(23))
	for i := range words {
		n := int(3000 * r.Float64() * r.Float64() * r.Float64())
		words[i] = syllables[n%15] + syllables[n/15%15] + syllables[n/225%15]
	}
	for range 1 + r.IntN(3) {
		of := class(item)
		if r.IntN(6) == 0 {
			of = classes[r.IntN(2)]
		}
		words[r.IntN(len(words))] = opinion[of][r.IntN(len(opinion[of]))]
	}
	return strings.Join(words, " ")
}

func itemID(item int) string { return fmt.Sprintf("item-%07d", item) }

func writeItems(path string, s shape) error {
	return writeLines(path, func(w *bufio.Writer) error {
		lines := json.NewEncoder(w)
		for i := range s.items {
			if err := lines.Encode(map[string]string{"id": itemID(i), "text": itemText(i)}); err != nil {
				return err
			}
		}
		return nil
	})
}

// writeState writes what the published tool keeps of one annotator. One answer in ten departs from the item's class.
func writeState(dir, annotator string, seed uint64, s shape) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(3, seed))
	ids := make([]string, s.labelled)
	labels := make(map[string][][2]any, s.labelled)
	for i := range ids {
		ids[i] = itemID(i)
		label := class(i)
		if r.IntN(10) == 0 {
			label = classes[r.IntN(2)]
		}
		answers := [][2]any{{map[string]string{"schema": "sentiment", "name": label}, label}}
		if s.freeText {
			reason := fmt.Sprintf("%s finds it %s", annotator, itemText(i + 7)[:20+r.IntN(20)])
			answers = append(answers, [2]any{map[string]string{"schema": "reason", "name": "text_box"}, reason})
		}
		labels[ids[i]] = answers
	}
	state := map[string]any{
		"user_id": annotator, "instance_id_ordering": ids, "current_instance_index": max(0, s.labelled-1),
		"current_phase_and_page": []any{"annotation", nil}, "max_assignments": -1, "instance_id_to_label_to_value": labels,
		"instance_id_to_span_to_value": struct{}{}, "instance_id_to_behavioral_data": struct{}{}, "origin": struct{}{},
	}
	return writeLines(filepath.Join(dir, "user_state.json"), func(w *bufio.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(state)
	})
}

func writeLines(path string, write func(*bufio.Writer) error) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	return errors.Join(write(w), w.Flush(), f.Close())
}
