package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"potato/api"
)

// The files of a job directory. Who writes which is fixed: the worker its events, stdout and stderr; the shim the claim
// and exit_code; the agent everything else.
const (
	specFile   = "spec.json"
	eventsFile = "events.jsonl"
	outboxFile = "outbox.jsonl"
	stdoutFile = "stdout.log"
	stderrFile = "stderr.log"
	exitFile   = "exit_code"
	ownerFile  = "owner"
	handleFile = "handle.json"
	finishFile = "finish.json"

	checkpointDir = "checkpoints" // the worker's, until it has its result
)

// writeJSON replaces a file by rename, so that a reader sees the old content or the new, never a part. Files that mean
// "done" are synced first; the others only have to outlive this process, not a power cut.
func writeJSON(path string, v any, sync bool) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return WriteFile(path, append(b, '\n'), sync)
}

// WriteFile replaces a file by rename, as the files of a job directory and of a run's folder are written (ADR 0002).
func WriteFile(path string, b []byte, sync bool) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(b)
	if err == nil && sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// readJSON reports whether the file was there and whole.
func readJSON(path string, v any) bool {
	b, err := os.ReadFile(path)
	return err == nil && json.Unmarshal(b, v) == nil
}

func isDiskFull(err error) bool { return api.IsDiskFull(err) }
