package hoststest

import "syscall"

// childAttr starts a process group, and has the kernel end its leader should the test program be killed.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
