package hosts_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"potato/runners/hosts"
	"potato/runners/hosts/hoststest"
)

// dropping is the way to a server that closes the first connections before the login, and a file with one line for each.
func dropping(t *testing.T, first int) (o hosts.Options, tried string) {
	t.Helper()
	rig := hoststest.Get(t)
	dir := t.TempDir()
	tried = filepath.Join(dir, "tried")
	script := fmt.Sprintf("#!/bin/sh\necho x >>%s\n[ \"$(wc -l <%s)\" -gt %d ] || exit 0\nexec ssh -F %s -W 127.0.0.1:%d jump\n",
		tried, tried, first, rig.Config, rig.Port("target"))
	proxy := filepath.Join(dir, "proxy")
	if err := os.WriteFile(proxy, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return config(t, "target", "IdentityFile "+rig.Key("client"), "ProxyCommand "+proxy), tried
}

// A server that is overloaded drops connections at random: the fourth is let in (T26).
func TestFirstThreeConnectionsAreDropped(t *testing.T) {
	each(t, func(t *testing.T, transport string) {
		o, tried := dropping(t, 3)
		c := dial(t, hosts.Target{Host: "box", Transport: transport}, o)
		if a := run(t, c, hosts.Script{Text: "echo here"}); strings.TrimSpace(string(a.Out)) != "here" {
			t.Errorf("got %q", a.Out)
		}
		if n := lines(t, tried); n != 4 {
			t.Errorf("%d connections, want the fourth to be the one that stays", n)
		}
	})
}

// One that lets nobody in is not asked for ever.
func TestEveryConnectionIsDropped(t *testing.T) {
	each(t, func(t *testing.T, transport string) {
		o, tried := dropping(t, 100)
		e := refusal(t, hosts.Target{Host: "box", Transport: transport}, o)
		if e.Code != "ssh_unreachable" || e.Message != "ssh to box failed: the connection was closed before the login" || !strings.Contains(e.Hint, "MaxStartups") {
			t.Errorf("got %s: %s (%s)", e.Code, e.Message, e.Hint)
		}
		if n := lines(t, tried); n != 4 {
			t.Errorf("%d connections, want four", n)
		}
	})
}

func lines(t *testing.T, file string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(text), "\n")
}
