package hosts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// program is the transport by the installed ssh: one master connection of our own, or the account's live one, and a client
// of it for every shell and forward.
type program struct {
	p       place
	dir     string // of the control socket and of forwarded ones; short, as sockets' paths must be
	control string // our own master's socket; empty: the account's live master is used
	master  *exec.Cmd
	said    *tail
	gone    chan struct{}
	sockets atomic.Int32
}

// hasMaster reports whether the account holds a connection to the host open, after a login with a second factor perhaps.
func (p place) hasMaster() bool {
	ctx, cancel := context.WithTimeout(context.Background(), settingsTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.o.Program, append(append([]string{"-O", "check"}, p.o.flags(p.target)...), "--", p.target.Host)...)
	return cmd.Run() == nil
}

func dialProgram(ctx context.Context, p place) (_ *program, err error) {
	if !p.o.hasProgram() {
		return nil, unreachable(p.target.Host, "there is no ssh program on this server", nil).
			WithHint("install the ssh client (openssh-client) here, or set `transport: native`")
	}
	m := &program{p: p, said: &tail{}, gone: make(chan struct{})}
	if m.dir, err = os.MkdirTemp("/tmp", "potato-ssh-"); err != nil {
		return nil, fmt.Errorf("make a folder for ssh's control socket: %w", err)
	}
	if p.settings.set("controlpath") != "" && p.hasMaster() {
		return m, nil
	}
	m.control = filepath.Join(m.dir, "ctl")
	m.master = exec.Command(p.o.Program, m.args("-M", "-N", "-o", "ControlPersist=no")...)
	m.master.Stderr = m.said
	m.master.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // without a terminal nothing can ask
	m.master.WaitDelay = time.Second
	if err := m.master.Start(); err != nil {
		return nil, errors.Join(unreachable(p.target.Host, "the ssh program cannot be started", err), os.RemoveAll(m.dir))
	}
	go func() {
		_ = m.master.Wait()
		close(m.gone)
	}()
	if err := m.ready(ctx); err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

// args are those of every call of the program.
func (m *program) args(own ...string) []string {
	seconds := func(d time.Duration) string { return itoa(max(1, int(d.Seconds()))) }
	args := []string{
		"-o", "BatchMode=yes", "-o", "ConnectTimeout=" + seconds(m.p.connectTimeout()), "-o", "ServerAliveInterval=" + seconds(m.p.o.KeepAlive),
		"-o", "ServerAliveCountMax=1", "-o", "ForwardX11=no", "-o", "ForwardAgent=no", "-o", "ClearAllForwardings=yes",
		"-o", "StreamLocalBindMask=0177", "-o", "LogLevel=INFO", "-o", "EscapeChar=none",
	}
	if m.control != "" {
		args = append(args, "-S", m.control)
	}
	return append(append(append(args, own...), m.p.o.flags(m.p.target)...), "--", m.p.target.Host)
}

// ready waits until the master has logged in.
func (m *program) ready(ctx context.Context) error {
	limit := time.NewTimer(m.p.connectTimeout() + 2*time.Second)
	defer limit.Stop()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		if _, err := os.Stat(m.control); err == nil {
			return nil
		}
		select {
		case <-look.C:
		case <-m.gone:
			return m.p.programError(m.said.String(), errors.New(printable(m.said.String())))
		case <-limit.C:
			return timedOut(m.p.target.Host, m.p.addr(), errors.New(printable(m.said.String())))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (m *program) shell(ctx context.Context) (*shell, error) {
	if m.isGone() {
		return nil, errLost
	}
	cmd := exec.Command(m.p.o.Program, m.client("-T")...)
	cmd.Args = append(cmd.Args, shellCommand)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = time.Second
	out, in := io.Pipe()
	sh := &shell{stdout: out, stderr: &tail{}, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = in, sh.stderr
	var err error
	if sh.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() { // ends with the program, which close ends
		_ = cmd.Wait()
		_ = in.Close()
		close(sh.ended)
	}()
	sh.close = sync.OnceFunc(func() {
		_ = out.CloseWithError(errLost)
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) // its master tells the other side
		select {
		case <-sh.ended:
		case <-time.After(time.Second):
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			<-sh.ended
		}
	})
	return sh, nil
}

// client are the arguments of a client of the master. It must not connect by itself when the master is gone.
func (m *program) client(own ...string) []string {
	if m.control != "" {
		own = append([]string{"-o", "ControlMaster=no", "-o", "ProxyCommand=false"}, own...)
	}
	return m.args(own...)
}

func (m *program) listen(ctx context.Context, path string) (net.Listener, error) {
	if m.isGone() {
		return nil, errLost
	}
	local := filepath.Join(m.dir, fmt.Sprintf("s%d", m.sockets.Add(1)))
	l, err := net.Listen("unix", local)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(local, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	forward := []string{"-O", "forward", "-R", path + ":" + local}
	args := []string{}
	if m.control != "" {
		args = append(args, "-S", m.control)
	}
	args = append(append(append(args, forward...), m.p.o.flags(m.p.target)...), "--", m.p.target.Host)
	ctx, cancel := context.WithTimeout(ctx, m.p.connectTimeout())
	defer cancel()
	said := &tail{}
	cmd := exec.CommandContext(ctx, m.p.o.Program, args...)
	cmd.Stderr = said
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		return nil, errors.Join(fmt.Errorf("forward a socket: %s: %w", printable(said.String()), err), l.Close())
	}
	return l, nil
}

func (m *program) done() <-chan struct{} {
	if m.master == nil {
		return nil
	}
	return m.gone
}

func (m *program) isGone() bool {
	select {
	case <-m.gone:
		return true
	default:
		return false
	}
}

func (m *program) close() error {
	if m.master != nil {
		_ = syscall.Kill(-m.master.Process.Pid, syscall.SIGTERM)
		kill := time.AfterFunc(2*time.Second, func() { _ = syscall.Kill(-m.master.Process.Pid, syscall.SIGKILL) })
		<-m.gone
		kill.Stop()
	}
	return os.RemoveAll(m.dir)
}
