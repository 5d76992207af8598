package hosts

import (
	"context"
	"errors"
	"io"
	"net"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
)

// native is the transport within this process.
type native struct {
	client *ssh.Client
	below  []func() error // what carries the connection, the last first: jump hosts, a proxy command
	gone   chan struct{}
	over   sync.WaitGroup
}

const mostHops = 8

// dialNative connects, through jump hosts or a proxy command when the configuration says so.
func dialNative(ctx context.Context, p place) (*native, error) {
	return dialThrough(ctx, p, mostHops)
}

func dialThrough(ctx context.Context, p place, hops int) (_ *native, err error) {
	n := &native{gone: make(chan struct{})}
	defer func() {
		if err != nil {
			n.closeBelow()
		}
	}()
	conn, err := n.reach(ctx, p, hops)
	if err != nil {
		return nil, err
	}
	if n.client, err = login(ctx, p, conn); err != nil {
		return nil, err
	}
	n.over.Go(func() {
		_ = n.client.Wait()
		close(n.gone)
	})
	n.over.Go(func() { n.keepAlive(p.o.KeepAlive) })
	return n, nil
}

// reach opens the bytes' way to the host.
func (n *native) reach(ctx context.Context, p place, hops int) (net.Conn, error) {
	if command := p.settings.set("proxycommand"); command != "" {
		conn, err := proxyCommand(p, command)
		if err == nil {
			n.below = append(n.below, conn.Close)
		}
		return conn, err
	}
	jumps, err := p.jumps()
	if err != nil {
		return nil, err
	}
	if len(jumps) == 0 {
		return dialTCP(ctx, p)
	}
	if hops <= len(jumps) {
		return nil, unreachable(p.target.Host, "its ProxyJump leads through more than "+itoa(mostHops)+" hosts", nil)
	}
	var last *native
	for i, t := range jumps {
		hop, err := placeOf(ctx, t, p.o)
		if err != nil {
			return nil, jumpFailed(p, t, err)
		}
		if i == 0 {
			last, err = dialThrough(ctx, hop, hops-len(jumps))
		} else {
			last, err = last.through(ctx, hop)
		}
		if err != nil {
			return nil, jumpFailed(p, t, err)
		}
		n.below = append(n.below, last.close)
	}
	return last.dial(ctx, p)
}

// through logs in to the next hop.
func (n *native) through(ctx context.Context, p place) (*native, error) {
	conn, err := n.dial(ctx, p)
	if err != nil {
		return nil, err
	}
	next := &native{gone: make(chan struct{})}
	if next.client, err = login(ctx, p, conn); err != nil {
		return nil, err
	}
	next.over.Go(func() {
		_ = next.client.Wait()
		close(next.gone)
	})
	return next, nil
}

func (n *native) dial(ctx context.Context, p place) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, p.connectTimeout())
	defer cancel()
	conn, err := n.client.DialContext(ctx, "tcp", p.addr())
	if err != nil {
		return nil, dialError(ctx, p, err)
	}
	return conn, nil
}

func dialTCP(ctx context.Context, p place) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, p.connectTimeout())
	defer cancel()
	d := net.Dialer{KeepAlive: 15 * time.Second}
	conn, err := d.DialContext(ctx, "tcp", p.addr())
	if err != nil {
		return nil, dialError(ctx, p, err)
	}
	return conn, nil
}

// connectTimeout is the configuration's own, when it is shorter than ours.
func (p place) connectTimeout() time.Duration {
	if s, err := strconv.Atoi(p.settings.set("connecttimeout")); err == nil && s > 0 {
		return min(time.Duration(s)*time.Second, p.o.ConnectTimeout)
	}
	return p.o.ConnectTimeout
}

