package hosts

import (
	"context"
	"net"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"potato/api"
)

// place is a host with its settings, ready to be dialled.
type place struct {
	target   Target
	settings settings
	o        Options
}

func placeOf(ctx context.Context, t Target, o Options) (place, error) {
	s, err := settingsOf(ctx, t, o)
	return place{t, s, o}, err
}

func (p place) host() string { return or(p.settings.first("hostname"), p.target.Host) }
func (p place) user() string { return p.settings.first("user") }
func (p place) port() string { return or(p.settings.first("port"), "22") }
func (p place) addr() string { return net.JoinHostPort(strings.Trim(p.host(), "[]"), p.port()) }

// keyName is what the host's key is filed under in known_hosts.
func (p place) keyName() string {
	if alias := p.settings.set("hostkeyalias"); alias != "" {
		return net.JoinHostPort(alias, "22")
	}
	return p.addr()
}

// jumps are the hosts of ProxyJump, the one to dial first in front. A hop that is not the first is reached through the
// others, whatever its own configuration says.
func (p place) jumps() ([]Target, error) {
	list := p.settings.set("proxyjump")
	if list == "" {
		return nil, nil
	}
	var hops []Target
	for hop := range strings.SplitSeq(list, ",") {
		t, err := parseHop(strings.TrimSpace(hop))
		if err != nil {
			return nil, api.Unavailablef("ssh_unreachable", "ssh to %s failed: its ProxyJump names %q, which is no host", p.target.Host, hop).
				WithHint("mend ProxyJump in the ssh configuration of the server's account").WithCause(err)
		}
		hops = append(hops, t)
	}
	return hops, nil
}

// parseHop reads [user@]host[:port] or ssh://[user@]host[:port].
func parseHop(text string) (Target, error) {
	if !strings.HasPrefix(text, "ssh://") {
		text = "ssh://" + text
	}
	u, err := url.Parse(text)
	if err != nil {
		return Target{}, err
	}
	t := Target{Host: u.Hostname(), User: u.User.Username()}
	if u.Port() != "" {
		t.Port, err = strconv.Atoi(u.Port())
	}
	if err == nil && (t.Host == "" || strings.HasPrefix(t.Host, "-")) {
		err = &url.Error{Op: "parse", URL: text, Err: os.ErrInvalid}
	}
	return t, err
}

// expand replaces ~ and ssh's tokens in the name of a file or in a command.
func (p place) expand(text string) string {
	local, _ := os.Hostname()
	short, _, _ := strings.Cut(local, ".")
	name, uid := "", ""
	if u, err := user.Current(); err == nil {
		name, uid = u.Username, u.Uid
	}
	return strings.NewReplacer(
		"%%", "%", "%d", p.o.Home, "%h", p.host(), "%i", uid, "%k", or(p.settings.set("hostkeyalias"), p.target.Host),
		"%L", short, "%l", local, "%n", p.target.Host, "%p", p.port(), "%r", p.user(), "%u", name, "%j", p.settings.set("proxyjump"),
	).Replace(text)
}

func (p place) file(name string) string {
	name = p.expand(name)
	switch {
	case name == "~":
		return p.o.Home
	case strings.HasPrefix(name, "~/"):
		return filepath.Join(p.o.Home, name[2:])
	}
	return name
}
