package slurmtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Cluster is a cluster that runs. Its partitions are short (the default), low (preempted by short, and requeued), lowc
// (preempted and cancelled) and down; a node's name is its only feature, and each has 4 cores and 2 GPUs.
type Cluster struct {
	Dir   string // everything of it lies below
	Nodes []string
	Env   []string // what a command of the scheduler needs to find it

	start   chan func() // runs on the thread whose end ends the daemons
	daemons sync.WaitGroup
	mu      sync.Mutex
	procs   map[string]*os.Process
}

// Missing says what this machine lacks for a cluster; empty: nothing.
func Missing() string {
	for _, program := range []string{"munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol"} {
		if _, err := exec.LookPath(program); err != nil {
			if _, err := os.Stat("/usr/sbin/" + program); err != nil {
				return program + " is not installed; run: scripts/debian-packages.sh slurmctld slurmd slurm-client munge"
			}
		}
	}
	if os.Geteuid() != 0 {
		return "slurmd needs root; run the tests as root, or in a container"
	}
	return ""
}

// Require skips a test on a machine that cannot have a cluster. With CI=true nothing is skipped.
func Require(tb testing.TB) {
	tb.Helper()
	if why := Missing(); why != "" && os.Getenv("CI") == "true" {
		tb.Fatal(why)
	} else if why != "" {
		tb.Skip(why)
	}
}

// Start starts a cluster of so many nodes, in about a second. extra are lines of slurm.conf, which go before ours.
func Start(nodes int, extra string) (c *Cluster, err error) {
	dir, err := os.MkdirTemp("", "slurm-") // short: a socket's path may not be long
	if err != nil {
		return nil, err
	}
	c = &Cluster{Dir: dir, Env: []string{"SLURM_CONF=" + dir + "/slurm.conf"}, start: make(chan func()), procs: map[string]*os.Process{}}
	for i := range nodes {
		c.Nodes = append(c.Nodes, fmt.Sprintf("node%02d", i+1))
	}
	go c.thread()
	defer func() {
		if err != nil {
			err = fmt.Errorf("start the cluster: %w%s", err, c.complaints())
			c.Stop()
		}
	}()
	if err := c.prepare(extra); err != nil {
		return c, err
	}
	if err := c.run("munged", "-F", "--key-file="+dir+"/munge/munge.key", "--socket="+dir+"/munge/m.sock", "--pid-file="+dir+"/pids/munged",
		"--log-file="+dir+"/munge/munged.log", "--seed-file="+dir+"/munge/seed", "--num-threads=2"); err != nil {
		return c, err
	}
	if err := until(func() bool { _, err := os.Stat(dir + "/munge/m.sock"); return err == nil }); err != nil {
		return c, fmt.Errorf("munged: %w", err)
	}
	if err := c.StartController(); err != nil {
		return c, err
	}
	for _, n := range c.Nodes {
		if err := c.StartNode(n); err != nil {
			return c, err
		}
	}
	return c, until(func() bool {
		out, err := c.Command("sinfo", "-h", "-N", "-p", "short", "-t", "idle", "-o", "%N")
		return err == nil && len(strings.Fields(out)) == nodes
	})
}

func (c *Cluster) prepare(extra string) error {
	if err := os.Chmod(c.Dir, 0o755); err != nil { // the scheduler's commands are for all accounts
		return err
	}
	dirs := []string{"munge", "state", "log", "pids", "dev", "spool"}
	for _, n := range c.Nodes {
		dirs = append(dirs, "spool/"+n)
	}
	for _, d := range dirs {
		if err := os.MkdirAll(filepath.Join(c.Dir, d), 0o755); err != nil {
			return err
		}
	}
	key := make([]byte, 128)
	_, _ = rand.Read(key) // never fails
	ports, err := freePorts(len(c.Nodes) + 1)
	if err != nil {
		return err
	}
	conf, err := render(c.Dir, c.Nodes, ports, extra)
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"munge/munge.key": key, "slurm.conf": conf, "cgroup.conf": []byte(cgroupConf),
		"gres.conf": []byte("NodeName=" + strings.Join(c.Nodes, ",") + " Name=gpu File=" + c.Dir + "/dev/gpu[0-1]\n"),
	} {
		mode := os.FileMode(0o644)
		if strings.HasPrefix(name, "munge/") {
			mode = 0o600
		}
		if err := os.WriteFile(filepath.Join(c.Dir, name), content, mode); err != nil {
			return err
		}
	}
	for _, gpu := range []string{"gpu0", "gpu1"} { // GPUs must be devices: these are like /dev/null
		if err := unix.Mknod(filepath.Join(c.Dir, "dev", gpu), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))); err != nil {
			return err
		}
	}
	return nil
}