// login does the handshake and proves who we are. A side that says nothing must not hold us, so the connection is closed
// when the time is over: a channel through a jump host knows no deadline.
func login(ctx context.Context, p place, conn net.Conn) (*ssh.Client, error) {
	keys, err := findKeys(p)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	defer keys.close()
	known, err := openKnownHosts(p)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	ctx, cancel := context.WithTimeout(ctx, p.connectTimeout())
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	c, channels, requests, err := ssh.NewClientConn(conn, p.keyName(), &ssh.ClientConfig{
		User: p.user(), Auth: []ssh.AuthMethod{ssh.PublicKeysCallback(keys.signers)},
		HostKeyCallback: known.check, HostKeyAlgorithms: known.algorithms(), ClientVersion: "SSH-2.0-potato",
	})
	if !stop() && err == nil { // closed at the last moment
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		return nil, loginError(ctx, p, keys, err)
	}
	return ssh.NewClient(c, channels, requests), nil
}

// keepAlive closes a connection whose other side gives no sign of life.
func (n *native) keepAlive(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-n.gone:
			return
		case <-tick.C:
		}
		// OpenSSH answers "failure", which is an answer.
		limit := time.AfterFunc(every, func() { _ = n.client.Close() })
		_, _, err := n.client.SendRequest("keepalive@openssh.com", true, nil)
		limit.Stop()
		if err != nil {
			_ = n.client.Close()
		}
	}
}

func (n *native) shell(ctx context.Context) (*shell, error) {
	// A side that has stalled answers nothing; ctx bounds the wait by closing what waits.
	type opened struct {
		session *ssh.Session
		err     error
	}
	got := make(chan opened, 1)
	n.over.Go(func() {
		s, err := n.client.NewSession()
		got <- opened{s, err}
	})
	select {
	case o := <-got:
		if o.err != nil {
			return nil, o.err
		}
		return startShell(o.session)
	case <-ctx.Done():
		n.over.Go(func() {
			if o := <-got; o.err == nil {
				_ = o.session.Close()
			}
		})
		return nil, ctx.Err()
	}
}

func startShell(s *ssh.Session) (*shell, error) {
	// A session does not end before all of its processes do, so its output is read through a pipe that can be closed.
	out, in := io.Pipe()
	sh := &shell{stdout: out, stderr: &tail{}, ended: make(chan struct{})}
	s.Stdout, s.Stderr = in, sh.stderr
	sh.close = sync.OnceFunc(func() {
		_ = out.CloseWithError(errLost)
		if !sh.stays {
			_ = s.Signal(ssh.SIGKILL)
		}
		_ = s.Close()
	})
	var err error
	if sh.stdin, err = s.StdinPipe(); err == nil {
		err = s.Start(shellCommand)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	go func() { // ends with the connection at the latest
		_ = s.Wait()
		_ = in.Close()
		close(sh.ended)
	}()
	return sh, nil
}

// shellCommand is the one line that every login shell understands.
const shellCommand = "exec /bin/sh -s"

func (n *native) listen(ctx context.Context, path string) (net.Listener, error) {
	stop := context.AfterFunc(ctx, func() { _ = n.client.Close() })
	defer stop()
	return n.client.ListenUnix(path)
}

func (n *native) done() <-chan struct{} { return n.gone }

func (n *native) close() error {
	_ = n.client.Close()
	n.over.Wait()
	n.closeBelow()
	return nil
}

func (n *native) closeBelow() {
	for i := len(n.below) - 1; i >= 0; i-- {
		_ = n.below[i]()
	}
	n.below = nil
}

// proxyCommand runs the configuration's command and speaks through its standard input and output.
func proxyCommand(p place, command string) (net.Conn, error) {
	cmd := exec.Command("/bin/sh", "-c", "exec "+p.expand(command))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // without a terminal nothing can ask
	said := &tail{}
	cmd.Stderr = said
	cmd.WaitDelay = time.Second
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, unreachable(p.target.Host, "its ProxyCommand cannot be started", err)
	}
	c := &pipeConn{cmd: cmd, in: in, out: out, said: said}
	return c, nil
}
