package agent

import (
	"bytes"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// proc is one process as the system lists it.
type proc struct {
	pid, parent int
	start       int64 // microseconds since 1970; with the pid it names the process for good
	dead        bool  // a zombie
	rssMB       float64
}

const zombie = 5 // SZOMB of sys/proc.h

// bootID changes with every boot: pids and start times of another boot mean nothing.
var bootID = sync.OnceValue(func() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return id
})

func toProc(k unix.KinfoProc) proc {
	return proc{
		pid: int(k.Proc.P_pid), parent: int(k.Eproc.Ppid), dead: k.Proc.P_stat == zombie,
		start: k.Proc.P_starttime.Sec*1e6 + int64(k.Proc.P_starttime.Usec),
	}
}

func processByPid(pid int) (proc, bool) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(k.Proc.P_pid) != pid {
		return proc{}, false
	}
	return toProc(*k), true
}

func processes() []proc {
	list, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil
	}
	var all []proc
	for _, k := range list {
		all = append(all, toProc(k))
	}
	return all
}

// carries reports whether the process was started with NAME=value in its environment. The system hides the environment
// of its own programs; those are found as descendants.
func carries(pid int, variable string) bool {
	b, err := unix.SysctlRaw("kern.procargs2", pid)
	return err == nil && bytes.Contains(b, []byte("\x00"+variable+"\x00"))
}

func ownMB(p proc) float64 { return p.rssMB }

func oomKills() int64 { return 0 }

// measured returns the processes with their resident sizes, which only ps tells without cgo.
func measured(tree []proc) []proc {
	var pids []string
	for _, p := range tree {
		pids = append(pids, strconv.Itoa(p.pid))
	}
	if len(pids) == 0 {
		return nil
	}
	out, _ := exec.Command("/bin/ps", "-o", "pid=,rss=", "-p", strings.Join(pids, ",")).Output()
	size := map[int]float64{}
	for line := range strings.Lines(string(out)) {
		var pid int
		var kb float64
		if n, _ := fmt.Sscan(line, &pid, &kb); n == 2 {
			size[pid] = kb / 1024
		}
	}
	for i := range tree {
		tree[i].rssMB = size[tree[i].pid]
	}
	return tree
}
