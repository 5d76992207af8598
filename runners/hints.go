package runners

import "potato/api"

// hints say what to do about a failed run, by the error's code, when whoever found it had nothing better to say (N7, §11).
// Every code that a run may end with is here; a test holds the list against SPEC.
var hints = map[string]string{
	"wall_time":              "raise `max_wall_seconds`, or train on fewer items",
	"queue_timeout":          "raise `queue_timeout_s`, or see with Check why nobody took the run",
	"heartbeat_lost":         "the machine or the network went away; agent.log has its last output",
	"cancelled":              "",
	"out_of_memory":          "raise `max_ram_mb`, train on fewer items or features, or on a machine with more memory",
	"gpu_out_of_memory":      "lower the batch size or sequence length, or take a GPU with more free memory",
	"gpu_unsupported":        "install a torch built for this GPU, or train on another host",
	"gpu_missing":            "pin a GPU that the machine has, or let `gpus: auto` choose; the check lists them",
	"gpu_probe_failed":       "mend the driver on that host, or train on its CPU with `gpus: none`",
	"no_gpu_free":            "wait, lower `min_free_gpu_mb`, or pin one with `gpus: \"1\"`; the check lists the GPUs",
	"missing_dependency":     "point `python` at an interpreter that has the package, or list it under `packages`",
	"validation_failed":      "mend what the sentence names, and start the run again",
	"bad_bundle":             "look at the study's data files and state files; the server's log has the details",
	"bundle_download_failed": "look at the network between the server and the machine, and start the run again",
	"start_failed":           "see with Check what is wrong there; agent.log and the server's log have the details",
	"worker_failed":          "stderr.log has the details",
	"killed":                 "often the machine ran out of memory: set `max_ram_mb`, or train on fewer items",
	"ssh_auth":               "the server's account needs a key that works without a prompt; `ssh HOST true` must succeed",
	"ssh_unreachable":        "see that the host is up and that `ssh HOST true` works as the server's account",
	"host_key_unknown":       "log in once by hand as the server's account to accept the host's key",
	"host_key_changed":       "find out why the key changed before you remove the old one from known_hosts",
	"host_noexec":            "set `remote_dir` to a folder on a file system that allows programs to run",
	"platform_unsupported":   "train on another host, or build potato-agent for that platform",
	"python_missing":         "set `python` to an interpreter that exists there",
	"python_too_old":         "set `python` to an interpreter of version 3.8 or newer",
	"slurm_missing":          "this is not a login node, or PATH is set by the login shell only: set PATH under `env`",
	"slurm_refused":          "mend the setting that sbatch names",
	"slurm_time_limit":       "raise `time`, or train on fewer items; `keep_remote: true` keeps slurm.out",
	"slurm_node_failure":     "start the run again, or set `requeue: true`",
	"slurm_preempted":        "start the run again, or set `requeue: true`",
	"slurm_cancelled":        "someone cancelled the job in the scheduler; start the run again",
	"slurm_held":             "release the job, or ask the cluster's admins why it is held",
	"slurm_deadline":         "raise `deadline`, or train on fewer items",
	"prelude_failed":         "mend the line of `prelude` that is quoted",
	"disk_full":              "free some space there and train again; nothing that was saved is lost",
	"predictions_too_large":  "raise `max_predictions_mb`",
	"server_restarted":       "start the run again; a higher `heartbeat_timeout_s` bridges longer absences",
	"server_unreachable":     "see that the machine can reach the server, and start the run again",
	"nothing_to_train":       "collect more labels, then start the run again",
}

// WithHint completes an error that says what happened with what to do about it.
func WithHint(e *api.Error) *api.Error {
	if e.Hint != "" || hints[e.Code] == "" {
		return e
	}
	return e.WithHint("%s", hints[e.Code])
}

// KnownCode reports whether a run may end with the code (N7).
func KnownCode(code string) bool {
	_, known := hints[code]
	return known
}
