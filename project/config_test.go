package project_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"potato/api"
	"potato/project"
)

// study is a config that has all an annotation tool needs; tests add what they are about.
const study = `annotation_task_name: Reviews
data_files: [data/reviews.json]
item_properties: {id_key: id, text_key: text}
output_annotation_dir: annotation_output
annotation_schemes:
  - {annotation_type: radio, name: sentiment, description: How is it, labels: [positive, negative]}
`

// writeStudy puts a config beside a data file and returns its path.
func writeStudy(tb testing.TB, config string) string {
	tb.Helper()
	dir := tb.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "data"), 0o700); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "data", "reviews.json"), []byte(`[{"id":"1","text":"good"}]`), 0o600); err != nil {
		tb.Fatal(err)
	}
	path := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

func mustLoad(tb testing.TB, config string) *project.Config {
	tb.Helper()
	c, r := project.Load(writeStudy(tb, config))
	if c == nil {
		tb.Fatalf("the config is refused:\n%s", strings.Join(found(r.Errors), "\n"))
	}
	return c
}

// found writes problems as line:column message, with the suggestion after an arrow.
func found(problems []api.Problem) []string {
	var list []string
	for _, p := range problems {
		s := fmt.Sprintf("%d:%d %s", p.Line, p.Column, p.Message)
		if p.Suggestion != "" {
			s += " -> " + p.Suggestion
		}
		list = append(list, s)
	}
	return list
}

// The seed's config, pasted whole beside a data file, passes (C9).
func TestSeedConfig(t *testing.T) {
	text, err := os.ReadFile("testdata/config/seed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	path := writeStudy(t, string(text))
	if r := project.Validate(path); !r.OK(true) {
		t.Fatalf("errors %q, warnings %q", found(r.Errors), found(r.Warnings))
	}
	c, _ := project.Load(path)
	got, want := c.ModelTraining.Backends, []string{"gpu-server", "cluster", "lab-workstation"}
	for i, b := range got {
		if b.Name != want[i] {
			t.Errorf("backend %d is %s, want %s", i, b.Name, want[i])
		}
	}
	cluster, _ := got.ByName("cluster")
	for what, pair := range map[string][2]any{
		"default backend": {c.ModelTraining.DefaultBackend(), "gpu-server"},
		"wall limit":      {project.Seconds(c.ModelTraining.MaxWallSeconds).String(), "1h0m0s"},
		"host":            {got[0].Host, "gpu.example.org"},
		"min_free_gpu_mb": {got[0].MinFreeGPUMB, int64(4000)},
		"time":            {cluster.Time, project.Text("04:00:00")},
		"prelude":         {cluster.Prelude, []string{"module load cuda/12.4"}},
		"queue_timeout_s": {got[2].QueueTimeoutS, 3600.0},
		"labels":          {c.AnnotationSchemes[0].Labels, []project.Label{{Name: "positive"}, {Name: "negative"}}},
		"key":             {c.AdminAPIKey.Weak(), true},
		"output":          {c.OutputPath(), filepath.Join(filepath.Dir(path), "annotation_output")},
		"training":        {c.TrainingPath(), filepath.Join(filepath.Dir(path), "annotation_output", "training")},
		"data file":       {c.DataPath(c.DataFiles[0]), filepath.Join(filepath.Dir(path), "data", "reviews.json")},
	} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("%s: got %v, want %v", what, pair[0], pair[1])
		}
	}
}

