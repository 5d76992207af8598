package agent

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"sync"
)

// proc is one process as the system lists it.
type proc struct {
	pid, parent int
	start       int64 // clock ticks since boot; with the pid it names the process for good
	dead        bool  // a zombie
	rssMB       float64
}

var pageMB = float64(os.Getpagesize()) / (1 << 20)

// bootID changes with every boot: pids and start times of another boot mean nothing.
var bootID = sync.OnceValue(func() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
})

func processByPid(pid int) (proc, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return proc{}, false
	}
	// The name, in parentheses, may hold anything; the fields after its end are numbered from 3.
	end := bytes.LastIndexByte(b, ')')
	f := strings.Fields(string(b[end+1:]))
	if end < 0 || len(f) < 22 {
		return proc{}, false
	}
	p := proc{pid: pid, dead: f[0] == "Z" || f[0] == "X"}
	p.parent, _ = strconv.Atoi(f[1])
	p.start, _ = strconv.ParseInt(f[19], 10, 64)
	pages, _ := strconv.ParseFloat(f[21], 64)
	p.rssMB = pages * pageMB
	return p, true
}

func processes() []proc {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close() //nolint:errcheck // only read from
	names, _ := dir.Readdirnames(-1)
	var all []proc
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if p, ok := processByPid(pid); ok {
				all = append(all, p)
			}
		}
	}
	return all
}

// carries reports whether the process was started with NAME=value in its environment; it is false for processes of
// other users, which are never ours.
func carries(pid int, variable string) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	return bytes.HasPrefix(b, []byte(variable+"\x00")) || bytes.Contains(b, []byte("\x00"+variable+"\x00"))
}

// ownMB is the memory that the process itself takes, as far as the kernel tells: pages shared with others are divided
// among them, and pages of mapped files, which can be dropped, do not count. It is too slow to ask all the time.
func ownMB(p proc) float64 {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/smaps_rollup")
	if err != nil {
		return p.rssMB
	}
	kb := map[string]float64{}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 3 {
			kb[f[0]], _ = strconv.ParseFloat(f[1], 64)
		}
	}
	if anon, ok := kb["Pss_Anon:"]; ok {
		return (anon + kb["Pss_Shmem:"]) / 1024
	}
	if pss, ok := kb["Pss:"]; ok {
		return pss / 1024
	}
	return p.rssMB
}

// oomKills counts what the kernel's out-of-memory killer has ended since boot, in cgroups and out of them.
func oomKills() int64 {
	b, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
			return n
		}
	}
	return 0
}

// measured returns the processes with their resident sizes; on Linux a listing has them already.
func measured(tree []proc) []proc { return tree }
