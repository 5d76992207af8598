package agent

import "syscall"

// adoptOrphans does nothing: the system has no way to become the parent of orphans. They are found by the marker.
func adoptOrphans() {}

func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// reap waits for the worker alone: the shim starts other programs as well.
func (s *shim) reap() {
	for {
		var status syscall.WaitStatus
		var usage syscall.Rusage
		_, err := syscall.Wait4(s.leader, &status, 0, &usage)
		if err == syscall.EINTR {
			continue
		}
		if err == nil {
			s.status = status
			s.peakMB = float64(usage.Maxrss) / (1 << 20)
		}
		close(s.gone)
		return
	}
}