// Every default is that of C7 or of the published tool.
func TestDefaults(t *testing.T) {
	c := mustLoad(t, study+`model_training:
  backends:
    gpu: {type: ssh, host: h}
    cluster: {type: slurm, host: h, remote_dir: /shared/x, python: /opt/py}
    ws: {type: agent}
`)
	m := c.ModelTraining
	gpu, cluster, ws := m.Backends[0], m.Backends[1], m.Backends[2]
	for what, pair := range map[string][2]any{
		"grace_seconds":           {m.GraceSeconds, 20.0},
		"heartbeat_timeout_s":     {m.HeartbeatTimeoutS, 120.0},
		"max_predictions_mb":      {m.MaxPredictionsMB, int64(512)},
		"max_wall_seconds":        {m.MaxWallSeconds, 0.0},
		"aggregation":             {m.Aggregation, "consensus"},
		"split_seed":              {m.SplitSeed, int64(0)},
		"splits":                  {m.Splits, project.Splits{{"train", 0.7}, {"val", 0.15}, {"test", 0.15}}},
		"retain_runs":             {m.RetainRuns, 5},
		"max_concurrent_runs":     {m.MaxConcurrentRuns, project.MaxConcurrentRuns{Total: 1}},
		"warm_worker":             {m.WarmWorker, project.WarmWorkerAuto},
		"python":                  {m.Python, "python3"},
		"device":                  {m.Device, "auto"},
		"field":                   {m.Writeback.Field, "predictions"},
		"update_frequency":        {m.AutoRetrain.UpdateFrequency, 25},
		"min_interval_s":          {m.AutoRetrain.MinIntervalS, 600.0},
		"default backend":         {m.DefaultBackend(), "local"},
		"retrain backend":         {m.RetrainBackend(), "local"},
		"ssh python":              {gpu.Python, "python3"},
		"ssh gpus":                {gpu.GPUs, project.Text("auto")},
		"ssh min_free_gpu_mb":     {gpu.MinFreeGPUMB, int64(2000)},
		"ssh remote_dir":          {gpu.RemoteDir, "~/.cache/potato-training"},
		"ssh max_artifact_mb":     {gpu.MaxArtifactMB, int64(2048)},
		"ssh fetch_artifacts":     {gpu.FetchArtifacts, true},
		"ssh keep_remote":         {gpu.KeepRemote, false},
		"ssh heartbeat_timeout_s": {gpu.HeartbeatTimeoutS, 120.0},
		"ssh transport":           {gpu.Transport, "auto"},
		"slurm job_python":        {cluster.JobPython, "/opt/py"},
		"slurm poll_interval_s":   {cluster.PollIntervalS, 10.0},
		"slurm requeue":           {cluster.Requeue, (*bool)(nil)},
		"agent heartbeat":         {ws.HeartbeatTimeoutS, 120.0},
		"agent queue_timeout_s":   {ws.QueueTimeoutS, 0.0},
		"adjudication":            {c.Adjudication.OutputSubdir, "adjudication"},
		"media":                   {c.MediaDirectory, "media"},
	} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("%s: got %v, want %v", what, pair[0], pair[1])
		}
	}
}

func TestHeartbeatTimeoutOfABackendWins(t *testing.T) {
	c := mustLoad(t, study+`model_training:
  heartbeat_timeout_s: 60
  backends:
    a: {type: agent}
    b: {type: agent, heartbeat_timeout_s: 30}
`)
	if a, b := c.ModelTraining.Backends[0].HeartbeatTimeoutS, c.ModelTraining.Backends[1].HeartbeatTimeoutS; a != 60 || b != 30 {
		t.Errorf("got %v and %v, want 60 and 30", a, b)
	}
}

// A key that is there and empty is absent, as in the annotation tool.
func TestEmptyKeysAreAbsent(t *testing.T) {
	c := mustLoad(t, study+`admin_api_key:
model_training:
  enabled: true
  backend:
  backends:
  retain_runs: ~
  writeback:
  splits: null
`)
	if m := c.ModelTraining; !m.Enabled || m.RetainRuns != 5 || len(m.Splits) != 3 || len(m.Backends) != 0 || m.DefaultBackend() != "local" {
		t.Errorf("got %+v", m)
	}
}

