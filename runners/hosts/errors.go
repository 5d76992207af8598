package hosts

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"potato/api"
)

// unreachable is a host that could not be talked to (H10).
func unreachable(host, why string, err error) *api.Error {
	return api.Unavailablef("ssh_unreachable", "ssh to %s failed: %s", host, why).
		WithHint("see that the host is up and that `ssh %s true` works as the server's account", host).WithCause(err)
}

// denied is a host that did not let us in (H1).
func denied(host, why, hint string, err error) *api.Error {
	text := "Permission denied"
	if why != "" {
		text += " (" + why + ")"
	}
	if hint == "" {
		hint = fmt.Sprintf("the server's account needs a key that works without a prompt; `ssh %s true` must succeed", host)
	}
	return api.Unavailablef("ssh_auth", "ssh to %s failed: %s", host, text).WithHint("%s", hint).WithCause(err)
}

func hintOf(host, format string, args ...any) string {
	return fmt.Sprintf(format, args...) + fmt.Sprintf("; `ssh %s true` must succeed as the server's account", host)
}

// dialError says why the host's port could not be reached.
func dialError(ctx context.Context, p place, err error) error {
	if isOurs(err) {
		return err
	}
	host := p.target.Host
	var name *net.DNSError
	var refused *ssh.OpenChannelError
	var timeout net.Error
	switch {
	case errors.As(err, &name) && !name.IsTimeout:
		return unknownName(host, p.host(), err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return refusedError(host, p.addr(), err)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return unreachable(host, "No route to host", err).WithHint("there is no way from this server to %s; is a VPN or a ProxyJump missing?", p.addr())
	case errors.Is(ctx.Err(), context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, syscall.ETIMEDOUT):
		return timedOut(host, p.addr(), err)
	case errors.As(err, &refused):
		return unreachable(host, "its jump host cannot reach "+p.addr()+": "+printable(refused.Message), err)
	}
	return unreachable(host, printable(err.Error()), err)
}

func unknownName(host, name string, err error) *api.Error {
	return unreachable(host, "Could not resolve hostname "+name, err).
		WithHint("no machine of the name %s is known here; look at `host` and at HostName in the ssh configuration", name)
}

func refusedError(host, addr string, err error) *api.Error {
	return unreachable(host, "Connection refused", err).WithHint("nothing listens at %s; is sshd running there, and is `port` right?", addr)
}

func timedOut(host, addr string, err error) *api.Error {
	return unreachable(host, "Connection timed out", err).
		WithHint("%s does not answer; is the machine up, and does a firewall or a VPN stand between?", addr)
}

func jumpFailed(p place, hop Target, err error) error {
	var e *api.Error
	if !errors.As(err, &e) {
		return err
	}
	return (&api.Error{Kind: e.Kind, Code: e.Code, Message: fmt.Sprintf("ssh to %s failed at its jump host: %s", p.target.Host, e.Message), Hint: e.Hint}).WithCause(err)
}

// loginError says why the handshake or the login did not succeed.
func loginError(ctx context.Context, p place, k *keys, err error) error {
	host := p.target.Host
	var wrong *hostKeyError
	var revoked *knownhosts.RevokedError
	switch {
	case errors.As(err, &wrong):
		return wrong.told(host)
	case errors.As(err, &revoked):
		return changedKey(host, "the key that the host shows is revoked in "+revoked.Revoked.Filename, err)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return timedOut(host, p.addr(), err)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "unable to authenticate"):
		return k.refused(host, text, err)
	case strings.Contains(text, "too many authentication failures"), strings.Contains(text, "Too many authentication failures"):
		return tooManyKeys(host, err)
	case strings.Contains(text, "no common algorithm"):
		return unreachable(host, "the two sides have no algorithm in common", err).
			WithHint("its ssh server is very old or very strict; try `transport: openssh`")
	case strings.HasSuffix(text, "EOF"), errors.Is(err, syscall.ECONNRESET), errors.Is(err, net.ErrClosed), errors.Is(err, os.ErrClosed):
		return dropped(host, err)
	}
	return unreachable(host, printable(strings.TrimPrefix(text, "ssh: handshake failed: ")), err)
}

