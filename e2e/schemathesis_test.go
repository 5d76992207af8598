package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A3: a fuzzer that reads the document finds no 5xx and no answer that the document does not name.
func TestSchemathesisFindsNothing(t *testing.T) {
	s := start(t, study(t))
	s.finished(s.post(map[string]any{"trainer": "sklearn-text", "schemas": []string{"sentiment"}}), "success")
	fuzz(t, s, "", "-H", "X-API-Key: "+key,
		// One streams until the client ends, the other would lock the door with its guesses; handlers' own tests hold them.
		"--exclude-operation-id", "watchRuns", "--exclude-operation-id", "createSession")
}

// The agents' routes ask for another secret, so they are walked apart: by an agent that has a job.
func TestSchemathesisFindsNothingAsAnAgent(t *testing.T) {
	dir := agentStudy(t)
	token := register(t, filepath.Join(dir, "config.yaml"))
	s := start(t, dir)
	s.post(map[string]any{"trainer": "sklearn-text", "schemas": []string{"sentiment"}, "backend": workstation})
	run, lease := claim(t, s, token)
	fuzz(t, s, fmt.Sprintf("[parameters]\n\"path.run_id\" = %q\n\"path.os\" = \"linux\"\n\"path.arch\" = \"amd64\"\n", run),
		"-H", "Authorization: Bearer "+token, "-H", "Potato-Lease: "+lease, "--include-tag", "agent",
		// They answer as late as they are asked to, or as the document says; handlers' own tests hold them.
		"--exclude-operation-id", "claimJob", "--exclude-operation-id", "heartbeatJob")
}

// claim gets a job as an agent does.
func claim(t *testing.T, s *server, token string) (run, lease string) {
	t.Helper()
	question := strings.NewReader(`{"agent_id":"fuzzer","claim_id":"1","host":"here","version":"0","wait_s":10}`)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/api/training/jobs/claim", question)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var job struct {
		RunID string `json:"run_id"`
		Lease string `json:"lease"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&job); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("claim: %s, %v", resp.Status, err)
	}
	return job.RunID, job.Lease
}

func fuzz(t *testing.T, s *server, settings string, args ...string) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "schemathesis.toml", settings)
	cmd := exec.Command(filepath.Join(toolsVenv(t), "schemathesis"), append([]string{
		"run", s.URL + "/openapi.json", "--url", s.URL, "--max-examples", "20", "--seed", "7", "--phases", "examples,coverage,fuzzing",
		// Whether a request that fits the schema names a trainer that exists is not the schema's to say, and a null for
		// an optional property is read as its absence.
		"--exclude-checks", "positive_data_acceptance,negative_data_rejection",
		// It cannot make the NDJSON of uploads.
		"--exclude-operation-id", "putJobPredictions", "--exclude-operation-id", "patchJobPredictions",
	}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
