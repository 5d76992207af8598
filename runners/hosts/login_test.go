package hosts_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"potato/runners/hosts"
	"potato/runners/hosts/hoststest"
)

// config writes a configuration with one host named box, an account of a server of the rig. What lines say comes first and
// so counts.
func config(t *testing.T, server string, lines ...string) hosts.Options {
	t.Helper()
	rig := hoststest.Get(t)
	text := "Host box\n" + strings.Join(lines, "\n") + fmt.Sprintf("\nHostName 127.0.0.1\nPort %d\nUser %s\nIdentitiesOnly yes\n"+
		"UserKnownHostsFile %s\nGlobalKnownHostsFile /dev/null\nStrictHostKeyChecking yes\n", rig.Port(server), hoststest.Bash, rig.Known)
	o := options(t)
	o.ConfigFile = write(t, "config", text)
	return o
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A host that does not let us in says why, each reason in its own words and at once, with what to do (H1, H10, T24, T25,
// section 11).
func TestRefusals(t *testing.T) {
	rig := hoststest.Get(t)
	closed, silent := closedPort(t), silentPort(t)
	none := filepath.Join(t.TempDir(), "none")
	other := knownAs(t, rig, "hostjump")
	client := "IdentityFile " + rig.Key("client")
	for name, c := range map[string]struct {
		server           string
		lines            []string
		code, text, hint string
	}{
		"key not accepted": {"target", []string{"IdentityFile " + rig.Key("stranger")},
			"ssh_auth", "ssh to box failed: Permission denied", "`ssh box true` must succeed"},
		"no key": {"target", []string{"IdentityFile " + none},
			"ssh_auth", "ssh to box failed: Permission denied", "`ssh box true` must succeed"},
		"only passwords": {"passwords", []string{client},
			"ssh_auth", "ssh to box failed: Permission denied (it accepts no keys, only passwords or codes)", "allow keys"},
		"key with a passphrase": {"target", []string{"IdentityAgent none", "IdentityFile " + rig.Key("locked")},
			"ssh_auth", "ssh to box failed: Permission denied (the key " + rig.Key("locked") + " has a passphrase and no ssh-agent holds it)", "ssh-add"},
		"unknown host key": {"target", []string{client, "UserKnownHostsFile " + none},
			"host_key_unknown", "ssh to box failed: the host key is unknown", "finger"},
		"changed host key": {"target", []string{client, "UserKnownHostsFile " + other},
			"host_key_changed", "ssh to box failed: the host key has changed: " + other + ":1 has ED25519 " + fingerprint(t, rig.Key("hostjump")) +
				", the host shows ED25519 " + fingerprint(t, rig.Key("host")), "remove line 1 of " + other},
		"refused": {"target", []string{client, fmt.Sprintf("Port %d", closed)},
			"ssh_unreachable", "ssh to box failed: Connection refused", "is sshd running there"},
		"silent": {"target", []string{client, fmt.Sprintf("Port %d", silent), "ConnectTimeout 2"},
			"ssh_unreachable", "ssh to box failed: Connection timed out", "firewall"},
		"unknown host": {"target", []string{client, "HostName nosuch.invalid"},
			"ssh_unreachable", "ssh to box failed: Could not resolve hostname nosuch.invalid", "HostName"},
		"bad configuration": {"target", []string{"NoSuchKeyword yes"},
			"ssh_unreachable", "ssh to box failed: ", "ssh -G box"},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, transport string) {
				began := time.Now()
				e := refusal(t, hosts.Target{Host: "box", Transport: transport}, config(t, c.server, c.lines...))
				if e.Code != c.code || !strings.HasPrefix(e.Message, c.text) || !strings.Contains(e.Hint, c.hint) || e.Hint == "" {
					t.Errorf("got  %s: %s\n     %s\nwant %s: %s\n     %s", e.Code, e.Message, e.Hint, c.code, c.text, c.hint)
				}
				if took := time.Since(began); took > 8*time.Second {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// The sentence about an unknown host has the line that makes it known, and with that line it is.
func TestUnknownHostTellsTheLineToAdd(t *testing.T) {
	rig := hoststest.Get(t)
	known := filepath.Join(t.TempDir(), "known_hosts")
	o := config(t, "target", "IdentityFile "+rig.Key("client"), "UserKnownHostsFile "+known)
	e := refusal(t, hosts.Target{Host: "box", Transport: hosts.TransportNative}, o)
	_, line, ok := strings.Cut(e.Hint, "add this line to "+known+": ")
	if !ok || !strings.Contains(e.Message, "SHA256:") {
		t.Fatalf("got %q, %q", e.Message, e.Hint)
	}
	if err := os.WriteFile(known, []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dial(t, hosts.Target{Host: "box", Transport: hosts.TransportNative}, o)
}

// What lets us in, beside a key in a file (H1).
func TestLogins(t *testing.T) {
	rig := hoststest.Get(t)
	client := "IdentityFile " + rig.Key("client")
	agent := sshAgent(t, rig.Key("client"))
	locked := lockedAgent(t, rig)
	accepting := filepath.Join(t.TempDir(), "accepted")
	for name, lines := range map[string][]string{
		"a key of an agent":                {"IdentityAgent " + agent, "IdentitiesOnly no", "IdentityFile none"},
		"a locked key that an agent holds": {"IdentityAgent " + locked, "IdentityFile " + rig.Key("locked")},
		"a certificate":                    {"IdentityAgent none", "IdentityFile " + rig.Key("certified")},
		"another name for the host's key":  {client, "HostKeyAlias alias", "UserKnownHostsFile " + known(t, rig, "alias", "host")},
		"a line without a port":            {client, "UserKnownHostsFile " + known(t, rig, "127.0.0.1", "host")},
		"a hashed line":                    {client, "UserKnownHostsFile " + hashed(t, rig)},
		"only the second key is known":     {client, "UserKnownHostsFile " + known(t, rig, address(rig, "target"), "hostecdsa")},
		"new hosts are accepted":           {client, "StrictHostKeyChecking accept-new", "UserKnownHostsFile " + accepting},
		"an unreadable key before":         {"IdentityFile " + rig.Key("client.pub"), client},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, transport string) {
				c := dial(t, hosts.Target{Host: "box", Transport: transport}, config(t, "target", lines...))
				if a := run(t, c, hosts.Script{Text: "id -un"}); string(a.Out) != hoststest.Bash+"\n" {
					t.Errorf("we are %q", a.Out)
				}
			})
		})
	}
}

// The backend's own user, port and identity_file win over the configuration (H1).
func TestOverrides(t *testing.T) {
	each(t, func(t *testing.T, transport string) {
		rig := hoststest.Get(t)
		o := config(t, "passwords", "User nobody", "IdentityFile "+rig.Key("stranger"))
		target := hosts.Target{Host: "box", User: hoststest.Tcsh, Port: rig.Port("target"), IdentityFile: rig.Key("client"), Transport: transport}
		c := dial(t, target, o)
		if a := run(t, c, hosts.Script{Text: "id -un"}); string(a.Out) != hoststest.Tcsh+"\n" {
			t.Errorf("we are %q", a.Out)
		}
		if got, want := c.Login(), fmt.Sprintf("%s@127.0.0.1:%d", hoststest.Tcsh, rig.Port("target")); got != want {
			t.Errorf("Login is %q, want %q", got, want)
		}
	})
}

// Without the ssh program the configuration is read here.
func TestWithoutTheProgram(t *testing.T) {
	rig := hoststest.Get(t)
	o := config(t, "target", "IdentityFile "+rig.Key("client"))
	o.Program = filepath.Join(t.TempDir(), "no-ssh")
	dial(t, hosts.Target{Host: "box"}, o)
	o.ConfigFile = write(t, "matching", "Match exec true\n  Port 1\n")
	if e := refusal(t, hosts.Target{Host: "box"}, o); !strings.Contains(e.Hint, "openssh-client") {
		t.Errorf("got %q, %q", e.Message, e.Hint)
	}
}

// A server that goes away or stops answering is noticed by both sides of the connection.
func TestLostConnections(t *testing.T) {
	each(t, func(t *testing.T, transport string) {
		o := options(t)
		o.KeepAlive = time.Second
		for name, signal := range map[string]string{"killed": "KILL", "stopped": "STOP"} {
			t.Run(name, func(t *testing.T) {
				c := dial(t, hosts.Target{Host: "target", Transport: transport}, o)
				session := strings.TrimSpace(string(run(t, c, hosts.Script{Text: "echo $PPID"}).Out))
				if out, err := exec.Command("kill", "-"+signal, session).CombinedOutput(); err != nil {
					t.Fatalf("kill: %v: %s", err, out)
				}
				defer func() { _ = exec.Command("kill", "-KILL", session).Run() }()
				select {
				case <-c.Done():
				case <-time.After(15 * time.Second):
					t.Fatal("nothing was noticed in 15 s")
				}
				_, err := c.Run(t.Context(), hosts.Script{Text: "true"})
				if err == nil || err.Error() != "The connection to target broke" {
					t.Errorf("got %v", err)
				}
			})
		}
	})
}

// A transport is chosen by what the configuration needs: security keys cannot be used in this process.
func TestTransportIsChosen(t *testing.T) {
	rig := hoststest.Get(t)
	key := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(key+".pub", []byte("sk-ssh-ed25519@openssh.com AAAA token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	client := "IdentityFile " + rig.Key("client")
	for name, c := range map[string]struct {
		lines []string
		want  string
	}{
		"plain":        {[]string{client, "GSSAPIAuthentication yes"}, hosts.TransportNative},
		"security key": {[]string{client, "IdentityFile " + key}, hosts.TransportOpenSSH},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KRB5CCNAME", filepath.Join(t.TempDir(), "no-ticket"))
			if got := dial(t, hosts.Target{Host: "box"}, config(t, "target", c.lines...)).Transport(); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// A live master connection of the account is used: after a login with a second factor it is the only way in.
func TestLiveMasterIsUsed(t *testing.T) {
	rig := hoststest.Get(t)
	dir, err := os.MkdirTemp("/tmp", "potato-ctl-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	o := config(t, "target", "IdentityFile "+rig.Key("client"), "ControlPath "+dir+"/c")
	master := exec.Command("ssh", "-F", o.ConfigFile, "-M", "-N", "box")
	if err := master.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = master.Process.Kill(); _ = master.Wait() })
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(dir + "/c"); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("no master connection in 10 s")
		}
	}
	c := dial(t, hosts.Target{Host: "box"}, o)
	if a := run(t, c, hosts.Script{Text: "id -un"}); c.Transport() != hosts.TransportOpenSSH || string(a.Out) != hoststest.Bash+"\n" {
		t.Errorf("over %s: %q", c.Transport(), a.Out)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := exec.Command("ssh", "-F", o.ConfigFile, "-O", "check", "box").Run(); err != nil {
		t.Error("the account's own connection was closed")
	}
}

func closedPort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// silentPort accepts and says nothing.
func silentPort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

func address(rig *hoststest.Rig, server string) string {
	return fmt.Sprintf("[127.0.0.1]:%d", rig.Port(server))
}

// known is a known_hosts file with one line.
func known(t *testing.T, rig *hoststest.Rig, name, key string) string {
	t.Helper()
	text, err := os.ReadFile(rig.Key(key + ".pub"))
	if err != nil {
		t.Fatal(err)
	}
	return write(t, "known_hosts", name+" "+string(text))
}

func knownAs(t *testing.T, rig *hoststest.Rig, key string) string {
	return known(t, rig, address(rig, "target"), key)
}

func hashed(t *testing.T, rig *hoststest.Rig) string {
	t.Helper()
	file := knownAs(t, rig, "host")
	if out, err := exec.Command("ssh-keygen", "-H", "-f", file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return file
}

func fingerprint(t *testing.T, key string) string {
	t.Helper()
	out, err := exec.Command("ssh-keygen", "-l", "-f", key+".pub").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))[1]
}

// sshAgent starts an ssh-agent that holds a key, and returns its socket.
func sshAgent(t *testing.T, key string) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "potato-agent-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	cmd := exec.Command("ssh-agent", "-D", "-a", socket)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		add := exec.Command("ssh-add", "-q", key)
		add.Env = append(os.Environ(), "SSH_AUTH_SOCK="+socket)
		out, err := add.CombinedOutput()
		if err == nil {
			return socket
		}
		if time.Now().After(end) {
			t.Fatal(errors.Join(err, errors.New(string(out))))
		}
	}
}

// lockedAgent holds the key whose file has a passphrase.
func lockedAgent(t *testing.T, rig *hoststest.Rig) string {
	t.Helper()
	open := filepath.Join(t.TempDir(), "open")
	text, err := os.ReadFile(rig.Key("locked"))
	if err == nil {
		err = os.WriteFile(open, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("ssh-keygen", "-q", "-p", "-P", "secret", "-N", "", "-f", open).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return sshAgent(t, open)
}
