package hosts

import (
	"cmp"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/user"
	"time"
)

// Target is a machine to log in to, as a backend of the config names it.
type Target struct {
	Host         string // anything that ssh takes
	User         string // over what the account's ssh configuration says, as -l
	Port         int    // likewise, as -p
	IdentityFile string // likewise, as -i
	Transport    string // auto, native or openssh; empty: auto
}

// The transports of a Target.
const (
	TransportAuto    = "auto"
	TransportNative  = "native"
	TransportOpenSSH = "openssh"
)

// Options are the same for all targets of a server. The zero value is what ships.
type Options struct {
	ConfigFile string // in place of ~/.ssh/config and the system's, as ssh -F
	Program    string // the ssh program; default ssh, on PATH
	Home       string // what ~ means; default the account's home

	ConnectTimeout time.Duration // for one hop: connection, handshake and login; default 15 s
	KeepAlive      time.Duration // how often the other side is asked for a sign of life, and how long it may take; default 15 s
	Log            *slog.Logger
}

func (o Options) withDefaults() Options {
	o.Program = cmp.Or(o.Program, "ssh")
	o.ConnectTimeout = cmp.Or(o.ConnectTimeout, 15*time.Second)
	o.KeepAlive = cmp.Or(o.KeepAlive, 15*time.Second)
	if o.Home == "" {
		o.Home = os.Getenv("HOME")
		if u, err := user.Current(); err == nil {
			o.Home = u.HomeDir // as ssh itself: HOME may be another's, under sudo for instance
		}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	return o
}

// hasProgram reports whether the ssh program is installed.
func (o Options) hasProgram() bool {
	_, err := exec.LookPath(o.Program)
	return err == nil
}

// flags are the target's own settings as arguments of the ssh program.
func (o Options) flags(t Target) []string {
	var args []string
	if o.ConfigFile != "" {
		args = append(args, "-F", o.ConfigFile)
	}
	if t.User != "" {
		args = append(args, "-l", t.User)
	}
	if t.Port != 0 {
		args = append(args, "-p", itoa(t.Port))
	}
	if t.IdentityFile != "" {
		args = append(args, "-i", t.IdentityFile)
	}
	return args
}