func TestPlaces(t *testing.T) {
	for config, want := range map[string]string{
		"3":                          "gpu 3 true, local 3 true",
		"{default: 2, gpu: 4}":       "gpu 4 false, local 2 false",
		"{gpu: 4}":                   "gpu 4 false, local 1 false",
		"{local: 2, gpu: }":          "gpu 1 false, local 2 false",
		"{default: 2, local: 0o1}":   "",
		"{default: 2, local: '1'}":   "",
		"{default: 2, nowhere: '1'}": "",
	} {
		c, r := project.Load(writeStudy(t, study+"model_training:\n  backends: {gpu: {type: agent}}\n  max_concurrent_runs: "+config+"\n"))
		if c == nil {
			if want != "" {
				t.Errorf("%s is refused: %q", config, found(r.Errors))
			}
			continue
		}
		gpu, shared := c.ModelTraining.MaxConcurrentRuns.Places("gpu")
		local, localShared := c.ModelTraining.MaxConcurrentRuns.Places("local")
		if got := fmt.Sprintf("gpu %d %v, local %d %v", gpu, shared, local, localShared); got != want {
			t.Errorf("%s: got %s, want %s", config, got, want)
		}
	}
}

func TestPaths(t *testing.T) {
	c := mustLoad(t, strings.ReplaceAll(study, "[data/reviews.json]", "[{path: reviews.json, encoding: latin-1, filter_by_prior_annotation: {a: b}}]")+
		"task_dir: data\nmodel_training: {training_dir: /var/lib/x/, trainers_dir: data}\n")
	for what, pair := range map[string][2]string{
		"task":     {c.TaskPath(), filepath.Join(c.Dir, "data")},
		"output":   {c.OutputPath(), filepath.Join(c.Dir, "data", "annotation_output")},
		"training": {c.TrainingPath(), "/var/lib/x"},
		"trainers": {c.TrainersPath(), filepath.Join(c.Dir, "data")},
		"encoding": {c.DataFiles[0].Encoding, "latin-1"},
		"file":     {c.DataPath(c.DataFiles[0]), filepath.Join(c.Dir, "data", "reviews.json")},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: got %s, want %s", what, pair[0], pair[1])
		}
	}
}

// The keys that only this server reads take ~ as people write it; those that the annotation tool reads too do not.
func TestPathsBelowHome(t *testing.T) {
	t.Setenv("HOME", "/home/ana")
	c := mustLoad(t, study+"model_training: {training_dir: ~/runs, python: ~/venv/bin/python}\n")
	for what, pair := range map[string][2]string{
		"training": {c.TrainingPath(), "/home/ana/runs"},
		"python":   {c.PythonPath(), "/home/ana/venv/bin/python"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: got %s, want %s", what, pair[0], pair[1])
		}
	}
}

// Labels are what annotators' files hold: text, or Python's text of a number or boolean.
func TestLabels(t *testing.T) {
	c := mustLoad(t, strings.ReplaceAll(study, "[positive, negative]",
		`[good, "yes", yes, off, 1, 010, 2.50, 3.0, 1e3, {name: 12:30, key_value: 1}, {name: "", tooltip: x}, 1_000.5]`))
	var got []string
	for _, l := range c.AnnotationSchemes[0].Labels {
		got = append(got, l.Name)
	}
	want := []string{"good", "yes", "True", "False", "1", "8", "2.5", "3.0", "1e3", "750", "", "1000.5"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	c := mustLoad(t, study+"admin_api_key: hunter2-hunter2-hunter2\n")
	js, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{fmt.Sprint(c.AdminAPIKey), fmt.Sprintf("%#v %+v %q", c.AdminAPIKey, *c, c.AdminAPIKey), string(js)} {
		if strings.Contains(s, "hunter2") {
			t.Errorf("the key is printed: %s", s)
		}
	}
	if c.AdminAPIKey.Reveal() != "hunter2-hunter2-hunter2" || c.AdminAPIKey.Weak() {
		t.Error("the key is not what the config says")
	}
}
