package main

import (
	"context"
	"strings"

	"potato/api"
	"potato/runners"
)

type trainersCommand struct {
	Config string `arg:"" placeholder:"config.yaml" help:"The study's config."`
	JSON   bool   `name:"json" help:"Print the list as JSON."`
}

// Help is the longer text of --help.
func (*trainersCommand) Help() string {
	return `For each it prints which kinds of schemes it takes, its licence, and what to install where it is not available.
The interpreter asked is model_training.python.

Example:

  potato training trainers config.yaml

Exit codes: 0 listed, 1 the interpreter could not be asked, 2 wrong usage.`
}

// Run prints the list on stdout.
func (c *trainersCommand) Run(ctx context.Context, p *program) error {
	config, err := p.loadConfig(c.Config)
	if err != nil {
		return err
	}
	env, err := runners.NewPython(config).Environment(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return writeJSON(p.out, api.TrainerList{Trainers: env.Trainers})
	}
	l := &lines{}
	for _, t := range env.Trainers {
		describeTrainer(l, t)
	}
	return l.writeTo(p.out)
}

// describeTrainer adds what a person needs to choose a trainer, and to get it when it is missing.
func describeTrainer(l *lines, t api.Trainer) {
	kinds := make([]string, len(t.Kinds))
	for i, k := range t.Kinds {
		kinds[i] = string(k)
	}
	if len(kinds) == 0 { // its file is broken, and so nothing is known of it
		l.addf("%s\n", t.Name)
	} else {
		l.addf("%s: %s\n", t.Name, oneLine(t.Description))
		l.addf("  takes %s", strings.Join(kinds, ", "))
		if t.Licence != "" {
			l.addf("; licence %s", oneLine(t.Licence))
		}
		l.addf("\n")
	}
	if t.Available {
		l.WriteString("  available\n")
		return
	}
	l.addf("  not available: %s\n", oneLine(t.UnavailableReason))
	if t.InstallHint != "" {
		l.addf("  %s\n", oneLine(t.InstallHint))
	}
}
