package hosts

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
)

var (
	shownKey     = regexp.MustCompile(`(?s)fingerprint for the (\S+) key sent by the remote host is\s+(SHA256:\S+?)\.?\s`)
	offendingKey = regexp.MustCompile(`Offending \S+ key in (\S+):(\d+)`)
	methodsTried = regexp.MustCompile(`Permission denied \(([^)]*)\)`)
	loadedKey    = regexp.MustCompile(`Load key "([^"]+)": (.*)`)
)

// programError reads what the ssh program says when it cannot log in; it has one exit status for everything. The sentences
// are the same as those of the other transport.
func (p place) programError(said string, err error) error {
	host := p.target.Host
	has := func(text string) bool { return strings.Contains(said, text) }
	switch {
	case has("IDENTIFICATION HAS CHANGED"), has("REVOKED HOST KEY"):
		return p.programChangedKey(said, err)
	case has("Host key verification failed"):
		return unknownKey(host, "", fmt.Sprintf("log in once by hand as the server's account, `ssh %s`, and compare the fingerprint; "+
			"with `transport: native` the check shows the line to add", host), err)
	case has("Too many authentication failures"):
		return tooManyKeys(host, err)
	case has("Permission denied"):
		return p.programDenied(said, err)
	case has("Could not resolve hostname"):
		return unknownName(host, p.host(), err)
	case has("Connection refused"):
		return refusedError(host, p.addr(), err)
	case has("timed out"), has("Timeout, server"):
		return timedOut(host, p.addr(), err)
	case has("No route to host"), has("Network is unreachable"):
		return unreachable(host, "No route to host", err)
	case has("Bad owner or permissions"):
		return unreachable(host, printable(lastLine(said)), err).WithHint("chmod 600 the file that is named; ssh refuses one that others may write")
	case has("stdio forwarding failed"), has("open failed"):
		return unreachable(host, "its jump host cannot reach "+p.addr(), err)
	case has("kex_exchange_identification"), has("Connection reset"), has("banner exchange"), has("Connection closed"):
		return dropped(host, err)
	}
	why := printable(lastLine(said))
	if why == "" {
		why = "the ssh program ended without a word"
	}
	return unreachable(host, why, err)
}

func (p place) programChangedKey(said string, err error) error {
	host := p.target.Host
	shown, where := shownKey.FindStringSubmatch(said+" "), offendingKey.FindStringSubmatch(said)
	if shown == nil || where == nil {
		return changedKey(host, printable(lastLine(said)), err)
	}
	line, _ := strconv.Atoi(where[2])
	e := changedKey(host, fmt.Sprintf("%s:%d has %s, the host shows %s %s", where[1], line, fingerprintAt(where[1], line), shown[1], shown[2]), err)
	return e.WithHint("find out from the host's administrator why; only when the new key is right, remove line %d of %s", line, where[1])
}

// fingerprintAt is that of the key on a line of a known_hosts file.
func fingerprintAt(file string, line int) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return "another key"
	}
	lines := strings.Split(string(text), "\n")
	if line < 1 || line > len(lines) {
		return "another key"
	}
	_, _, key, _, _, err := ssh.ParseKnownHosts([]byte(lines[line-1]))
	if err != nil {
		return "another key"
	}
	return kindOf(key.Type()) + " " + ssh.FingerprintSHA256(key)
}

func (p place) programDenied(said string, err error) error {
	host := p.target.Host
	if m := methodsTried.FindStringSubmatch(said); m != nil && m[1] != "" && !strings.Contains(m[1], "publickey") {
		return onlyPasswords(host, err)
	}
	k, keyErr := findKeys(p)
	if keyErr != nil {
		return keyErr
	}
	defer k.close()
	if len(k.encrypted) > 0 {
		return encryptedKey(host, k.encrypted[0], err)
	}
	if m := loadedKey.FindStringSubmatch(said); m != nil && len(k.all) == 0 {
		return denied(host, "the key "+m[1]+" cannot be read: "+printable(m[2]), "", err)
	}
	return k.refused(host, "publickey", err)
}
