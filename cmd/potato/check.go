package main

import (
	"context"
	"slices"
	"strings"

	"potato/api"
	"potato/project"
)

type checkCommand struct {
	Name    string `arg:"" placeholder:"NAME" help:"Name of the backend; local is this machine."`
	Config  string `arg:"" placeholder:"config.yaml" help:"The study's config."`
	Trainer string `placeholder:"NAME" help:"Fail when this trainer cannot run there (default: when none can)."`
	Probe   bool   `help:"slurm: also submit a job of one minute that imports the trainers' packages on a compute node."`
	JSON    bool   `name:"json" help:"Print the report as JSON."`

	SSHConfig string `name:"ssh-config" hidden:"" placeholder:"FILE" help:"In place of the account's ssh configuration."`
}

// Help is the longer text of --help.
func (*checkCommand) Help() string {
	return `It prints what was found there: interpreter, device, and the packages that trainers lack.

Example:

  potato training check local config.yaml

Exit codes: 0 a run could start there, 1 it could not, 2 wrong usage.`
}

// Run prints the report on stdout.
func (c *checkCommand) Run(ctx context.Context, p *program) error {
	config, err := p.loadConfig(c.Config)
	if err != nil {
		return err
	}
	if err := knownBackend(config, c.Config, c.Name); err != nil {
		return err
	}
	report, err := c.check(ctx, config)
	if err != nil {
		return err
	}
	if c.JSON {
		err = writeJSON(p.out, report)
	} else {
		err = describeCheck(report).writeTo(p.out)
	}
	if err == nil && !report.OK {
		return exit(exitFailed)
	}
	return err
}

// knownBackend refuses a name that the config does not have.
func knownBackend(config *project.Config, file, name string) error {
	names := config.ModelTraining.BackendNames()
	if slices.Contains(names, name) {
		return nil
	}
	err := api.NotFoundf("unknown_backend", "%s has no backend '%s'", file, name)
	if s := api.Suggest(name, names); s != "" {
		return err.WithHint("did you mean %s?", s)
	}
	return err.WithHint("there is %s", strings.Join(names, ", "))
}

// describeCheck is a report for people: the verdict first, then a line for each finding, with what to do about it.
func describeCheck(r api.CheckReport) *lines {
	l := &lines{}
	l.addf("%s: %s\n", r.Backend, oneLine(r.Summary))
	for _, item := range r.Items {
		l.addf("  %-4s  %s: %s\n", item.Level, item.Topic, oneLine(item.Text))
		if item.Hint != "" {
			l.addf("        %s\n", oneLine(item.Hint))
		}
	}
	return l
}

// oneLine keeps what a remote machine says from moving the cursor.
func oneLine(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c >= 0x7f && c < 0xa0 {
			return ' '
		}
		return c
	}, s)
}
