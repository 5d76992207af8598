package hosts

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"time"

	"potato/api"
)

// transport is how commands and connections get to a host. Two ship: native and the ssh program.
type transport interface {
	// shell starts /bin/sh there, which reads its script from standard input.
	shell(ctx context.Context) (*shell, error)
	// listen makes a unix socket there, mode 0600, whose connections arrive here. Closing the listener leaves the file.
	listen(ctx context.Context, path string) (net.Listener, error)
	// done is closed when the connection is lost; nil when nobody watches it.
	done() <-chan struct{}
	close() error
}

// shell is a running /bin/sh on the host.
type shell struct {
	stdin  io.WriteCloser
	stdout io.Reader
	stderr *tail
	ended  chan struct{} // closed when the session is over and all it said is read
	close  func()        // ends the session and, unless it stays, what runs in it; may be called twice
	stays  bool
}

// rest waits a moment for the end of a session that has nothing more to say.
func (s *shell) rest(ctx context.Context) {
	limit := time.NewTimer(time.Second)
	defer limit.Stop()
	select {
	case <-s.ended:
	case <-limit.C:
	case <-ctx.Done():
	}
}

// errLost says that a connection ended under what was using it.
var errLost = errors.New("the connection is lost")

// Conn is a connection to a host. It is safe for concurrent use.
type Conn struct {
	transport transport
	place     place
	name      string
}

// Dial connects and logs in. A failure is an *api.Error with one of the codes ssh_auth, ssh_unreachable, host_key_unknown
// and host_key_changed.
func Dial(ctx context.Context, t Target, o Options) (*Conn, error) {
	o = o.withDefaults()
	p, err := placeOf(ctx, t, o)
	if err != nil {
		return nil, err
	}
	for pause := firstPause; ; pause *= 2 {
		c, err := dial(ctx, p)
		if err == nil || !errors.Is(err, errDropped) || pause > lastPause {
			return c, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(pause/2 + rand.N(pause)): // whoever was turned away at the same moment does not come again at the same one
		}
	}
}

// A busy ssh server turns new connections away by chance (MaxStartups): they are tried four times, within some seconds.
const (
	firstPause = 300 * time.Millisecond
	lastPause  = 1200 * time.Millisecond
)

func dial(ctx context.Context, p place) (c *Conn, err error) {
	c = &Conn{place: p}
	switch p.transport() {
	case TransportOpenSSH:
		c.name = TransportOpenSSH
		c.transport, err = dialProgram(ctx, p)
	default:
		c.name = TransportNative
		c.transport, err = dialNative(ctx, p)
	}
	if err != nil {
		if ctx.Err() != nil && !isOurs(err) {
			return nil, ctx.Err()
		}
		return nil, err
	}
	return c, nil
}

func isOurs(err error) bool {
	var e *api.Error
	return errors.As(err, &e)
}

// Transport is the transport in use: native or openssh.
func (c *Conn) Transport() string { return c.name }

// Login is the account and the address that the configuration led to, as user@host:port.
func (c *Conn) Login() string { return c.place.user() + "@" + c.place.addr() }

// Listen makes a unix socket there, mode 0600, whose connections arrive at the listener. The file stays when the listener is
// closed. An error with code forward_refused means that the host allows no such forwarding.
func (c *Conn) Listen(ctx context.Context, path string) (net.Listener, error) {
	l, err := c.transport.listen(ctx, path)
	if err == nil {
		return l, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if c.lost() {
		return nil, c.broken(err)
	}
	return nil, api.Unavailablef("forward_refused", "%s does not forward unix sockets", c.place.target.Host).WithCause(err)
}

// Done is closed when the connection is lost or closed; nil when it cannot be watched.
func (c *Conn) Done() <-chan struct{} { return c.transport.done() }

// Close ends the connection and all that runs through it.
func (c *Conn) Close() error { return c.transport.close() }

func (c *Conn) lost() bool {
	select {
	case <-c.transport.done(): // of a nil channel: never
		return true
	default:
		return false
	}
}

// broken is a failure of a connection that stood.
func (c *Conn) broken(err error) error {
	if isOurs(err) {
		return err
	}
	return api.Unavailablef("ssh_unreachable", "The connection to %s broke", c.place.target.Host).
		WithHint("the machine or the network went away; `ssh %s true` shows whether it is back", c.place.target.Host).WithCause(err)
}

// transport chooses the way there. What only the ssh program can do is chosen when the configuration asks for it and
// there is something to do it with: Debian's own asks for GSSAPI everywhere.
func (p place) transport() string {
	if t := p.target.Transport; t == TransportNative || t == TransportOpenSSH {
		return t
	}
	if !p.o.hasProgram() {
		return TransportNative
	}
	switch {
	case p.settings.set("pkcs11provider") != "",
		p.settings.yes("gssapiauthentication") && hasTicket(),
		p.hasSecurityKey(),
		p.settings.set("controlpath") != "" && p.hasMaster():
		return TransportOpenSSH
	}
	return TransportNative
}

// hasTicket reports whether the account has a Kerberos ticket.
func hasTicket() bool {
	cache := strings.TrimPrefix(or(os.Getenv("KRB5CCNAME"), "/tmp/krb5cc_"+itoa(os.Getuid())), "FILE:")
	if strings.Contains(cache, ":") && !strings.HasPrefix(cache, "/") {
		return true // a keyring or another store: only the program can look into it
	}
	_, err := os.Stat(cache)
	return err == nil
}

// hasSecurityKey reports whether one of the keys is kept in a token.
func (p place) hasSecurityKey() bool {
	for _, name := range p.settings["identityfile"] {
		if public, err := os.ReadFile(p.file(name) + ".pub"); err == nil && strings.HasPrefix(string(public), "sk-") {
			return true
		}
	}
	return false
}
