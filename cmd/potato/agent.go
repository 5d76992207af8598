package main

import (
	"context"

	"potato/cmd/internal/agentcmd"
)

type agentCommand struct{ agentcmd.Command }

// Help is the longer text of --help.
func (*agentCommand) Help() string { return agentcmd.Help("potato training agent") }

// Run trains until it is stopped.
func (c *agentCommand) Run(ctx context.Context, p *program) error {
	return c.Start(ctx, agentcmd.Program{Args: []string{"training", "agent"}, Version: version, Out: p.out, Err: p.err})
}
