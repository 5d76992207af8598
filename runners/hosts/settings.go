package hosts

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/kevinburke/ssh_config"

	"potato/api"
)

// settings are what the account's ssh configuration says about a host, keyed by keywords in lower case.
type settings map[string][]string

func (s settings) first(key string) string {
	if len(s[key]) == 0 {
		return ""
	}
	return s[key][0]
}

// set is first, without the words that mean "not set".
func (s settings) set(key string) string {
	if v := s.first(key); !strings.EqualFold(v, "none") {
		return v
	}
	return ""
}

func (s settings) yes(key string) bool {
	v := strings.ToLower(s.first(key))
	return v == "yes" || v == "true"
}

// settingsTime bounds ssh -G: it connects to nothing, but a Match exec may hang.
const settingsTime = 5 * time.Second

// settingsOf asks the ssh program for a host's settings, since it alone knows every Include, Match and token; where there
// is none, the files are read here.
func settingsOf(ctx context.Context, t Target, o Options) (settings, error) {
	if !o.hasProgram() {
		return readSettings(t, o)
	}
	ctx, cancel := context.WithTimeout(ctx, settingsTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, o.Program, append(append([]string{"-G"}, o.flags(t)...), "--", t.Host)...)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		why := lastLine(complaint.String())
		if ctx.Err() != nil {
			why = "reading it takes too long; is there a Match exec that hangs?"
		}
		return nil, api.Unavailablef("ssh_unreachable", "ssh to %s failed: %s", t.Host, why).
			WithHint("mend the ssh configuration of the server's account; `ssh -G %s` shows what is wrong", t.Host).WithCause(err)
	}
	return parseSettings(out), nil
}

// severalWords are keywords whose values are several on one line.
var severalWords = map[string]bool{"userknownhostsfile": true, "globalknownhostsfile": true}

// parseSettings reads the answer of ssh -G: a keyword and its value a line.
func parseSettings(out []byte) settings {
	s := settings{}
	for line := range bytes.Lines(out) {
		key, value, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		if value == "" {
			continue
		}
		if severalWords[key] {
			s[key] = append(s[key], strings.Fields(value)...)
			continue
		}
		s[key] = append(s[key], value)
	}
	return s
}

// readKeywords are those that settings are used for.
var readKeywords = []string{
	"HostName", "User", "Port", "IdentityFile", "IdentitiesOnly", "IdentityAgent", "CertificateFile", "ProxyJump", "ProxyCommand", "HostKeyAlias",
	"UserKnownHostsFile", "GlobalKnownHostsFile", "StrictHostKeyChecking", "ConnectTimeout", "HostKeyAlgorithms",
}

// readSettings reads the configuration files without the ssh program. Match is not understood then, and is said to be.
func readSettings(t Target, o Options) (settings, error) {
	files := []string{filepath.Join(o.Home, ".ssh", "config"), "/etc/ssh/ssh_config"}
	if o.ConfigFile != "" {
		files = []string{o.ConfigFile}
	}
	s := settings{}
	for _, file := range files {
		f, err := os.Open(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the ssh configuration: %w", err)
		}
		c, err := ssh_config.Decode(bufio.NewReader(f))
		_ = f.Close()
		if err != nil {
			return nil, api.Unavailablef("ssh_unreachable", "ssh to %s failed: %s cannot be read without the ssh program: %v", t.Host, file, err).
				WithHint("install the ssh client (openssh-client) on this server")
		}
		for _, word := range readKeywords {
			values, err := c.GetAll(t.Host, word)
			if err != nil {
				return nil, err
			}
			key := strings.ToLower(word)
			switch {
			case key == "identityfile" || key == "certificatefile":
				s[key] = append(s[key], values...)
			case len(s[key]) == 0 && len(values) > 0 && severalWords[key]:
				s[key] = strings.Fields(values[0])
			case len(s[key]) == 0 && len(values) > 0:
				s[key] = values[:1]
			}
		}
	}
	return s, s.complete(t, o)
}

// complete adds the target's own settings and ssh's defaults, as ssh -G prints them.
func (s settings) complete(t Target, o Options) error {
	if s.first("user") == "" {
		u, err := user.Current()
		if err != nil {
			return err
		}
		s["user"] = []string{u.Username}
	}
	if t.User != "" {
		s["user"] = []string{t.User}
	}
	if t.Port != 0 {
		s["port"] = []string{strconv.Itoa(t.Port)}
	}
	if t.IdentityFile != "" {
		s["identityfile"] = append([]string{t.IdentityFile}, s["identityfile"]...)
	}
	s["hostname"] = []string{strings.ReplaceAll(or(s.first("hostname"), t.Host), "%h", t.Host)}
	for key, value := range map[string][]string{
		"port":                 {"22"},
		"identityfile":         {"~/.ssh/id_rsa", "~/.ssh/id_ecdsa", "~/.ssh/id_ed25519"},
		"userknownhostsfile":   {"~/.ssh/known_hosts", "~/.ssh/known_hosts2"},
		"globalknownhostsfile": {"/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"},
	} {
		if len(s[key]) == 0 {
			s[key] = value
		}
	}
	return nil
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func itoa(n int) string { return strconv.Itoa(n) }