func freePorts(n int) (ports []int, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() //nolint:errcheck // only held until all are chosen
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// thread starts the daemons. They end with the thread that started them, so that a test that crashes leaves none.
func (c *Cluster) thread() {
	runtime.LockOSThread()
	for do := range c.start {
		do()
	}
}

func (c *Cluster) run(program string, args ...string) error {
	path, err := exec.LookPath(program)
	if err != nil {
		path = "/usr/sbin/" + program
	}
	done := make(chan error)
	c.start <- func() {
		cmd := exec.Command(path, args...)
		cmd.Env = append(os.Environ(), c.Env...)
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
		err := cmd.Start()
		if err == nil {
			name := program
			if program == "slurmd" {
				name = args[2]
			}
			c.mu.Lock()
			c.procs[name] = cmd.Process
			c.mu.Unlock()
			c.daemons.Go(func() { _ = cmd.Wait() }) // killed, mostly
		}
		done <- err
	}
	return <-done
}

// StartController starts the controller. One that was there before had its jobs written down.
func (c *Cluster) StartController() error {
	return c.run("slurmctld", "-D", "-f", c.Dir+"/slurm.conf")
}

// StartNode starts the daemon of a node.
func (c *Cluster) StartNode(node string) error {
	return c.run("slurmd", "-D", "-N", node, "-f", c.Dir+"/slurm.conf")
}

// Signal sends a signal to a daemon: munged, slurmctld, or a node's slurmd by the node's name.
func (c *Cluster) Signal(daemon string, sig syscall.Signal) error {
	c.mu.Lock()
	p := c.procs[daemon]
	c.mu.Unlock()
	if p == nil {
		return fmt.Errorf("there is no %s", daemon)
	}
	return p.Signal(sig)
}

// Command runs a command of the scheduler and returns what it printed.
func (c *Cluster) Command(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), c.Env...)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

// Stop ends all jobs and the cluster.
func (c *Cluster) Stop() {
	c.mu.Lock()
	ctld := c.procs["slurmctld"]
	c.mu.Unlock()
	if ctld != nil {
		if ids, err := c.Command("squeue", "-h", "-o", "%A"); err == nil && ids != "" {
			_, _ = c.Command("scancel", append([]string{"-f", "-s", "KILL"}, strings.Fields(ids)...)...)
			_, _ = c.Command("scancel", strings.Fields(ids)...)
			_ = until(func() bool { out, err := c.Command("squeue", "-h", "-o", "%A"); return err != nil || out == "" })
		}
	}
	c.mu.Lock()
	for _, name := range append(slices.Clone(c.Nodes), "slurmctld", "munged") {
		if p := c.procs[name]; p != nil {
			_ = p.Signal(syscall.SIGCONT)
			_ = p.Kill()
		}
	}
	c.mu.Unlock()
	c.daemons.Wait()
	close(c.start)
	_ = os.RemoveAll(c.Dir)
}

// complaints are the last lines of the daemons' logs that speak of errors.
func (c *Cluster) complaints() string {
	logs, _ := filepath.Glob(c.Dir + "/*/*.log")
	var said []string
	for _, path := range logs {
		b, _ := os.ReadFile(path)
		for line := range strings.Lines(string(b)) {
			if strings.Contains(line, "fatal") || strings.Contains(line, "error") {
				said = append(said, "\n"+filepath.Base(path)+": "+strings.TrimSpace(line))
			}
		}
	}
	return strings.Join(said[max(0, len(said)-20):], "")
}

func until(done func() bool) error {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if done() {
			return nil
		}
	}
	return errors.New("it did not come up within 20 s")
}
