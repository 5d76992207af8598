package runners

import "syscall"

// childAttr starts a process group, and has the kernel end its leader should this server be killed.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
