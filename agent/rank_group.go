package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"potato/api"
)

const outputWait = 2 * time.Second // for output that a rank's own children may still hold

// rankGroup are the ranks of this node.
type rankGroup struct {
	job     rankJob
	plan    rankPlan
	note    string
	stderr  *lockedWriter
	running map[int]*exec.Cmd // by rank
	ends    chan rankEnd
}

type rankEnd struct {
	rank   int
	status syscall.WaitStatus
	err    error // it could not be started
}

func newRankGroup(job rankJob, plan rankPlan, stderr io.Writer) *rankGroup {
	return &rankGroup{
		job: job, plan: plan, note: job.failureNote(os.Getenv), stderr: &lockedWriter{w: stderr},
		running: map[int]*exec.Cmd{}, ends: make(chan rankEnd),
	}
}

// run starts the ranks and waits for all of them; it returns the status of the first that failed.
func (g *rankGroup) run() int {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer signal.Stop(signals)
	if g.plan.nodes == 1 {
		_ = os.Remove(g.note) // of whoever was here before
	}
	failed, stopping := g.start()
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGUSR2) // only now: see rankAll
	unheard := false                                         // rank 0 was ended before it could say why
	var kill <-chan time.Time
	if stopping {
		kill = time.After(g.job.grace)
	}
	for len(g.running) > 0 {
		select {
		case sig := <-signals:
			stopping = g.forward(sig) || stopping
		case <-kill:
			g.signal(syscall.SIGKILL)
		case end := <-g.ends:
			delete(g.running, end.rank)
			unheard = unheard || end.rank == 0 && end.status.Signaled()
			if exitStatus(end.status) == 0 {
				continue
			}
			if failed == 0 {
				failed = exitStatus(end.status)
			}
			if !stopping {
				stopping, kill = true, time.After(g.job.grace)
				g.explain(end)
				g.signal(syscall.SIGTERM)
			}
		}
	}
	if unheard {
		g.speak()
	}
	return failed
}

// speak reports the failure of another rank in place of rank 0, which has ended.
func (g *rankGroup) speak() {
	var f rankFailure
	if g.job.spec.EventsFile == "" || !readJSON(g.note, &f) {
		return
	}
	e := api.Event{
		V: 1, Event: api.EventError, T: now(), Code: f.Code, Message: fmt.Sprintf("Rank %d failed: %s", f.Rank, f.Message), InstallHint: f.Hint,
	}
	line, err := json.Marshal(e)
	if err == nil {
		// Rank 0 may have left half a line.
		err = appendTo(g.job.spec.EventsFile, slices.Concat([]byte("\n"), line, []byte("\n")))
	}
	if err != nil {
		_, _ = fmt.Fprintf(g.stderr, "potato: %v\n", err)
	}
}

func appendTo(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}

// start starts the ranks of this node, and reports when one of them cannot be.
func (g *rankGroup) start() (failed int, stopping bool) {
	// The kernel ends the ranks when the thread that started them does.
	runtime.LockOSThread()
	for local := range g.plan.local {
		rank := g.plan.node*g.plan.local + local
		cmd := g.command(rank, local)
		if err := cmd.Start(); err != nil {
			g.explain(rankEnd{rank: rank, err: err})
			g.signal(syscall.SIGTERM)
			return 126, true
		}
		g.running[rank] = cmd
		go func() {
			_ = cmd.Wait() // its status is in ProcessState, whatever became of its output
			if out, ok := cmd.Stderr.(*prefixer); ok {
				_ = out.flush()
			}
			status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
			g.ends <- rankEnd{rank: rank, status: status}
		}()
	}
	return 0, false
}

func (g *rankGroup) command(rank, local int) *exec.Cmd {
	cmd := exec.Command(g.job.argv[0], g.job.argv[1:]...)
	n := strconv.Itoa
	cmd.Env = setEnv(os.Environ(),
		"RANK="+n(rank), "LOCAL_RANK="+n(local), "WORLD_SIZE="+n(g.plan.world()), "LOCAL_WORLD_SIZE="+n(g.plan.local),
		"NODE_RANK="+n(g.plan.node), "MASTER_ADDR="+g.plan.addr, "MASTER_PORT="+g.plan.port,
		"POTATO_RANK="+n(rank), "POTATO_RANK_FAILED="+g.note)
	cmd.SysProcAttr = childAttr()
	cmd.WaitDelay = outputWait
	if rank == 0 {
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	} else {
		cmd.Stderr = &prefixer{w: g.stderr, prefix: fmt.Sprintf("[rank %d] ", rank)}
	}
	return cmd
}

// forward passes a signal on, and reports whether it ends the ranks.
func (g *rankGroup) forward(sig os.Signal) bool {
	switch sig {
	case syscall.SIGTERM, syscall.SIGINT:
		g.signal(syscall.SIGTERM)
		return true
	case syscall.SIGUSR1, syscall.SIGUSR2:
		for _, cmd := range g.running {
			_ = cmd.Process.Signal(sig) // to the worker alone: its children may not know it
		}
	}
	return false
}

// signal goes to the process group of each rank.
func (g *rankGroup) signal(sig syscall.Signal) {
	for _, cmd := range g.running {
		_ = syscall.Kill(-cmd.Process.Pid, sig) // it may have ended by itself
	}
}

// explain leaves for rank 0 why another rank has failed, if it has not said so itself.
func (g *rankGroup) explain(end rankEnd) {
	f := rankFailure{Rank: end.rank, Code: "worker_failed", Hint: fmt.Sprintf("lines of stderr.log that begin with [rank %d] have the details", end.rank)}
	switch {
	case end.err != nil:
		f.Code, f.Message = "start_failed", fmt.Sprintf("It could not be started on %s: %v", hostname(), end.err)
	case end.status.Signaled():
		f.Code, f.Message = "killed", fmt.Sprintf("It was killed on %s (%v)", hostname(), end.status.Signal())
	default:
		f.Message = fmt.Sprintf("It ended on %s with status %d", hostname(), end.status.ExitStatus())
	}
	_, _ = fmt.Fprintf(g.stderr, "potato: rank %d failed, all ranks are ended: %s\n", f.Rank, f.Message)
	if end.rank > 0 {
		if err := f.note(g.note); err != nil {
			_, _ = fmt.Fprintf(g.stderr, "potato: %v\n", err)
		}
	}
}

// exitStatus is a status as shells give it.
func exitStatus(s syscall.WaitStatus) int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}
