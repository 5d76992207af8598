package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"potato/api"
)

// startedShim is a shim that this process has started and that listens on its stdin.
type startedShim struct {
	pid    int
	start  int64
	marker string
	stdin  *os.File
}

// ours are the shims that this process has started and not reaped. It is a property of the process and of no value in it,
// hence global: a shim whose Work ended a moment too early is reaped when the next one starts.
var ours = struct {
	sync.Mutex
	shims map[int]int64 // pid: start time
}{shims: map[int]int64{}}

// startShim starts a shim in a session of its own. It does nothing until it is told to.
func startShim(ctx context.Context, argv []string, marker string, hold ...*os.File) (*startedShim, error) {
	if len(argv) == 0 {
		return nil, errors.New("start worker: no shim is given")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	cmd := exec.Command(argv[0], argv[1:]...) // not bound to ctx: the work outlives us
	cmd.Stdin, cmd.ExtraFiles = out, hold     // the worker gets none of them
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), markerVar + "=" + marker}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_ = out.Close()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start worker: %w", err), in.Close())
	}
	p, _ := processByPid(cmd.Process.Pid) // listed even when it has ended, until we reap it
	s := &startedShim{pid: cmd.Process.Pid, start: p.start, marker: marker, stdin: in}
	_ = cmd.Process.Release() // reaped by State, which works from the handle
	reapOthers(s)
	return s, nil
}

// reapOthers reaps what State did not wait for, and remembers s.
func reapOthers(s *startedShim) {
	ours.Lock()
	defer ours.Unlock()
	for pid, start := range ours.shims {
		if reapEnded(api.Handle{Pid: pid, StartTime: start, BootID: bootID()}) {
			delete(ours.shims, pid)
		}
	}
	ours.shims[s.pid] = s.start
}

// tell writes one line to the shim, and with last lets go of it: from then on it lives by itself.
func (s *startedShim) tell(v any, last bool) error {
	line, err := json.Marshal(v)
	if err != nil {
		return errors.Join(fmt.Errorf("start worker: %w", err), s.close())
	}
	_ = s.stdin.SetWriteDeadline(time.Now().Add(startWait))
	_, err = s.stdin.Write(append(line, '\n'))
	if err != nil && !errors.Is(err, syscall.EPIPE) { // EPIPE: it is dead, and State will say so
		return errors.Join(fmt.Errorf("start worker: %w", err), s.close())
	}
	if last {
		return s.stdin.Close()
	}
	return nil
}

// close ends a shim that got no job, with all it started. The end of its input tells it to leave.
func (s *startedShim) close() error {
	err := s.stdin.Close()
	for end := time.Now().Add(killWait); alive(s.pid, s.start) && time.Now().Before(end); {
		time.Sleep(lookAgain)
	}
	if !killTree(0, s.marker, killWait) {
		err = errors.Join(err, fmt.Errorf("process %d does not end", s.pid))
	}
	awaitEnd(api.Handle{Pid: s.pid, StartTime: s.start, BootID: bootID()})
	return err
}

// awaitEnd gives a shim that has said its last word, or was killed, the moment it needs to leave.
func awaitEnd(h api.Handle) {
	for end := time.Now().Add(leaveWait); !reapEnded(h) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}

// reapEnded reports whether the shim has left. When it is a child of this process it takes its exit status, lest it stays
// in the process table.
func reapEnded(h api.Handle) bool {
	p, ok := processByPid(h.Pid)
	if h.BootID != bootID() || !ok || p.start != h.StartTime {
		return true
	}
	if p.parent != os.Getpid() {
		return p.dead
	}
	return reap(h.Pid)
}

// reap reports whether there is nothing to wait for any more. A process may look dead before its last thread is.
func reap(pid int) bool {
	for {
		got, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		if err != syscall.EINTR {
			return err != nil || got == pid
		}
	}
}
