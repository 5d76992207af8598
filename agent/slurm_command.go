package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"potato/api"
)

// slurmCommands runs the commands of the scheduler. srun and sacct are none of them (Q1).
type slurmCommands struct {
	env     []string
	timeout time.Duration
}

// slurmAnswer is what a command said. A command that was killed or could not be started gave no answer, which is an error.
type slurmAnswer struct {
	stdout, stderr string
	code           int
}

// dropped are variables of the account's that would change what our calls mean.
func dropped(name string) bool {
	return strings.HasPrefix(name, "SQUEUE_") || strings.HasPrefix(name, "SCANCEL_") ||
		slices.Contains([]string{"SLURM_TIME_FORMAT", "SBATCH_WAIT", "SBATCH_ARRAY_INX", "SBATCH_OPEN_MODE", "SBATCH_EXPORT", "SCONTROL_ALL"}, name)
}

func newSlurmCommands(extra map[string]string, timeout time.Duration) slurmCommands {
	var env []string
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); !dropped(name) {
			env = append(env, kv)
		}
	}
	return slurmCommands{env: setEnv(env, pairs(extra)...), timeout: timeout}
}

// errNoCommand means that a command is not on PATH.
var errNoCommand = errors.New("not on PATH")

func (c slurmCommands) run(ctx context.Context, name string, args ...string) (slurmAnswer, error) {
	path, err := c.find(name)
	if err != nil {
		return slurmAnswer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = c.env, "/", &stdout, &stderr, time.Second
	err = cmd.Run()
	a := slurmAnswer{stdout: stdout.String(), stderr: stderr.String(), code: cmd.ProcessState.ExitCode()}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return a, fmt.Errorf("%s did not answer within %.0f s", name, c.timeout.Seconds())
	case errors.As(err, &exit) && exit.Exited():
		return a, nil
	case err != nil:
		return a, fmt.Errorf("%s: %w", name, err)
	}
	return a, nil
}

func (c slurmCommands) find(name string) (string, error) {
	for _, kv := range c.env {
		if list, ok := strings.CutPrefix(kv, "PATH="); ok {
			for _, dir := range filepath.SplitList(list) {
				path := filepath.Join(dir, name)
				if about, err := os.Stat(path); err == nil && filepath.IsAbs(path) && !about.IsDir() && about.Mode()&0o111 != 0 {
					return path, nil
				}
			}
		}
	}
	return "", fmt.Errorf("%s: %w", name, errNoCommand)
}

func slurmMissing(name string) *api.Error {
	return api.Unavailablef("slurm_missing", "%s has no %s on PATH, so it cannot submit jobs", hostname(), name).
		WithHint("not a login node, or PATH is set by the login shell only: set PATH under `env`")
}

// onCluster puts -M before the arguments where a cluster is named.
func onCluster(cluster string, args ...string) []string {
	if cluster == "" {
		return args
	}
	return append([]string{"-M", cluster}, args...)
}

// runOn runs a command for a cluster. Where there is no database behind the scheduler it does not know clusters by name,
// its own neither (Q3); then the name is left out.
func (c slurmCommands) runOn(ctx context.Context, cluster, name string, args ...string) (slurmAnswer, error) {
	a, err := c.run(ctx, name, onCluster(cluster, args...)...)
	if err == nil && a.code != 0 && cluster != "" && noSuchCluster(a.stderr) {
		return c.run(ctx, name, args...)
	}
	return a, err
}

func noSuchCluster(stderr string) bool {
	return containsAny(stderr, "invalid entry for --cluster", "accounting storage is disabled", "No cluster ", "not known to", "accounting_storage/none", "slurm_persist_conn_open")
}

func containsAny(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(text, p) })
}

// words are what a command of the scheduler said, without the names that it puts before each line.
func words(a slurmAnswer) string {
	var said []string
	for line := range strings.Lines(cut(clean([]byte(a.stderr)), 4000)) {
		line = strings.TrimSpace(line)
		for _, prefix := range []string{"sbatch:", "squeue:", "scancel:", "scontrol:", "slurm_load_jobs", "error:", "Batch job submission failed:"} {
			line = strings.TrimSpace(strings.TrimPrefix(line, prefix))
		}
		if line != "" && !slices.Contains(said, line) {
			said = append(said, line)
		}
	}
	return strings.Join(said, "; ")
}
