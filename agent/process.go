package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"

	"potato/api"
	"potato/trainers"
)

// Process launches workers as processes of this machine, each under a shim.
type Process struct{}

const (
	startWait = 10 * time.Second       // how long a shim may take to read what it is to start
	killWait  = 2 * time.Second        // how long a kill may take
	lookAgain = 20 * time.Millisecond  // while waiting for a shim's end
	claimWait = 500 * time.Millisecond // how long a claim may be half written
	leaveWait = 5 * time.Second        // how long a shim may take to leave after its last word
)

// Launch implements Launcher.
func (Process) Launch(ctx context.Context, l Launch) (api.Handle, error) {
	h := api.Handle{Backend: l.Backend, Dir: l.Dir, Host: hostname(), BootID: bootID()}
	if w := l.Warm.take(l.warmSpec()); w != nil {
		h.Marker, h.Pid, h.StartTime = w.marker, w.pid, w.start
		if err := l.Save(h); err != nil {
			return h, errors.Join(err, w.close())
		}
		return h, w.tell(l.job(), true)
	}
	python, err := trainers.FindPython(l.Python, l.Env)
	if err != nil {
		return h, err
	}
	h.Marker = rand.Text()
	if err := l.Save(h); err != nil {
		return h, err
	}
	start := shimStart{
		Argv: []string{python, l.WorkerPath, "--spec", l.Spec}, Env: ThreadEnv(l.Env, l.NumThreads), Marker: h.Marker, Job: l.job(),
	}
	shim, err := startShim(ctx, l.Shim, h.Marker, l.Hold...)
	if err != nil {
		return h, err
	}
	h.Pid, h.StartTime = shim.pid, shim.start
	if err := l.Save(h); err != nil {
		return h, errors.Join(err, shim.close())
	}
	return h, shim.tell(start, true)
}

func (l Launch) job() shimJob {
	return shimJob{
		Dir: l.Dir, Spec: l.Spec, LeaseFile: l.LeaseFile, LeaseTimeoutS: l.LeaseTimeout.Seconds(), GraceS: l.Grace.Seconds(), MaxRAMMB: l.MaxRAMMB,
	}
}

func (l Launch) warmSpec() WarmSpec {
	return WarmSpec{Trainer: l.Trainer, Python: l.Python, WorkerPath: l.WorkerPath, Env: l.Env, NumThreads: l.NumThreads, Shim: l.Shim}
}

// State implements Launcher.
func (p Process) State(_ context.Context, h api.Handle) (State, error) {
	if exit, ok := readExit(h.Dir); ok {
		awaitEnd(h)
		return State{Phase: StateEnded, Exit: exit}, nil
	}
	sameBoot := h.BootID == bootID()
	if !sameBoot && h.Host != hostname() {
		// Another machine on the same storage started it. Only exit_code can tell from here.
		return State{Phase: StateRunning}, nil
	}
	if h.Pid > 0 && sameBoot && alive(h.Pid, h.StartTime) {
		return State{Phase: StateRunning}, nil
	}
	reapEnded(h)
	c, claimed, err := claimOf(h)
	if errors.Is(err, fs.ErrNotExist) { // someone has removed the job directory
		return State{Phase: StateLost}, nil
	}
	if err != nil {
		return State{}, err
	}
	if !claimed {
		return State{Phase: StateUnstarted}, nil
	}
	if h.Pid == 0 && sameBoot && alive(c.Pid, c.StartTime) {
		return State{Phase: StateRunning}, nil
	}
	if exit, ok := readExit(h.Dir); ok { // it ended between the two looks
		return State{Phase: StateEnded, Exit: exit}, nil
	}
	return State{Phase: StateLost}, nil
}

// claimOf reads who claimed the job, and claims it for the agent when nobody did, so that a shim that was started and
// never heard of will not start a worker any more.
func claimOf(h api.Handle) (claimant, bool, error) {
	mine, err := claim(h.Dir, h.Marker, claimant{Host: hostname(), BootID: bootID()})
	if err != nil || mine {
		return claimant{}, false, err
	}
	for end := time.Now().Add(claimWait); ; time.Sleep(lookAgain) {
		var c claimant
		if readJSON(claimPath(h.Dir, h.Marker), &c) {
			return c, c.Pid > 0, nil
		}
		if time.Now().After(end) { // whoever began to write it has died over it
			return claimant{}, true, nil
		}
	}
}

func readExit(dir string) (Exit, bool) {
	var e Exit
	ok := readJSON(filepath.Join(dir, exitFile), &e)
	return e, ok
}

// shimOf fills in what a handle lacks when its agent died right after it had started the shim.
func shimOf(h api.Handle) (pid int, start int64) {
	var c claimant
	if h.Pid == 0 && readJSON(claimPath(h.Dir, h.Marker), &c) && c.BootID == h.BootID {
		return c.Pid, c.StartTime
	}
	return h.Pid, h.StartTime
}

// Signal implements Launcher.
func (p Process) Signal(_ context.Context, h api.Handle, sig Signal) error {
	if h.BootID != bootID() {
		if h.Host != hostname() {
			return api.Unavailablef("killed", "the worker may still run on %s", h.Host)
		}
		return nil
	}
	pid, start := shimOf(h)
	shim := pid > 0 && alive(pid, start)
	if sig == SignalTerm {
		if shim {
			return ignoreGone(syscall.Kill(pid, syscall.SIGTERM))
		}
		signalAll(tree(0, h.Marker), syscall.SIGTERM)
		return nil
	}
	if shim {
		// The shim ends with its worker and says how it went; TERM is for one that has not started it yet.
		_ = syscall.Kill(pid, syscall.SIGTERM)
		for end := time.Now().Add(killWait); alive(pid, start) && time.Now().Before(end); time.Sleep(lookAgain) {
			killTree(0, h.Marker, 0, pid)
		}
	}
	if !killTree(0, h.Marker, killWait) {
		return api.Unavailablef("killed", "the worker's processes on this machine do not end")
	}
	awaitEnd(h)
	return nil
}

func ignoreGone(err error) error {
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}
