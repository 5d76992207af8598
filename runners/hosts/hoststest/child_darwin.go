package hoststest

import "syscall"

// childAttr starts a process group; the system has no way to end its leader with the test program.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
