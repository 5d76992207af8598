package runnertest

import (
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"potato/project"
)

//go:embed trainers/*.py
var trainerFiles embed.FS

// Trainer is the trainer of the studies made here: it does what its parameters say.
const Trainer = "steered"

// Scheme is the scheme of the studies made here, with the labels positive and negative.
const Scheme = "sentiment"

// Study makes a folder with a study of 60 items, 40 of them labelled by two people, and the trainer. What training says goes
// below model_training, indented by two blanks.
func Study(tb testing.TB, training string) *project.Config {
	tb.Helper()
	dir := tb.TempDir()
	mustDo(tb, os.MkdirAll(filepath.Join(dir, "trainers"), 0o700))
	steered, err := trainerFiles.ReadFile("trainers/steered.py")
	mustDo(tb, err)
	mustDo(tb, os.WriteFile(filepath.Join(dir, "trainers", "steered.py"), steered, 0o600))
	mustDo(tb, os.WriteFile(filepath.Join(dir, "items.jsonl"), []byte(items(60)), 0o600))
	Label(tb, dir, "ana", 0, 40)
	Label(tb, dir, "ben", 10, 30)
	config := fmt.Sprintf(`annotation_task_name: Films
task_dir: .
data_files: [items.jsonl]
item_properties: {id_key: id, text_key: text}
output_annotation_dir: annotation_output
admin_api_key: a-key-for-the-tests-of-the-server
annotation_schemes:
  - {annotation_type: radio, name: %s, description: How is it?, labels: [positive, negative]}
model_training:
  enabled: true
  trainers_dir: trainers
  grace_seconds: 2
  python: %s
%s`, Scheme, Python(tb), training)
	path := filepath.Join(dir, "config.yaml")
	mustDo(tb, os.WriteFile(path, []byte(config), 0o600))
	return Load(tb, path)
}

// Load reads a config that has to be right.
func Load(tb testing.TB, path string) *project.Config {
	tb.Helper()
	c, report := project.Load(path)
	if len(report.Errors) > 0 {
		tb.Fatalf("the study's config: %+v", report.Errors)
	}
	return c
}

func items(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"id":"item-%02d","text":"The film number %d was %s"}`+"\n", i, i, label(i))
	}
	return b.String()
}

func label(i int) string {
	if i%2 == 0 {
		return "negative"
	}
	return "positive"
}

// Label writes the answers of a person to the items from first to before last.
func Label(tb testing.TB, dir, who string, first, last int) {
	tb.Helper()
	answers := map[string]any{}
	for i := first; i < last; i++ {
		answers[fmt.Sprintf("item-%02d", i)] = []any{[]any{map[string]string{"schema": Scheme, "name": label(i)}, label(i)}}
	}
	state, err := json.Marshal(map[string]any{"user_id": who, "instance_id_to_label_to_value": answers})
	mustDo(tb, err)
	home := filepath.Join(dir, "annotation_output", who)
	mustDo(tb, os.MkdirAll(home, 0o700))
	mustDo(tb, os.WriteFile(filepath.Join(home, "user_state.json"), state, 0o600))
}

// Python is the interpreter of the tests, by its real path: a version manager's shim takes longer than the tests.
func Python(tb testing.TB) string {
	tb.Helper()
	path, err := python()
	mustDo(tb, err)
	return path
}

var python = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		return "", fmt.Errorf("the tests need python3: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
})

func mustDo(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
