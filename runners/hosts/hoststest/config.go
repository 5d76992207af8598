package hoststest

import (
	"fmt"
	"os"
	"strings"
)

// writeConfig writes the client's configuration and its known_hosts.
func (r *Rig) writeConfig() error {
	var known strings.Builder
	for name, port := range r.ports {
		key := "host.pub"
		if name == "jump" {
			key = "hostjump.pub"
		}
		text, err := os.ReadFile(r.path(key))
		if err != nil {
			return err
		}
		fmt.Fprintf(&known, "[127.0.0.1]:%d %s", port, text)
	}
	if err := os.WriteFile(r.Known, []byte(known.String()), 0o600); err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Include %s\n", r.path("included"))
	host := func(name, server, account, more string) {
		fmt.Fprintf(&b, "Host %s\n  HostName 127.0.0.1\n  Port %d\n  User %s\n%s", name, r.ports[server], account, more)
	}
	host("target", "target", Bash, "")
	host("target-tcsh", "target", Tcsh, "")
	host("target-fish", "target", Fish, "")
	host("target-none", "target", None, "")
	host("target-quiet", "target", Quiet, "")
	host("jumped", "target", Bash, "  ProxyJump jump\n")
	host("jump", "jump", Bash, "")
	host("commanded", "target", Bash, fmt.Sprintf("  ProxyCommand ssh -F %s -W %%h:%%p jump\n", r.Config))
	host("login2", "login2", Bash, "")
	host("either", "target", Bash, fmt.Sprintf("  ProxyCommand ssh -F %s -W %%h:$(cat %s) jump\n", r.Config, r.path("either")))
	host("passwords", "passwords", Bash, "")
	host("forbidden", "forbidden", Bash, "")
	host("quick", "quick", Bash, "")
	fmt.Fprintf(&b, "Match originalhost matched\n  HostName 127.0.0.1\n  Port %d\n  User %s\n", r.ports["target"], Bash)
	fmt.Fprintf(&b, "Host *\n  IdentityFile %s\n  IdentitiesOnly yes\n  UserKnownHostsFile %s\n  GlobalKnownHostsFile /dev/null\n"+
		"  StrictHostKeyChecking yes\n", r.Key("client"), r.Known)
	included := fmt.Sprintf("Host included\n  HostName 127.0.0.1\n  Port %d\n  User %s\n", r.ports["target"], Bash)
	if err := os.WriteFile(r.path("included"), []byte(included), 0o600); err != nil {
		return err
	}
	return os.WriteFile(r.Config, []byte(b.String()), 0o600)
}
