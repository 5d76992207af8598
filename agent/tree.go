package agent

import (
	"slices"
	"syscall"
	"time"
)

// treePause is how long a look at the process table is apart from the next while processes are ended.
const treePause = 10 * time.Millisecond

// tree lists the living processes of a job: the descendants of root, and, with a marker, all that carry it and their
// descendants. A process that left its session and its parent is among them.
func tree(root int, marker string) []proc {
	all := processes()
	in := map[int]bool{}
	if root > 0 {
		in[root] = true
	}
	if marker != "" {
		for _, p := range all {
			if !p.dead && carries(p.pid, markerVar+"="+marker) {
				in[p.pid] = true
			}
		}
	}
	for grew := len(in) > 0; grew; {
		grew = false
		for _, p := range all {
			if in[p.parent] && !in[p.pid] {
				in[p.pid], grew = true, true
			}
		}
	}
	return slices.DeleteFunc(all, func(p proc) bool { return !in[p.pid] || p.dead || p.pid == root })
}

// alive reports whether the process that had this pid and start time is still there.
func alive(pid int, start int64) bool {
	p, ok := processByPid(pid)
	return ok && !p.dead && p.start == start
}

// signalAll sends sig to every process of the list but those excepted.
func signalAll(list []proc, sig syscall.Signal, except ...int) {
	for _, p := range list {
		if !slices.Contains(except, p.pid) {
			_ = syscall.Kill(p.pid, sig) // it may have ended by itself
		}
	}
}

// killTree ends every process of the job but those excepted, looking again until none is left: a process may fork while
// the list is read. It reports whether that was so within the time.
func killTree(root int, marker string, within time.Duration, except ...int) bool {
	for end := time.Now().Add(within); ; time.Sleep(treePause) {
		left := slices.DeleteFunc(tree(root, marker), func(p proc) bool { return slices.Contains(except, p.pid) })
		if len(left) == 0 {
			return true
		}
		signalAll(left, syscall.SIGKILL)
		if time.Now().After(end) {
			return false
		}
	}
}
