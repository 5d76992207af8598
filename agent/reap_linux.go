package agent

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// adoptOrphans makes this process the parent of whatever its descendants leave behind, so that nothing of a job escapes.
func adoptOrphans() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// childAttr starts a process group, and has the kernel end the worker should the shim be killed.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// reap waits for the worker and for everything it left to us; when there is nothing more to wait for, the tree is empty.
func (s *shim) reap() {
	defer close(s.empty)
	for {
		var status syscall.WaitStatus
		var usage syscall.Rusage
		pid, err := syscall.Wait4(-1, &status, 0, &usage)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return
		}
		if pid == s.leader {
			s.status = status
			s.peakMB = float64(usage.Maxrss) / 1024
			close(s.gone)
		}
	}
}
