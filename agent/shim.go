package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	watchEvery    = 250 * time.Millisecond // how often a shim looks at its lease and at the worker's memory
	leftoverGrace = 500 * time.Millisecond // between TERM and KILL for what a worker left behind
	sweepTime     = 5 * time.Second        // how long a shim tries to end the last process
)

// shim is the state of one Exec.
type shim struct {
	marker  string
	job     shimJob
	leader  int // pid and process group of the worker
	signals chan os.Signal
	gone    chan struct{} // closed when the worker has ended
	empty   chan struct{} // closed when all of its tree has; only where the kernel tells
	status  syscall.WaitStatus
	peakMB  float64
	ooms    int64
	spare   *os.File // disk space for exit_code
	fence   *fence   // of a SLURM job
}

func newShim(marker string) *shim {
	s := &shim{
		marker: marker, signals: make(chan os.Signal, 16), gone: make(chan struct{}), empty: make(chan struct{}), ooms: oomKills(),
	}
	// Caught and not ignored: what is ignored stays ignored in the worker. But for USR1, which would end an interpreter that
	// is only starting: it may come at any moment, and the worker listens to it when it can.
	signal.Notify(s.signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE, syscall.SIGUSR2)
	signal.Ignore(syscall.SIGUSR1)
	adoptOrphans()
	return s
}

func isStop(sig os.Signal) bool { return sig == syscall.SIGTERM || sig == syscall.SIGINT }

// start runs argv as leader of a process group of its own, with files as its descriptors from 0.
func (s *shim) start(argv, env []string, dir string, files []*os.File) error {
	attr := &syscall.ProcAttr{Dir: dir, Env: setEnv(env, markerVar+"="+s.marker), Sys: childAttr()}
	for _, f := range files {
		attr.Files = append(attr.Files, f.Fd())
	}
	pid, err := syscall.ForkExec(argv[0], argv, attr)
	if err != nil {
		return fmt.Errorf("%s could not be started: %w", argv[0], err)
	}
	signal.Notify(s.signals, syscall.SIGUSR1)
	s.leader = pid
	go s.reap()
	return nil
}

// forward sends a signal to the worker's process group.
func (s *shim) forward(sig syscall.Signal) { _ = syscall.Kill(-s.leader, sig) }

// supervise waits for the worker's end and brings it about when a limit asks for it.
func (s *shim) supervise() Exit {
	var exit Exit
	var kill <-chan time.Time // set once the agent was found lost
	watch := time.NewTicker(watchEvery)
	defer watch.Stop()
	lease := newLease(s.job)
	memory := meter{limitMB: s.job.MaxRAMMB}
	for running := true; running; {
		select {
		case <-s.gone:
			running = false
		case sig := <-s.signals:
			if sig == syscall.SIGUSR1 { // the worker alone knows it; it would end its children
				_ = syscall.Kill(s.leader, syscall.SIGUSR1)
			}
			if !isStop(sig) {
				continue
			}
			if exit.Reason == "" {
				exit.Reason = ReasonTerminated
			}
			s.forward(syscall.SIGTERM)
		case <-kill:
			s.killAll()
		case now := <-watch.C:
			if s.fence.passed(now) {
				s.killAll()
			}
			if kill == nil && lease.lost(now) {
				if exit.Reason == "" {
					exit.Reason = ReasonServerLost
				}
				s.forward(syscall.SIGTERM)
				kill = time.After(seconds(s.job.GraceS))
			}
			if exit.Reason != ReasonOutOfMemory {
				if used, over := memory.over(now); over {
					exit.Reason = ReasonOutOfMemory
					exit.Message = fmt.Sprintf("The worker used %.0f MB of memory, more than max_ram_mb allows (%d)", used, s.job.MaxRAMMB)
					s.killAll()
				}
			}
		}
	}
	s.peakMB = max(s.peakMB, memory.peakMB)
	s.sweep()
	return s.ending(exit)
}

// ending adds to an exit how the worker ended.
func (s *shim) ending(exit Exit) Exit {
	switch {
	case s.status.Exited():
		code := s.status.ExitStatus()
		exit.Code = &code
	case s.status.Signaled():
		exit.Signal = strings.TrimPrefix(unix.SignalName(s.status.Signal()), "SIG")
		if exit.Reason == "" && exit.Signal == "KILL" && oomKills() > s.ooms {
			exit.Reason = ReasonOutOfMemory
			exit.Message = "The machine ran out of memory and its kernel ended the worker"
		}
	}
	return exit
}

// killAll ends everything below the shim at once.
func (s *shim) killAll() { killTree(os.Getpid(), s.marker, sweepTime, os.Getpid()) }

// sweep ends what the worker left running: politely first, then not.
func (s *shim) sweep() {
	if s.clear() {
		return
	}
	signalAll(tree(os.Getpid(), s.marker), syscall.SIGTERM, os.Getpid())
	for end := time.Now().Add(leftoverGrace); time.Now().Before(end); {
		if s.clear() {
			return
		}
	}
	s.killAll()
}

// clear reports whether nothing of the worker's tree is left, after a moment for what is just ending.
func (s *shim) clear() bool {
	select {
	case <-s.empty:
		return true
	case <-time.After(treePause):
		return len(tree(os.Getpid(), s.marker)) == 0
	}
}

// reserve takes the disk space for exit_code before the worker can fill the disk.
func (s *shim) reserve() {
	f, err := os.OpenFile(filepath.Join(s.job.Dir, "."+exitFile), os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o600)
	if err != nil {
		return
	}
	_, _ = f.Write(make([]byte, 4096)) // a full disk shows again at the end
	s.spare = f
}

// finish writes exit_code and returns the shim's own exit status.
func (s *shim) finish(exit Exit) int {
	exit.FinishedAt = float64(time.Now().UnixMilli()) / 1000
	exit.MaxRSSMB = int64(s.peakMB)
	s.fence.sign(&exit)
	path := filepath.Join(s.job.Dir, exitFile)
	b, err := json.Marshal(exit)
	if err != nil || s.spare == nil {
		return failed(errors.Join(err, writeJSON(path, exit, true)))
	}
	b = append(b, '\n')
	_, err = s.spare.WriteAt(b, 0)
	return failed(errors.Join(err, s.spare.Truncate(int64(len(b))), s.spare.Sync(), s.spare.Close(), os.Rename(s.spare.Name(), path)))
}

func failed(err error) int {
	if err != nil {
		return 1
	}
	return 0
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// claimant is who claimed a job: the shim that does it, or an agent that found none and will start another.
type claimant struct {
	Pid       int    `json:"pid"` // 0: an agent
	StartTime int64  `json:"start_time"`
	Host      string `json:"host"`
	BootID    string `json:"boot_id"`
}

func claimPath(dir, marker string) string { return filepath.Join(dir, "shim."+marker+".json") }

// claim settles whether the shim with this marker does the job: whoever creates the file first decides, for good.
func claim(dir, marker string, c claimant) (bool, error) {
	f, err := os.OpenFile(claimPath(dir, marker), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	b, err := json.Marshal(c)
	if err == nil {
		_, err = f.Write(b)
	}
	return true, errors.Join(err, f.Close())
}
