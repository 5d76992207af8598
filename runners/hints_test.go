package runners_test

import (
	"os"
	"strings"
	"testing"

	"potato/api"
	"potato/runners"
)

// codes are those of SPEC N7.
const codes = `wall_time queue_timeout heartbeat_lost cancelled out_of_memory gpu_out_of_memory gpu_unsupported no_gpu_free missing_dependency
validation_failed bad_bundle bundle_download_failed start_failed worker_failed killed ssh_auth ssh_unreachable host_key_unknown
host_key_changed python_missing slurm_missing slurm_refused slurm_time_limit slurm_node_failure slurm_preempted slurm_cancelled slurm_held
slurm_deadline prelude_failed disk_full predictions_too_large server_restarted server_unreachable nothing_to_train gpu_missing gpu_probe_failed
host_noexec platform_unsupported python_too_old`

// A run's page links every code to its heading (§11).
func TestEveryCodeIsInTheTroubleshooting(t *testing.T) {
	page, err := os.ReadFile("../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range strings.Fields(codes) {
		if !strings.Contains(string(page), "\n### `"+code+"`\n") {
			t.Errorf("docs/troubleshooting.md has no heading for %s", code)
		}
	}
}

func TestEveryCodeHasAHint(t *testing.T) {
	for _, code := range strings.Fields(codes) {
		e := runners.WithHint(api.Unavailablef(code, "it went wrong"))
		if e.Hint == "" && code != "cancelled" {
			t.Errorf("%s has no hint", code)
		}
	}
	if e := runners.WithHint(api.Unavailablef("wall_time", "x").WithHint("mine")); e.Hint != "mine" {
		t.Errorf("got %q in place of the hint that was there", e.Hint)
	}
}
