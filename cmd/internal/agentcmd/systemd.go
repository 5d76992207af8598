package agentcmd

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"text/template"
)

// unit is a service for systemd. KillMode: only the agent is told to end, and it ends its worker and tells the server;
// should the agent crash, its worker goes on and the next agent takes it up. OOMPolicy: a worker that runs out of memory
// is a failed run and no reason to stop the agent.
var unit = template.Must(template.New("").Parse(`# Save as /etc/systemd/system/{{.Name}}.service. Put the token into {{.TokenFile}}
# with mode 600, owned by {{.User}}. Then: systemctl daemon-reload && systemctl enable --now {{.Name}}
[Unit]
Description=Potato training agent for {{.Backend}}
Wants=network-online.target
After=network-online.target

[Service]
User={{.User}}
ExecStart={{.Command}}
{{- range .Environment}}
Environment={{.}}
{{- end}}
UMask=0077
Restart=on-failure
RestartSec=30
KillMode=process
TimeoutStopSec=120
OOMPolicy=continue

[Install]
WantedBy=multi-user.target
`))

func (c *Command) printUnit(p Program, self string) error {
	name := "potato-agent-" + c.Backend
	who := "root"
	home, err := os.UserHomeDir()
	if u, unknown := user.Current(); unknown == nil {
		who, home, err = u.Username, u.HomeDir, nil
	}
	token := c.TokenFile
	if token == "" {
		if err != nil {
			return fmt.Errorf("find the home directory: %w", err)
		}
		token = filepath.Join(home, ".config", "potato-training", c.Backend+".token")
	}
	args := append([]string{self}, p.Args...)
	args = append(args, "--server", c.Server, "--backend", c.Backend)
	for _, f := range []struct{ flag, path string }{{"--token-file", token}, {"--python", c.Python}, {"--workdir", c.Workdir}, {"--slurm-config", c.SlurmConfig}, {"--ca", c.CA}} {
		path := f.path
		if path == "" || f.flag == "--python" && !strings.Contains(path, "/") {
			continue // a name is looked for again when the service starts
		}
		if path, err = filepath.Abs(path); err != nil {
			return fmt.Errorf("make %s absolute: %w", f.path, err)
		}
		args = append(args, f.flag, path)
	}
	if c.Keep {
		args = append(args, "--keep")
	}
	for i, a := range args {
		args[i] = unitWord(a)
	}
	return unit.Execute(p.Out, map[string]any{
		"Name": name, "User": who, "Backend": c.Backend, "TokenFile": token, "Command": strings.Join(args, " "), "Environment": unitEnvironment(),
	})
}

// unitEnvironment is what the agent heeds of the present environment, but for what holds a password.
func unitEnvironment() (set []string) {
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy", "SSL_CERT_FILE"} {
		if v := os.Getenv(name); v != "" && !strings.Contains(v, "@") {
			set = append(set, unitWord(name+"="+v))
		}
	}
	return set
}

// unitWord quotes a word as systemd wants it.
func unitWord(s string) string {
	s = strings.NewReplacer("%", "%%", "$", "$$", `\`, `\\`, `"`, `\"`).Replace(s)
	if strings.ContainsAny(s, " \t'\";") {
		return `"` + s + `"`
	}
	return s
}
