package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"potato/api"
)

// S5, R2: a bundle of ours is one of protocol version 1, which the published tool's own worker trains from.
func TestPeersWorkerTrainsFromOurBundle(t *testing.T) {
	t.Parallel()
	interpreter := peer(t, "python")
	bundle := filepath.Join(trained(t, start(t, study(t))), "bundle")
	spec := writeSpec(t, bundle)
	events := workerEvents(t, exec.Command(interpreter, "-m", "potato.training.worker", "--spec", spec.path))
	wantPredictions(t, bundle, spec.Workdir, events)
}

// S5, R2: and our worker trains from a bundle that the published tool made.
func TestOurWorkerTrainsFromPeersBundle(t *testing.T) {
	t.Parallel()
	bundle := filepath.Join(trained(t, startPeer(t, study(t))), "bundle")
	spec := writeSpec(t, bundle)
	worker := filepath.Join(root, "trainers", "potato_trainers", "worker.py")
	events := workerEvents(t, exec.Command(python(t), worker, "--spec", spec.path))
	wantPredictions(t, bundle, spec.Workdir, events)
}

// R3: the same study gives the same rows in the same files: text, target and split of every item are the peer's, and
// both digests are what anyone computes from the files.
func TestPeersBundleIsOurs(t *testing.T) {
	t.Parallel()
	theirs := filepath.Join(trained(t, startPeer(t, study(t))), "bundle")
	ours := filepath.Join(trained(t, start(t, study(t))), "bundle")
	theirManifest, theirRows := readBundle(t, theirs)
	ourManifest, ourRows := readBundle(t, ours)
	if got, want := slices.Sorted(maps.Keys(ourRows)), []string{"test", "train", "unlabeled", "val"}; !slices.Equal(got, want) {
		t.Errorf("got the splits %v, want %v", got, want)
	}
	for split, want := range theirRows {
		compareRows(t, split, ourRows[split], want)
	}
	for dir, m := range map[string]api.Manifest{theirs: theirManifest, ours: ourManifest} {
		if got := digest(t, dir, m); got != m.Digest {
			t.Errorf("the digest of %s is %s, its manifest says %s", dir, got, m.Digest)
		}
	}
	if !reflect.DeepEqual(ourManifest.Labels, theirManifest.Labels) {
		t.Errorf("got the labels %v, want %v", ourManifest.Labels, theirManifest.Labels)
	}
}

// S5, C1: one config.yaml for both; neither finds a thing to say about the tutorial's, nor an error where keys of ours
// are in it.
func TestPeerTakesTheSameConfig(t *testing.T) {
	t.Parallel()
	untouched := filepath.Join(root, "examples", "reviews", "config.yaml")
	for _, program := range []string{potato(t), peer(t, "potato")} {
		command(t, root, program, "validate", untouched, "--strict")
		command(t, root, program, "validate", filepath.Join(study(t, "warm_worker: false"), "config.yaml"))
	}
}

// spec is what a worker is told (protocol version 1).
type spec struct {
	V         int            `json:"v"`
	RunID     string         `json:"run_id"`
	Trainer   string         `json:"trainer"`
	Schemas   []api.Scheme   `json:"schemas"`
	BundleDir string         `json:"bundle_dir"`
	Workdir   string         `json:"workdir"`
	Params    map[string]any `json:"params"`
	Seed      int64          `json:"seed"`
	Limits    map[string]any `json:"limits"`

	// Of ours alone.
	Attempt       int    `json:"attempt"`
	CheckpointDir string `json:"checkpoint_dir"`

	path string
}

// writeSpec writes the spec of a run on a bundle, outside of the folder of the run that made it.
func writeSpec(t *testing.T, bundle string) spec {
	t.Helper()
	m, _ := readBundle(t, bundle)
	dir := t.TempDir()
	s := spec{
		V: 1, RunID: "20261129T120000-0a1b2c", Trainer: "sklearn-text", Schemas: m.Schemas, BundleDir: bundle,
		Workdir: filepath.Join(dir, "artifacts"), Params: map[string]any{}, Seed: m.SplitSeed,
		Limits: map[string]any{"max_wall_s": nil, "max_ram_mb": nil, "device": "auto", "num_threads": nil},
		path:   filepath.Join(dir, "spec.json"), Attempt: 1, CheckpointDir: filepath.Join(dir, "checkpoints"),
	}
	if err := os.Mkdir(s.Workdir, 0o700); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "spec.json", string(text))
	return s
}

// workerEvents runs a worker in a folder of its own and returns the events that it printed.
func workerEvents(t *testing.T, cmd *exec.Cmd) []api.Event {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "events.jsonl", command(t, dir, cmd.Path, cmd.Args[1:]...))
	return lines[api.Event](t, filepath.Join(dir, "events.jsonl"))
}

// wantPredictions checks that a worker predicted every item of val, test and unlabeled once and no item of train, each
// with one of the scheme's labels, and that its result says so.
func wantPredictions(t *testing.T, bundle, workdir string, events []api.Event) {
	t.Helper()
	m, rows := readBundle(t, bundle)
	want := map[string]int{}
	for _, split := range []string{"val", "test", "unlabeled"} {
		if len(rows[split]) == 0 {
			t.Errorf("the bundle has no rows in %s", split)
		}
		for _, row := range rows[split] {
			want[row.InstanceID]++
		}
	}
	got := map[string]int{}
	predictions := lines[api.Prediction](t, filepath.Join(workdir, "predictions.jsonl"))
	for _, p := range predictions {
		got[p.InstanceID]++
		if p.SchemaName != "sentiment" || !slices.Contains(m.Labels["sentiment"], p.Payload.Label) ||
			p.Confidence == nil || *p.Confidence < 0 || *p.Confidence > 1 {
			t.Fatalf("unexpected prediction %+v", p)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("%d items are predicted, val, test and unlabeled have %d", len(got), len(want))
	}
	last := events[len(events)-1]
	if last.Event != "result" || last.NPredictions == nil || *last.NPredictions != int64(len(predictions)) || last.PredictionsFile != "predictions.jsonl" {
		t.Errorf("the last event is %+v, want a result with %d predictions", last, len(predictions))
	}
}

func compareRows(t *testing.T, split string, got, want []api.Row) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: got %d rows, want %d", split, len(got), len(want))
		return
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("%s, row %d: got %+v, want %+v", split, i+1, got[i], want[i])
			return
		}
	}
}

// digest is the published rule, written down once more: name and content of each split's file, sorted by name.
func digest(t *testing.T, dir string, m api.Manifest) string {
	t.Helper()
	var names []string
	for _, split := range m.Splits {
		names = append(names, split.Path)
	}
	slices.Sort(names)
	sum := sha256.New()
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		sum.Write([]byte(name))
		sum.Write(text)
	}
	return hex.EncodeToString(sum.Sum(nil))
}