// errDropped marks a connection that the host closed before the login. It may take the next one.
var errDropped = errors.New("the connection was closed before the login")

func dropped(host string, err error) *api.Error {
	return unreachable(host, errDropped.Error(), errors.Join(errDropped, err)).
		WithHint("its ssh server may be overloaded (MaxStartups) or bar this server; try again, then look at its log")
}

func tooManyKeys(host string, err error) *api.Error {
	return denied(host, "too many keys were tried", hintOf(host, "the ssh-agent offers more keys than the host wants to see; "+
		"set IdentitiesOnly yes and IdentityFile for it in the ssh configuration, or `identity_file`"), err)
}

func onlyPasswords(host string, err error) *api.Error {
	return denied(host, "it accepts no keys, only passwords or codes",
		hintOf(host, "have its administrator allow keys (PubkeyAuthentication), or use a live ControlMaster"), err)
}

func encryptedKey(host, file string, err error) *api.Error {
	return denied(host, "the key "+file+" has a passphrase and no ssh-agent holds it",
		hintOf(host, "load it in ssh-agent with `ssh-add %s` before the server starts, or use a key without a passphrase", file), err)
}

// refused says what about the keys was wrong.
func (k *keys) refused(host, text string, err error) error {
	switch {
	case len(k.all) > 0 && !strings.Contains(text, "publickey"):
		return onlyPasswords(host, err)
	case len(k.encrypted) > 0:
		return encryptedKey(host, k.encrypted[0], err)
	case len(k.unread) > 0 && len(k.all) == 0:
		return denied(host, "the key "+k.unread[0]+" cannot be read", "", err)
	case len(k.all) == 0:
		return denied(host, "", hintOf(host, "the server's account has no key; make one with ssh-keygen and put its public half into "+
			"~/.ssh/authorized_keys there"), err)
	}
	return denied(host, "", "", err)
}

// told is a wrong host key in words: what was seen, and the line to add or to mend.
func (e *hostKeyError) told(host string) *api.Error {
	shown := fmt.Sprintf("%s %s", kindOf(e.key.Type()), ssh.FingerprintSHA256(e.key))
	if len(e.want) == 0 {
		return unknownKey(host, shown, "when the host's administrator confirms that fingerprint, add this line to "+e.file+": "+
			knownhosts.Line([]string{e.name}, e.key), e)
	}
	want := e.want[0]
	for _, w := range e.want {
		if w.Key.Type() == e.key.Type() {
			want = w
		}
	}
	return changedKey(host, fmt.Sprintf("%s:%d has %s %s, the host shows %s", want.Filename, want.Line, kindOf(want.Key.Type()),
		ssh.FingerprintSHA256(want.Key), shown), e).
		WithHint("find out from the host's administrator why; only when the new key is right, remove line %d of %s "+
			"(`ssh-keygen -R '%s' -f %s`) and add: %s", want.Line, want.Filename, e.name, want.Filename, knownhosts.Line([]string{e.name}, e.key))
}

func unknownKey(host, shown, hint string, err error) *api.Error {
	text := "the host key is unknown"
	if shown != "" {
		text += ": " + shown
	}
	return api.Unavailablef("host_key_unknown", "ssh to %s failed: %s", host, text).WithHint("%s", hint).WithCause(err)
}

func changedKey(host, what string, err error) *api.Error {
	return api.Unavailablef("host_key_changed", "ssh to %s failed: the host key has changed: %s", host, what).
		WithHint("find out from the host's administrator why the key changed before you remove the old one from known_hosts").WithCause(err)
}

// kindOf is a key's type as people know it.
func kindOf(algorithm string) string {
	switch {
	case strings.Contains(algorithm, "ed25519"):
		return "ED25519"
	case strings.Contains(algorithm, "ecdsa"):
		return "ECDSA"
	case strings.Contains(algorithm, "rsa"):
		return "RSA"
	}
	return algorithm
}
