package e2e_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// K3, K4: the last line that register prints brings the agent to a machine that has nothing of ours, checks it and starts it.
func TestInstallLine(t *testing.T) {
	dir := agentStudy(t)
	code, said := ask(t, "training", "register", workstation, filepath.Join(dir, "config.yaml"))
	token := tokenPattern.FindStringSubmatch(said)
	if code != 0 || token == nil {
		t.Fatalf("register left with %d and said:\n%s", code, said)
	}
	s := start(t, dir)
	resp, err := http.Get(s.URL + "/api/training/agent/linux/amd64.sha256")
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	need(t, resp.StatusCode == http.StatusOK, "agents in bin/potato; `make build` puts them there")
	_, err = exec.LookPath("curl")
	need(t, err == nil, "curl")
	id := s.post(map[string]any{"trainer": "sklearn-text", "schemas": []string{"sentiment"}, "backend": workstation})
	said = strings.TrimSpace(said)
	line := said[strings.LastIndex(said, "\n")+1:]
	line = strings.ReplaceAll(line, "<this-server>:8000", strings.TrimPrefix(s.URL, "http://"))
	folder := t.TempDir()
	cmd := exec.Command("bash", "-c", line+" --once --workdir work --python "+python(t))
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "POTATO_TRAINING_TOKEN="+token[1])
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "potato-agent: OK") {
		t.Fatalf("%s\n%v\n%s", line, err, out)
	}
	if r := s.finished(id, "success"); r.Metrics["test_accuracy"] == nil {
		t.Errorf("got %v", r.Metrics)
	}

	// A program that is not the one that the checksum is of is not started.
	tampered := strings.Replace(line, "&& curl -fo potato-agent.sha256", "&& echo more >> potato-agent && curl -fo potato-agent.sha256", 1)
	cmd = exec.Command("bash", "-c", tampered+" --once")
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "POTATO_TRAINING_TOKEN="+token[1])
	if out, err := cmd.CombinedOutput(); err == nil || strings.Contains(string(out), "level=INFO") {
		t.Errorf("%v\n%s", err, out)
	}
}
