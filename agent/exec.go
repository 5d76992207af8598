package agent

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// shimStart is the first line a shim reads. Without Warm it also holds the job; with Warm the job comes as a second
// line, when there is one, and the end of input before that means that there will be none.
type shimStart struct {
	Warm   bool     `json:"warm,omitempty"`
	Argv   []string `json:"argv"`
	Env    []string `json:"env"`
	Marker string   `json:"marker"`
	Job    shimJob  `json:"job,omitzero"`
	Slurm  bool     `json:"slurm,omitempty"` // started by a SLURM job: Env comes over what the job's script has set, and the script has the claim
	Ranks  int      `json:"ranks,omitempty"` // workers on a node without GPUs, when that is more than one
}

// shimJob is what a shim must know of the job its worker does.
type shimJob struct {
	Dir           string  `json:"dir"`
	Spec          string  `json:"spec"`
	LeaseFile     string  `json:"lease_file,omitempty"`
	LeaseTimeoutS float64 `json:"lease_timeout_s,omitempty"`
	GraceS        float64 `json:"grace_s"`
	MaxRAMMB      int64   `json:"max_ram_mb,omitempty"`
}

// warmJob is the line that a warm worker reads. It opens its output anew at these paths.
type warmJob struct {
	Spec   string `json:"spec"`
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
	Cwd    string `json:"cwd"`
}

const (
	readyVar = "POTATO_READY_FD" // a warm worker writes a line there once its trainer is imported
	readyFD  = "3"
)

// Exec is the body of the hidden command "exec", the shim between agent and worker; its result is the exit status.
// It reads what to start as one JSON line from stdin, so that nothing shows in a process list.
//
// The shim outlives whoever started it. It keeps the worker's limits, waits for it, ends what is left of its tree, and
// says how it went in exit_code, last of all.
func Exec(stdin io.Reader) int {
	// The kernel sends the worker its parent-death signal when the thread that started it ends, so that must be ours.
	runtime.LockOSThread()
	syscall.Umask(0o077)
	in := bufio.NewReader(stdin)
	var start shimStart
	if !readLine(in, &start) || len(start.Argv) == 0 {
		return 0 // whoever started us is gone
	}
	s := newShim(start.Marker)
	if start.Warm {
		return s.warm(start, in)
	}
	if start.Slurm {
		return s.inSlurm(start)
	}
	return s.cold(start)
}

// readLine reports whether a whole line of JSON came; half a line is from someone who died over it.
func readLine(in *bufio.Reader, v any) bool {
	line, err := in.ReadBytes('\n')
	return err == nil && json.Unmarshal(line, v) == nil
}

func (s *shim) cold(start shimStart) int {
	if !s.accept(start.Job) {
		return 0
	}
	outputs, err := openOutputs(s.job.Dir)
	if err == nil {
		err = s.start(start.Argv, start.Env, s.job.Dir, outputs)
	}
	if err != nil {
		return s.finish(Exit{Reason: ReasonStartFailed, Message: err.Error()})
	}
	return s.finish(s.supervise())
}

// accept claims the job. When an agent has claimed it first, it took us for dead, and we must not start.
func (s *shim) accept(job shimJob) bool {
	s.job = job
	p, _ := processByPid(os.Getpid())
	ok, err := claim(job.Dir, s.marker, claimant{Pid: p.pid, StartTime: p.start, Host: hostname(), BootID: bootID()})
	if err != nil || !ok {
		return false
	}
	s.reserve()
	return true
}

func openOutputs(dir string) ([]*os.File, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	files := []*os.File{null}
	for _, name := range []string{stdoutFile, stderrFile} {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// warm starts the worker before there is a job, and ends it when none comes.
func (s *shim) warm(start shimStart, in *bufio.Reader) int {
	jobsIn, imported, err := s.startWarm(start)
	if err != nil {
		return 1
	}
	accepted := make(chan *shimJob, 1)
	go func() {
		var job shimJob
		if readLine(in, &job) {
			accepted <- &job
		} else {
			accepted <- nil
		}
	}()
	job := s.awaitJob(accepted, imported)
	if job == nil || !s.accept(*job) {
		return s.dismiss(jobsIn)
	}
	line, err := json.Marshal(warmJob{
		Spec: job.Spec, Cwd: job.Dir,
		Stdout: filepath.Join(job.Dir, stdoutFile), Stderr: filepath.Join(job.Dir, stderrFile),
	})
	if err == nil {
		_, _ = jobsIn.Write(append(line, '\n')) // a worker that has just died shows by its end
	}
	_ = jobsIn.Close()
	return s.finish(s.supervise())
}

// startWarm starts a worker that waits for a line on the pipe; imported hears once whether its trainer was.
func (s *shim) startWarm(start shimStart) (jobsIn *os.File, imported <-chan bool, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	jobs, jobsIn, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	readyOut, ready, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	env := setEnv(start.Env, readyVar+"="+readyFD)
	if err := s.start(start.Argv, env, "/", []*os.File{jobs, null, null, ready}); err != nil {
		return nil, nil, err
	}
	_ = jobs.Close()
	_ = ready.Close()
	said := make(chan bool, 1)
	go func() {
		line, _ := bufio.NewReader(readyOut).ReadString('\n')
		said <- line == "ready\n"
	}()
	return jobsIn, said, nil
}

// awaitJob waits for a job and for the worker to be ready for it; nil when there will be none, or no worker.
func (s *shim) awaitJob(accepted <-chan *shimJob, imported <-chan bool) *shimJob {
	var job *shimJob
	for isReady := false; job == nil || !isReady; {
		select {
		case job = <-accepted:
			if job == nil {
				return nil
			}
		case isReady = <-imported:
			if !isReady {
				return nil
			}
		case <-s.gone:
			return nil
		case sig := <-s.signals:
			if isStop(sig) {
				return nil
			}
		}
	}
	return job
}

// dismiss ends a warm worker that got no job. No exit_code is written: there is no job it could be about.
func (s *shim) dismiss(jobsIn *os.File) int {
	_ = jobsIn.Close()
	s.forward(syscall.SIGTERM)
	select {
	case <-s.gone:
	case <-time.After(leftoverGrace):
	}
	s.sweep()
	return 0
}
