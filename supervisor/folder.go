package supervisor

import (
	"os"
	"path/filepath"

	"potato/agent"
	"potato/api"
)

// folder is a run's folder (R2). The server alone writes in it, but for job/ and artifacts/, which are a local agent's.
type folder string

func (s *Supervisor) folder(id api.RunID) folder {
	return folder(filepath.Join(s.dir, "runs", string(id)))
}

func (f folder) bundle() string    { return filepath.Join(string(f), "bundle") }
func (f folder) artifacts() string { return filepath.Join(string(f), "artifacts") }
func (f folder) job() string       { return filepath.Join(string(f), "job") }
func (f folder) spec() string      { return filepath.Join(string(f), "spec.json") }
func (f folder) exitCode() string  { return filepath.Join(string(f), "exit_code") }

// For agents elsewhere: the packed bundle, and predictions that are being uploaded.
func (f folder) archive() string    { return filepath.Join(string(f), "bundle.tar.gz") }
func (f folder) archiveSum() string { return f.archive() + ".sha256" }
func (f folder) upload() string     { return filepath.Join(string(f), "upload") }

// The files that events go to, by their key in store.Received.
const (
	eventsFile = "events.jsonl"
	stdoutFile = "stdout.log"
	stderrFile = "stderr.log"
	agentFile  = "agent.log"
)

func (f folder) file(name string) string { return filepath.Join(string(f), name) }

// make creates the folder with artifacts/ in it.
func (f folder) make() error { return os.MkdirAll(f.artifacts(), 0o700) }

// writeFile writes a file that is whole and synced when it is there.
func writeFile(path string, b []byte) error { return agent.WriteFile(path, b, true) }
