package agent_test

import (
	"io/fs"
	"regexp"
	"slices"
	"testing"

	"potato/agent"
	"potato/trainers"
)

// A worker's codes are written in Python and here. What the agent does not know becomes worker_failed: of the program's
// own worker that is right for a spec that only a mistake of ours can make, and for a cancel, which has a meaning of its own.
func TestTheWorkersCodesAreKnown(t *testing.T) {
	turned := []string{"bad_spec", "cancelled", "worker_failed"}
	seen := map[string]bool{}
	for _, file := range []string{"failures.py", "run.py", "worker.py"} {
		text, err := fs.ReadFile(trainers.Files(), "potato_trainers/"+file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)(?:code, exit_code = |"code": |", |return |^\s+)"([a-z]+(?:_[a-z]+)+|cancelled)"[,\n]`).FindAllStringSubmatch(string(text), -1) {
			seen[m[1]] = true
		}
	}
	for _, code := range []string{"out_of_memory", "gpu_out_of_memory", "gpu_unsupported", "disk_full", "validation_failed", "missing_dependency", "bad_bundle", "python_too_old", "cancelled"} {
		if !seen[code] {
			t.Errorf("%s was not found in the worker; found were %v", code, seen)
		}
	}
	for code := range seen {
		if !slices.Contains(agent.WorkerCodes, code) && !slices.Contains(turned, code) {
			t.Errorf("the worker uses the code %s, which the agent does not pass on", code)
		}
	}
}
