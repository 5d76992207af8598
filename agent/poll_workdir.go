package agent

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"potato/api"
)

// The files of a workdir. A job directory with a job.json is held: its run's end was not told yet.
const (
	lockFile     = "agent.lock"
	idFile       = "agent_id"
	jobsDir      = "jobs"
	artifactsDir = "artifacts"
	jobFile      = "job.json"
)

func (p *poller) dir(id api.RunID) string { return filepath.Join(p.o.Workdir, jobsDir, string(id)) }

// artifacts are apart from the job directory: model files stay when it goes (G4).
func (p *poller) artifacts(id api.RunID) string {
	return filepath.Join(p.o.Workdir, artifactsDir, string(id))
}

// lockWorkdir makes sure that no other agent works there. The lock goes with the process.
func lockWorkdir(dir string) (unlock func() error, err error) {
	if err := os.MkdirAll(filepath.Join(dir, jobsDir), 0o700); err != nil {
		return nil, api.Invalidf("workdir", "the workdir cannot be used: %v", err).WithHint("give another one with --workdir").WithCause(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, api.Invalidf("workdir", "the workdir cannot be used: %v", err).WithHint("give another one with --workdir").WithCause(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		who, _ := os.ReadFile(f.Name()) // only for the message
		err = api.Conflictf("workdir_taken", "another agent works in %s already%s", dir, pidIn(who)).
			WithHint("stop that one, or give this one a folder of its own with --workdir").WithCause(err)
		return nil, errors.Join(err, f.Close())
	}
	err = errors.Join(f.Truncate(0), writeAt(f, strconv.Itoa(os.Getpid())+"\n"))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock the workdir: %w", err), f.Close())
	}
	return f.Close, nil
}

func writeAt(f *os.File, s string) error {
	_, err := f.WriteAt([]byte(s), 0)
	return err
}

func pidIn(b []byte) string {
	if pid, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil {
		return fmt.Sprintf(" (process %d)", pid)
	}
	return ""
}

// agentID names the agent on the server. It is kept, and it begins with the host's name: a copy of the workdir on
// another machine is another agent.
func agentID(dir string) (string, error) {
	host := strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '-' || r == '.' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z') {
			return r
		}
		return '_'
	}, cutTo(hostname(), 60)) + "-"
	path := filepath.Join(dir, idFile)
	if b, err := os.ReadFile(path); err == nil {
		id := strings.TrimSpace(string(b))
		if rest, ours := strings.CutPrefix(id, host); ours && rest != "" {
			return id, nil
		}
	}
	id := host + rand.Text()
	if err := WriteFile(path, []byte(id+"\n"), false); err != nil {
		return "", api.Invalidf("workdir", "the workdir cannot be used: %v", err).WithCause(err)
	}
	return id, nil
}

func cutTo(s string, n int) string { return s[:min(len(s), n)] }

// held are the jobs whose directories are there.
func (p *poller) held() (jobs []api.Job) {
	entries, err := os.ReadDir(filepath.Join(p.o.Workdir, jobsDir))
	if err != nil {
		p.log.Warn("cannot look for earlier jobs", "err", err)
	}
	for _, e := range entries {
		var job api.Job
		id := api.RunID(e.Name())
		if id.Valid() && readJSON(filepath.Join(p.dir(id), jobFile), &job) && job.RunID == id && job.Lease != "" {
			jobs = append(jobs, job)
		}
	}
	return jobs
}

// keep writes down that the job is ours, without any secret: the token is not part of it.
func (p *poller) keep(job api.Job) error {
	dir := p.dir(job.RunID)
	if _, err := os.Stat(filepath.Join(dir, jobFile)); errors.Is(err, fs.ErrNotExist) {
		// What is there was kept for somebody to look at, and is of an earlier turn.
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("prepare the job directory: %w", err)
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("prepare the job directory: %w", err)
	}
	if err := writeJSON(filepath.Join(dir, jobFile), job, true); err != nil {
		return fmt.Errorf("prepare the job directory: %w", err)
	}
	return nil
}

// note writes down how a job ended that cannot be told now.
func (p *poller) note(job api.Job, why *api.Error) error {
	path := filepath.Join(p.dir(job.RunID), finishFile)
	var o outcome
	if readJSON(path, &o) {
		return nil
	}
	o.Finish = api.Finish{Host: hostname(), ArtifactURI: hostname() + ":" + p.artifacts(job.RunID)}
	blame(&o.Finish, why)
	return writeJSON(path, o, true)
}

// clear removes a job directory that nobody needs any more; model files stay.
func (p *poller) clear(id api.RunID) error {
	// First of all, so that half a removal leaves nothing that looks like a job.
	if err := os.Remove(filepath.Join(p.dir(id), jobFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("clear the job directory: %w", err)
	}
	_ = os.Remove(p.artifacts(id)) // when it is empty
	if p.o.Keep {
		return nil
	}
	if err := os.RemoveAll(p.dir(id)); err != nil {
		return fmt.Errorf("clear the job directory: %w", err)
	}
	return nil
}
