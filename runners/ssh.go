package runners

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"potato/api"
	"potato/project"
	"potato/runners/agents"
	"potato/runners/hosts"
)

// SSHOptions are what the ssh runner stands on. Config is needed, the rest has defaults.
type SSHOptions struct {
	Config    *project.Config
	Hosts     hosts.Options
	Home      func(Job) (Home, error) // where a run's agent reports; not needed for checks
	CopyStall time.Duration           // how long a copy may send nothing; default 180 s
	Agent     string                  // the agent's program for hosts of this platform, in place of the one that this build carries
	Self      string                  // this program's path: what hosts of the same platform get when no agent is carried for them
	Log       *slog.Logger
}

// SSH trains on machines that the server can log in to: the agent is copied there and talks home through the connection.
type SSH struct {
	o    SSHOptions
	hash func() string

	mu    sync.Mutex
	conns map[api.RunID]*hosts.Conn // sessions that one step leaves to the next
}

// NewSSH makes the ssh runner.
func NewSSH(o SSHOptions) *SSH {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &SSH{o: o}
	s.hash = sync.OnceValue(s.sum)
	return s
}

func targetOf(b project.Backend) hosts.Target {
	return hosts.Target{Host: b.Host, User: b.User, Port: b.Port, IdentityFile: b.IdentityFile, Transport: b.Transport}
}

// env is what is set on the host over what the login shell sets (H4, C8).
func (s *SSH) env(b project.Backend) map[string]string {
	env := map[string]string{}
	if b.NumThreads > 0 {
		for _, name := range []string{"OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"} {
			env[name] = strconv.Itoa(b.NumThreads)
		}
	}
	for name, value := range b.Env {
		env[name] = string(value)
	}
	return maps.Clone(env)
}

// hasAgent says whether there is an agent's program for a platform: one that this build carries, or this program itself.
func (s *SSH) hasAgent(p agents.Platform) error {
	if _, err := agents.Find(p); err != nil {
		if s.own(p) != "" {
			return nil
		}
		e := api.AsError(err)
		return api.Unavailablef("platform_unsupported", "%s", e.Message).WithHint("%s", e.Hint).WithCause(err)
	}
	return nil
}

// own is a program of this machine that a host of the same platform can run; empty for other platforms.
func (s *SSH) own(p agents.Platform) string {
	if p != (agents.Platform{OS: runtime.GOOS, Arch: runtime.GOARCH}) {
		return ""
	}
	return cmp.Or(s.o.Agent, s.o.Self)
}

// codeHash is the content address of what is copied to a host.
func (s *SSH) codeHash() string { return s.hash() }

func (s *SSH) sum() string {
	sum := sha256.New()
	_ = eachCodeFile(s.o.Config, func(name string, content []byte) error { // what cannot be read, packing it says
		sum.Write([]byte(name + "\x00" + strconv.Itoa(len(content)) + "\x00"))
		sum.Write(content)
		return nil
	})
	sum.Write([]byte(agents.Hash()))
	if st, err := os.Stat(cmp.Or(s.o.Agent, s.o.Self)); err == nil && (s.o.Agent != "" || len(agents.Platforms()) == 0) {
		sum.Write(fmt.Appendf(nil, "%d %d", st.Size(), st.ModTime().UnixNano()))
	}
	return hex.EncodeToString(sum.Sum(nil))[:32]
}

// venvName is the folder below remote_dir of the environment for the listed packages; empty without any.
func (s *SSH) venvName(b project.Backend) string {
	if len(b.Packages) == 0 {
		return ""
	}
	sum := sha256.Sum256([]byte(b.Python + "\x00" + strings.Join(b.Packages, "\x00")))
	return "venv-" + hex.EncodeToString(sum[:8])
}
