package hosts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// knownHosts decides whether a host is the one it claims to be.
type knownHosts struct {
	p     place
	files []string
	known ssh.HostKeyCallback
}

// hostKeyError is a host whose key is not the one that was known, or was not known at all.
type hostKeyError struct {
	key  ssh.PublicKey
	want []knownhosts.KnownKey
	name string // as known_hosts has it
	file string // where a line for it belongs
}

func (e *hostKeyError) Error() string {
	return fmt.Sprintf("the host key of %s is not the known one", e.name)
}

func openKnownHosts(p place) (*knownHosts, error) {
	k := &knownHosts{p: p}
	for _, key := range []string{"userknownhostsfile", "globalknownhostsfile"} {
		for _, name := range p.settings[key] {
			path := p.file(name)
			if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() {
				k.files = append(k.files, path)
			}
		}
	}
	var err error
	if k.known, err = knownhosts.New(k.files...); err != nil {
		return nil, unreachable(p.target.Host, "a known_hosts file cannot be read: "+err.Error(), err)
	}
	return k, nil
}

// check implements ssh.HostKeyCallback.
func (k *knownHosts) check(name string, _ net.Addr, key ssh.PublicKey) error {
	err := k.known(name, nowhere, key)
	var wrong *knownhosts.KeyError
	if err == nil || !errors.As(err, &wrong) {
		return err
	}
	host, port, _ := net.SplitHostPort(name)
	if len(wrong.Want) == 0 && port != "22" {
		// As ssh does: a line without the port vouches for all ports.
		if k.known(net.JoinHostPort(host, "22"), nowhere, key) == nil {
			return nil
		}
	}
	strict := strings.ToLower(k.p.settings.first("stricthostkeychecking"))
	if len(wrong.Want) == 0 && slices.Contains([]string{"no", "false", "off", "accept-new"}, strict) {
		return k.add(name, key)
	}
	return &hostKeyError{key: key, want: wrong.Want, name: knownhosts.Normalize(name), file: k.file()}
}

// file is where new keys belong.
func (k *knownHosts) file() string {
	if names := k.p.settings["userknownhostsfile"]; len(names) > 0 && !strings.EqualFold(names[0], "none") {
		return k.p.file(names[0])
	}
	return filepath.Join(k.p.o.Home, ".ssh", "known_hosts")
}

// add keeps a new host's key, where the configuration says that new hosts are to be trusted.
func (k *knownHosts) add(name string, key ssh.PublicKey) error {
	path := k.file()
	if path == os.DevNull {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, knownhosts.Line([]string{knownhosts.Normalize(name)}, key))
	return errors.Join(err, f.Close())
}

// certificateAlgorithms are the kinds of certificates that a host may show.
var certificateAlgorithms = []string{
	ssh.CertAlgoED25519v01, ssh.CertAlgoECDSA256v01, ssh.CertAlgoECDSA384v01, ssh.CertAlgoECDSA521v01, ssh.CertAlgoRSASHA512v01, ssh.CertAlgoRSASHA256v01,
}

// plainAlgorithms are the kinds of keys that a host may show, the one that we like best first.
var plainAlgorithms = []string{
	ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256,
}

// algorithms asks the host for the kind of key that known_hosts has. A host with several keys would otherwise show another
// one, which nobody knows.
func (k *knownHosts) algorithms() []string {
	types := map[string]bool{}
	for _, name := range []string{k.p.keyName(), net.JoinHostPort(strings.Trim(k.p.host(), "[]"), "22")} {
		var wrong *knownhosts.KeyError
		if errors.As(k.known(name, nowhere, noKey{}), &wrong) {
			for _, want := range wrong.Want {
				types[want.Key.Type()] = true
			}
		}
		if len(types) > 0 {
			break
		}
	}
	var list []string
	if k.hasAuthority() {
		list = append(list, certificateAlgorithms...)
	}
	known := func(algorithm string) bool {
		return types[algorithm] || types[ssh.KeyAlgoRSA] && (algorithm == ssh.KeyAlgoRSASHA256 || algorithm == ssh.KeyAlgoRSASHA512)
	}
	for _, want := range []bool{true, false} {
		for _, algorithm := range plainAlgorithms {
			if known(algorithm) == want {
				list = append(list, algorithm)
			}
		}
	}
	return list
}

// hasAuthority reports whether an authority may vouch for the host.
func (k *knownHosts) hasAuthority() bool {
	names := []string{knownhosts.Normalize(k.p.keyName()), k.p.host(), k.p.settings.set("hostkeyalias")}
	for _, file := range k.files {
		rest, err := os.ReadFile(file)
		for err == nil && bytes.Contains(rest, []byte("@cert-authority")) {
			var marker string
			var hosts []string
			if marker, hosts, _, _, rest, err = ssh.ParseKnownHosts(rest); errors.Is(err, io.EOF) {
				break
			}
			if marker == "cert-authority" && slices.ContainsFunc(names, func(n string) bool { return n != "" && matches(hosts, n) }) {
				return true
			}
		}
	}
	return false
}

// matches reports whether a name is one of the patterns, with * and ?, and none of those that begin with !.
func matches(patterns []string, name string) bool {
	found := false
	for _, pattern := range patterns {
		not := strings.HasPrefix(pattern, "!")
		if ok, err := filepath.Match(strings.ToLower(strings.NewReplacer("!", "", "[", `\[`, "]", `\]`).Replace(pattern)), strings.ToLower(name)); err == nil && ok {
			if not {
				return false
			}
			found = true
		}
	}
	return found
}

// noKey is a key that no host has.
type noKey struct{}

func (noKey) Type() string                        { return "none" }
func (noKey) Marshal() []byte                     { return []byte("none") }
func (noKey) Verify([]byte, *ssh.Signature) error { return errors.New("no key") }
