package e2e_test

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// A3: a fuzzer that reads the document finds no 5xx and no answer that the document does not name.
func TestSchemathesisFindsNothing(t *testing.T) {
	tools := toolsVenv(t)
	s := start(t, study(t))
	s.finished(s.post(map[string]any{"trainer": "sklearn-text", "schemas": []string{"sentiment"}}), "success")
	cmd := exec.Command(filepath.Join(tools, "schemathesis"), "run", s.URL+"/openapi.json", "--url", s.URL,
		"-H", "X-API-Key: "+key, "--max-examples", "20", "--seed", "7", "--phases", "examples,coverage,fuzzing",
		// Whether a request that fits the schema names a trainer that exists is not the schema's to say, and a null for
		// an optional property is read as its absence.
		"--exclude-checks", "positive_data_acceptance,negative_data_rejection",
		// One streams until the client ends, the other would lock the door with its guesses; handlers' own tests hold them.
		"--exclude-operation-id", "watchRuns", "--exclude-operation-id", "createSession")
	cmd.Dir = t.TempDir()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
