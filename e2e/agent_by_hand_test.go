package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The protocol is documented well enough that someone writes an agent of their own: here is one in Python.
func TestAgentWrittenByHand(t *testing.T) {
	tools := toolsVenv(t)
	dir := agentStudy(t)
	token := register(t, filepath.Join(dir, "config.yaml"))
	s := start(t, dir)
	id := s.post(map[string]any{"trainer": "sklearn-text", "schemas": []string{"sentiment"}, "backend": workstation})
	folder := t.TempDir()
	site := command(t, "", filepath.Join(tools, "python"), "-c", "import requests; print(requests.__path__[0])")
	cmd := exec.Command(python(t), filepath.Join("testdata", "agent.py"), s.URL, folder, filepath.Join(root, "trainers", "potato_trainers", "worker.py"))
	cmd.Env = append(os.Environ(), "POTATO_TRAINING_TOKEN="+token, "PYTHONPATH="+filepath.Dir(site))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r := s.finished(id, "success")
	if r.Metrics["test_accuracy"] == nil || !strings.HasSuffix(r.ArtifactURI, filepath.Join(folder, "artifacts")) {
		t.Errorf("metrics %v, artifact_uri %q", r.Metrics, r.ArtifactURI)
	}
}
