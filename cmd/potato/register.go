package main

import (
	"context"
	_ "embed" // the text
	"errors"
	"net/url"
	"strings"
	"text/template"
	"time"

	"potato/api"
	"potato/project"
	"potato/runners/agents"
	"potato/store"
	"potato/supervisor"
)

type registerCommand struct {
	Name   string `arg:"" placeholder:"NAME" help:"Name of an agent backend."`
	Config string `arg:"" placeholder:"config.yaml" help:"The study's config."`
	JSON   bool   `name:"json" help:"Print the token's record as JSON."`
}

// Help is the longer text of --help.
func (*registerCommand) Help() string {
	return `It prints the token once, with the commands to run on the training machine. Registering again replaces the token: an
agent with the old one is refused at once. A server need not run, and one that runs needs no restart.

Example:

  potato training register lab-workstation config.yaml

Exit codes: 0 the token was issued, 1 it was not, 2 wrong usage.`
}

//go:embed register.tmpl
var registerText string

// Run issues a token and prints what to do with it (K3).
func (c *registerCommand) Run(ctx context.Context, p *program) (err error) {
	config, err := p.loadConfig(c.Config)
	if err != nil {
		return err
	}
	if err := knownBackend(config, c.Config, c.Name); err != nil {
		return err
	}
	db, err := store.Open(ctx, config.TrainingPath(), time.Now)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	issued, err := supervisor.Register(ctx, config, db, c.Name)
	if err != nil {
		return err
	}
	warnings := &lines{}
	if closed := closedToAgents(config); closed != "" {
		warnings.addf("warning: %s; %s\n", closed, openToAgents)
	}
	if len(agents.Platforms()) == 0 {
		warnings.addf("warning: this build carries no agents for other machines, so the last command finds none; `make build` makes one that does\n")
	}
	if err := warnings.writeTo(p.err); err != nil {
		return err
	}
	if c.JSON {
		return writeJSON(p.out, issued)
	}
	return template.Must(template.New("").Parse(registerText)).Execute(p.out, issued)
}

// What shuts agents out, and how to let them in.
const (
	shutOut      = "agents on other machines cannot reach this server, which listens on this machine only"
	openToAgents = "open it with --host 0.0.0.0 and a good admin_api_key"
)

// closedToAgents says why no agent on another machine can reach the study's server: as it runs, or as it would be started
// without flags. It is empty when they can (K1).
func closedToAgents(c *project.Config) string {
	if holder, runs := store.Holding(c.TrainingPath()); runs {
		at, err := url.Parse(holder.URL)
		if err == nil && (strings.HasPrefix(at.Hostname(), "127.") || at.Hostname() == "::1") {
			return shutOut
		}
		return ""
	}
	if host, why := listenAddress(c, c.Debug); host != "" {
		return strings.Replace(shutOut, "listens", "would listen", 1) + ": " + strings.SplitN(why, ":", 2)[0]
	}
	return ""
}

// usesAgents reports whether the study has an agent backend.
func usesAgents(c *project.Config) bool {
	for _, b := range c.ModelTraining.Backends {
		if b.Type == api.BackendAgent {
			return true
		}
	}
	return false
}
